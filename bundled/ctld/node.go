package ctld

import (
	"context"
	"fmt"
	"time"

	"schedrestd/bundled/ctld/machine"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleNodes returns the list of nodes, which contains only this machine. It
// always returns the whole list, because the load changes constantly.
func (c *Controller) handleNodes(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.NodeInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	return c.nodeInfo()
}

// handleNode returns the node that the request names. If that is not this
// machine's node, handleNode returns error 2018.
func (c *Controller) handleNode(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.NodeInfoSingleRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if q.NodeName != c.cfg.Node {
		return 0, nil, refuse(errs.NotFound, fault.InvalidNodeName, "there is no node %q", q.NodeName)
	}
	return c.nodeInfo()
}

func (c *Controller) nodeInfo() (message.Type, message.Body, error) {
	info := &message.NodeInfo{LastUpdate: c.startVersion().time, Nodes: codec.Stream[model.Node]{List: []model.Node{c.node()}}}
	info.Hidden = model.Bitmap{Len: 1, Set: true, Bits: make([]byte, 1)} // the node is not hidden
	return message.ResponseNodeInfo, info, nil
}

// node returns the current node record of this machine.
func (c *Controller) node() model.Node {
	c.mu.Lock()
	used, total, idleSince := c.queue.Used(), c.queue.Total(), c.idleSince
	c.mu.Unlock()
	f := c.facts
	n := model.Node{
		Name: c.cfg.Node, Hostname: f.Hostname, Address: c.cfg.Address, Port: uint16(c.cfg.Port), Version: c.cfg.Version,
		NextState: model.NodeStateNone, State: model.NodeIdle,
		CPUs: uint16(min(f.CPUs, 0xfffd)), EffectiveCPUs: uint16(min(total.CPUs, 0xfffd)),
		Boards: 1, Sockets: uint16(f.Sockets), Cores: uint16(f.Cores), Threads: uint16(f.Threads),
		Memory: total.Memory, TmpDisk: uint32(min(f.TmpDisk, 1<<32-3)), Weight: 1, ReasonUID: noUser,
		BootTime: model.At(f.BootTime), DaemonStartTime: model.At(c.startedAt), LastBusy: idleSince,
		AllocCPUs: uint16(min(used.CPUs, 0xfffd)), AllocMemory: used.Memory,
		Architecture: f.Arch, OS: f.OS,
		TRES:        tres(total.CPUs, total.Memory),
		SuspendTime: model.Infinite[uint32](), // the node is never powered down
	}
	switch {
	case used.CPUs >= total.CPUs:
		n.State = model.NodeAllocated
	case used.CPUs > 0:
		n.State = model.NodeMixed
	}
	if used.CPUs > 0 {
		n.LastBusy = model.At(time.Now())
		n.AllocTRES = tres(used.CPUs, used.Memory)
	}
	if u, err := machine.ReadUsage(); err == nil {
		n.CPULoad = model.Some(uint32(u.Load*100 + 0.5))
		n.FreeMem = model.Some(u.FreeMemory)
	}
	return n
}

// noUser is the uid that means "no user" in the protocol.
const noUser = 0xfffffffe

// tres formats a number of CPUs and an amount of memory in MiB, for example
// "cpu=2,mem=1024M".
func tres(cpus, memory uint64) string {
	if memory == 0 {
		return fmt.Sprintf("cpu=%d", cpus)
	}
	return fmt.Sprintf("cpu=%d,mem=%dM", cpus, memory)
}
