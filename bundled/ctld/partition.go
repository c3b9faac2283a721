package ctld

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handlePartitions returns the list of partitions, which do not change while
// the controller runs.
func (c *Controller) handlePartitions(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.PartitionInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	v := c.startVersion()
	if v.isCurrent(q.LastUpdate) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	info := &message.PartitionInfo{LastUpdate: v.time}
	for _, p := range c.cfg.Partitions {
		info.Partitions.List = append(info.Partitions.List, c.partition(p))
	}
	return message.ResponsePartitionInfo, info, nil
}

// partition returns a copy of p with this machine's resources filled in.
func (c *Controller) partition(p model.Partition) model.Partition {
	c.mu.Lock()
	total := c.queue.Total()
	c.mu.Unlock()
	p.Nodes, p.TotalNodes, p.TotalCPUs = c.cfg.Node, 1, uint32(total.CPUs)
	p.NodeIndexes = model.Bitmap{Len: 1, Set: true, Bits: []byte{1}}
	p.TRES = tres(total.CPUs, total.Memory) + ",node=1"
	return p
}

// Bits of a partition's flags and state.
const (
	partitionDefault = 1
	partitionUp      = 3 // jobs may be submitted, and may start
)

func defaultPartition() model.Partition {
	return model.Partition{
		Name: "batch", Flags: partitionDefault, StateUp: partitionUp, MaxTime: model.Infinite[uint32](),
		MaxNodes: model.Infinite[uint32](), MaxCPUsPerNode: model.Infinite[uint32](), MaxCPUsPerSocket: model.Infinite[uint32](),
		MinNodes: 1, MaxShare: 1, PriorityJobFactor: 1, PriorityTier: 1,
	}
}

// readPartitions returns the partitions in the PartitionName= lines of the
// configuration. It reads each partition's name and the settings Default,
// MaxTime, DefaultTime and State. It ignores all other settings, which only
// Slurm uses.
func readPartitions(lines []conf.Line) ([]model.Partition, error) {
	var parts []model.Partition
	defaults := 0
	for _, line := range lines {
		p := defaultPartition()
		p.Flags = 0
		name, _ := line.Get("PartitionName")
		if p.Name = name; strings.EqualFold(name, "DEFAULT") {
			continue // sets defaults for later lines; not supported
		}
		if v, ok := line.Get("Default"); ok && strings.EqualFold(v, "YES") {
			p.Flags, defaults = partitionDefault, defaults+1
		}
		if v, ok := line.Get("State"); ok && !strings.EqualFold(v, "UP") {
			p.StateUp = 0
		}
		for key, dst := range map[string]*model.Opt[uint32]{"MaxTime": &p.MaxTime, "DefaultTime": &p.DefaultTime} {
			v, ok := line.Get(key)
			if !ok {
				continue
			}
			minutes, err := readMinutes(v)
			if err != nil {
				return nil, errs.New(errs.Invalid, "%s:%d: %s=%s: %v", line.File, line.Number, key, v, err)
			}
			*dst = minutes
		}
		parts = append(parts, p)
	}
	if len(parts) > 0 && defaults == 0 {
		parts[0].Flags = partitionDefault
	}
	return parts, nil
}

// readMinutes parses a time in the formats of Slurm's configuration files:
// minutes, minutes:seconds, hours:minutes:seconds, days-hours,
// days-hours:minutes, days-hours:minutes:seconds, or UNLIMITED. It rounds up to
// whole minutes.
func readMinutes(s string) (model.Opt[uint32], error) {
	if strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE") {
		return model.Infinite[uint32](), nil
	}
	errFormat := fmt.Errorf("not a time; write minutes, [days-]hours:minutes:seconds or UNLIMITED")
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	fields := strings.Split(clock, ":")
	var unit []uint64 // seconds in one unit of each field
	switch {
	case hasDays:
		unit = []uint64{3600, 60, 1}
	case len(fields) <= 2:
		unit = []uint64{60, 1}
	default:
		unit = []uint64{3600, 60, 1}
	}
	if len(fields) > len(unit) {
		return model.Opt[uint32]{}, errFormat
	}
	d, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return model.Opt[uint32]{}, errFormat
	}
	seconds := d * 86400
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 31)
		if err != nil {
			return model.Opt[uint32]{}, errFormat
		}
		seconds += n * unit[i]
	}
	if minutes := (seconds + 59) / 60; minutes < 1<<31 {
		return model.Some(uint32(minutes)), nil
	}
	return model.Opt[uint32]{}, errFormat
}
