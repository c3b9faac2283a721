package api

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// The functions below parse the fields of a job description that have different
// forms in the API and in the model.

func setThreadSpec(d *model.JobDesc, n uint16) error {
	if n >= specializedThreads-2 {
		return errors.New("too many threads")
	}
	d.CoreSpec = model.Some(n | specializedThreads)
	return nil
}

func setNice(d *model.JobDesc, n int32) error {
	const maxNice = 1<<31 - 3 // larger numbers mean "not set" or "unlimited" in the RPC
	if n < -maxNice || n > maxNice {
		return fmt.Errorf("%d is out of range, %d to %d", n, -maxNice, maxNice)
	}
	d.Nice = model.Some(uint32(int64(n) + model.NiceOffset))
	return nil
}

func setHold(d *model.JobDesc, hold bool) error {
	if d.Release = !hold; hold {
		d.Priority = model.Some[uint32](0)
	}
	return nil
}

// setPriority sets the priority, unless the field "hold" has already set it to
// 0. In that case the job stays held.
func setPriority(d *model.JobDesc, n model.Opt[uint32]) error {
	if d.Priority != model.Some[uint32](0) {
		d.Priority = n
	}
	return nil
}

func setShared(d *model.JobDesc, n uint16) error {
	d.Shared = model.Some(n)
	return nil
}

func setOversubscribe(d *model.JobDesc, share bool) error {
	if share {
		return setShared(d, 1)
	}
	return setShared(d, 0)
}

func setMemoryPerCPU(d *model.JobDesc, n model.Opt[uint64]) error {
	return setMemory(d, n, model.MemPerCPU)
}

func setMemoryPerNode(d *model.JobDesc, n model.Opt[uint64]) error { return setMemory(d, n, 0) }

// setMemory sets the memory per node, or per processor if mark is
// model.MemPerCPU. An infinite amount is all memory of each node, for which the
// controller expects 0.
func setMemory(d *model.JobDesc, n model.Opt[uint64], mark uint64) error {
	switch {
	case n.Infinite:
		n, mark = model.Some[uint64](0), 0
	case !n.Set:
		return nil
	}
	switch {
	case d.MinMemory.Set:
		return errors.New("memory_per_cpu and memory_per_node can't both be set")
	case n.Number >= model.MemPerCPU-2:
		return errors.New("too much memory")
	}
	d.MinMemory = model.Some(n.Number | mark)
	return nil
}

func setUser(d *model.JobDesc, s string) (err error) {
	d.UserID, d.UserName, err = identity(s)
	return err
}

func setGroup(d *model.JobDesc, s string) (err error) {
	d.GroupID, d.GroupName, err = identity(s)
	return err
}

// identity parses a user or group, which is either a number or a name. For an
// empty s it returns neither.
func identity(s string) (number model.Opt[uint32], name string, err error) {
	if strings.Trim(s, "0123456789") != "" || s == "" {
		return number, s, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n >= noUser {
		return number, "", fmt.Errorf("%s is out of range, 0 to %d", schema.Shorten(s), uint32(noUser-1))
	}
	return model.Some(uint32(n)), "", nil
}

// rlimit returns the field for a resource limit. The RPC has no field for
// resource limits: slurmd reads them from variables of the job's environment.
func rlimit(name, doc, unit string) schema.Field[model.JobDesc] {
	return schema.Set(name, number, func(d *model.JobDesc, n model.Opt[uint64]) error {
		switch {
		case n.Infinite:
			n.Number = math.MaxUint64 // RLIM_INFINITY
		case !n.Set:
			return nil
		}
		d.Derived = append(d.Derived, "SLURM_RLIMIT_"+strings.ToUpper(name)+"="+strconv.FormatUint(n.Number, 10))
		return nil
	}, doc, schema.Unit(unit))
}

// setNodes parses a node count such as "4", a range such as "2-4", or a
// comma-separated list of acceptable counts and ranges.
func setNodes(d *model.JobDesc, s string) error {
	if strings.ContainsAny(s, ",:") {
		d.JobSizes = model.Text(s)
	}
	minNodes, maxNodes := uint64(1<<32), uint64(0)
	for part := range strings.SplitSeq(s, ",") {
		part, _, _ = strings.Cut(part, ":")
		from, to, ok := parseRange(part)
		if !ok || to >= uint64(model.NoVal32) {
			return fmt.Errorf("expected a number of nodes, got %q", schema.Shorten(s))
		}
		minNodes, maxNodes = min(minNodes, from), max(maxNodes, to)
	}
	d.MinNodes, d.MaxNodes = model.Some(uint32(minNodes)), model.Some(uint32(maxNodes))
	return nil
}

var signalNumbers = map[string]uint16{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
	"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21,
	"TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30, "SYS": 31,
}

func setWarnTime(d *model.JobDesc, n model.Opt[uint16]) error {
	if d.WarnTime = n.Or(0); n.Infinite {
		d.WarnTime = math.MaxUint16
	}
	return nil
}

func setWarnSignal(d *model.JobDesc, s string) (err error) {
	d.WarnSignal, err = parseSignal(s)
	return err
}

// maxSignal is the number of the last signal of Linux. slurmd acknowledges greater
// numbers, and sends nothing.
const maxSignal = 64

// parseSignal parses a signal's number, or its name with or without SIG.
func parseSignal(s string) (uint16, error) {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil && n <= maxSignal {
		return uint16(n), nil
	}
	n, known := signalNumbers[strings.TrimPrefix(strings.ToUpper(s), "SIG")]
	if !known {
		return 0, fmt.Errorf("unknown signal %q; expected a number up to %d or a name such as USR1", schema.Shorten(s), maxSignal)
	}
	return n, nil
}
