package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// planeLayout is the protocol's number for the distribution "plane", which
// places a block of tasks on each node. Clients send the size of the block in
// the field distribution_plane_size, or in the distribution itself, as in
// "plane=4".
const planeLayout uint32 = 4

// In the RPC, a distribution is a number. It has four bits for the layout on
// nodes, four for the layout on sockets, four for the layout on cores, and two
// flags.
var (
	nodeLayouts = map[string]uint32{"cyclic": 1, "block": 2, "arbitrary": 3, "plane": planeLayout}
	coreLayouts = map[string]uint32{"cyclic": 1, "block": 2, "fcyclic": 3}
	packing     = map[string]uint32{"pack": 0x800000, "nopack": 0x400000}
)

// errDistribution returns the error for an invalid distribution.
func errDistribution(s string) error {
	return fmt.Errorf("expected a distribution such as block:cyclic:fcyclic,Pack or plane=4, got %q", schema.Shorten(s))
}

// setDistribution parses "node[:socket[:core]][,Pack|NoPack]" or "plane=SIZE".
func setDistribution(d *model.JobDesc, s string) error {
	layouts, pack, hasPacking := strings.Cut(strings.ToLower(s), ",")
	if size, plane := strings.CutPrefix(layouts, "plane="); plane && !hasPacking {
		return setPlane(d, size)
	}
	var bits uint32
	for i, word := range strings.Split(layouts, ":") {
		known := coreLayouts
		if i == 0 {
			known = nodeLayouts
		}
		n, ok := known[word]
		if !ok || i > 2 {
			return errDistribution(s)
		}
		bits |= n << (4 * i)
	}
	if hasPacking {
		n, ok := packing[pack]
		if !ok {
			return errDistribution(s)
		}
		bits |= n
	}
	d.Distribution = model.Some(bits)
	return nil
}

// setPlane parses a plane size: the number of tasks in the block on each node.
func setPlane(d *model.JobDesc, size string) error {
	const maxSize = 1<<16 - 3 // larger numbers mean "not set" or "unlimited" in the RPC
	n, err := strconv.ParseUint(size, 10, 16)
	if err != nil || n == 0 || n > maxSize {
		return fmt.Errorf("expected a plane size of 1 to %d tasks, got %q", maxSize, schema.Shorten(size))
	}
	d.Distribution, d.PlaneSize = model.Some(planeLayout), model.Some(uint16(n))
	return nil
}

// In the RPC, a frequency is a number in kHz. If its top bit is set, the number
// stands for a word in one of these two tables.
var (
	frequencies = map[string]uint32{"low": 0x80000001, "medium": 0x80000002, "high": 0x80000003, "highm1": 0x80000004}
	governors   = map[string]uint32{
		"conservative": 0x88000000, "ondemand": 0x84000000, "performance": 0x82000000,
		"powersave": 0x81000000, "userspace": 0x80800000, "schedutil": 0x80400000,
	}
)

// setCPUFrequency parses a frequency, a range "low-high", or a governor. A
// range may be followed by ":governor". As in sbatch, a single frequency has
// the governor userspace, and no range has this governor.
func setCPUFrequency(d *model.JobDesc, s string) error {
	rest, governor, hasGovernor := strings.Cut(strings.ToLower(s), ":")
	if n, isGovernor := governors[rest]; isGovernor && !hasGovernor {
		d.CPUFreqGov = model.Some(n)
		return nil
	}
	if hasGovernor {
		n, known := governors[governor]
		if !known {
			return fmt.Errorf("unknown governor %q; expected one of %s", schema.Shorten(governor), strings.Join(slices.Sorted(maps.Keys(governors)), ", "))
		}
		d.CPUFreqGov = model.Some(n)
	}
	low, high, isRange := strings.Cut(rest, "-")
	n, err := frequency(low)
	if err != nil {
		return err
	}
	userspace := model.Some(governors["userspace"])
	if !isRange {
		if hasGovernor && d.CPUFreqGov != userspace {
			return fmt.Errorf("the governor %s needs a range of frequencies", governor)
		}
		d.CPUFreqMax, d.CPUFreqGov = model.Some(n), userspace
		return nil
	}
	if d.CPUFreqGov == userspace {
		return errors.New("the governor userspace needs a single frequency, not a range")
	}
	upper, err := frequency(high)
	if err != nil {
		return err
	}
	if n < 1<<31 && upper < n {
		return errors.New("the range of frequencies is empty")
	}
	d.CPUFreqMin, d.CPUFreqMax = model.Some(n), model.Some(upper)
	return nil
}

func frequency(s string) (uint32, error) {
	if n, known := frequencies[s]; known {
		return n, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("unknown frequency %q; expected a number of kHz or one of %s", schema.Shorten(s), strings.Join(slices.Sorted(maps.Keys(frequencies)), ", "))
	}
	return uint32(n), nil
}
