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

// In the RPC, a distribution is a number. It has four bits for the layout on
// nodes, four for the layout on sockets, four for the layout on cores, and two
// flags (task_dist_states_t in slurm.h).
const (
	arbitraryLayout uint32 = 3 // tasks are placed on the nodes in the order of required_nodes
	planeLayout     uint32 = 4 // blocks of tasks; clients send their size as "plane=4" or in distribution_plane_size
	unknownLayout   uint32 = 0x2000
	layoutBits      uint32 = 0xffff
	packTasks       uint32 = 0x800000
	spreadTasks     uint32 = 0x400000
)

var (
	layouts = []string{1: "cyclic", 2: "block", 3: "fcyclic"} // fcyclic is for sockets and cores only
	packing = map[string]uint32{"pack": packTasks, "nopack": spreadTasks}
)

// errDistribution returns the error for an invalid distribution.
func errDistribution(s string) error {
	return fmt.Errorf("expected a distribution such as block:cyclic:fcyclic,Pack or plane=4, got %q", schema.Shorten(s))
}

// setDistribution parses "node[:socket[:core]][,Pack|NoPack]", "Pack", "NoPack",
// "arbitrary" or "plane=SIZE". A "*" stands for the default of its place.
func setDistribution(d *model.JobDesc, s string) error {
	text, pack, hasPacking := strings.Cut(strings.ToLower(s), ",")
	if size, plane := strings.CutPrefix(text, "plane="); plane && !hasPacking {
		return setPlane(d, size)
	}
	bits, ok := packing[text]
	switch {
	case ok:
		bits |= unknownLayout
	case text == "arbitrary" || text == "hostfile":
		bits, ok = arbitraryLayout, true
	case text == "plane" && !hasPacking: // the size is in distribution_plane_size
		bits, ok = planeLayout, true
	default:
		bits, ok = layoutOf(text)
	}
	if hasPacking && ok {
		var flag uint32
		flag, ok = packing[pack]
		bits |= flag
	}
	if !ok {
		return errDistribution(s)
	}
	d.Distribution = model.Some(bits)
	return nil
}

// layoutOf returns the bits for "node[:socket[:core]]".
func layoutOf(text string) (bits uint32, ok bool) {
	words := strings.Split(text, ":")
	if len(words) > 3 {
		return 0, false
	}
	defaults := [3]string{"block", "cyclic"} // by default, cores are used as sockets are
	for i, word := range words {
		if word == "*" {
			word = defaults[i]
		}
		if i == 1 {
			defaults[2] = word
		}
		n := slices.Index(layouts, word)
		if n < 1 || i == 0 && word == "fcyclic" {
			return 0, false
		}
		bits |= uint32(n) << (4 * i)
	}
	return bits, true
}

// layoutName returns the name of a distribution, as the commands of Slurm
// expect it in SLURM_DISTRIBUTION.
func layoutName(distribution uint32) string {
	var name string
	switch layout := distribution & layoutBits; layout {
	case unknownLayout:
	case arbitraryLayout:
		name = "arbitrary"
	case planeLayout:
		return "plane"
	default:
		words := []string{}
		for ; layout != 0; layout >>= 4 {
			words = append(words, layouts[layout&0xf])
		}
		name = strings.Join(words, ":")
	}
	for word, flag := range packing {
		if distribution&flag != 0 {
			name = strings.TrimPrefix(name+","+word, ",")
		}
	}
	return name
}

// setPlane parses a plane size: the number of tasks in the block on each node.
func setPlane(d *model.JobDesc, size string) error {
	const maxSize = 1<<16 - 3 // larger numbers mean "not set" or "unlimited" in the RPC
	n, err := strconv.ParseUint(size, 10, 16)
	if err != nil || n == 0 || n > maxSize {
		return fmt.Errorf("expected a plane size of 1 to %d tasks, got %q", maxSize, schema.Shorten(size))
	}
	d.Distribution = model.Some(planeLayout)
	return setPlaneSize(d, model.Some(uint16(n)))
}

// setPlaneSize sets the number of tasks in each block of a plane distribution.
func setPlaneSize(d *model.JobDesc, n model.Opt[uint16]) error {
	if n.Infinite || n.Set && n.Number == 0 {
		return errors.New("expected a number of tasks of at least 1")
	}
	if d.PlaneSize.Set && n.Set && d.PlaneSize != n {
		return errors.New("distribution and distribution_plane_size name different sizes")
	}
	if n.Set {
		d.PlaneSize = n
	}
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
