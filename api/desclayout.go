package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// Distribution: four bits each for nodes, sockets and cores, then two flags.
var (
	nodeLayouts = map[string]uint32{"cyclic": 1, "block": 2, "arbitrary": 3, "plane": 4}
	coreLayouts = map[string]uint32{"cyclic": 1, "block": 2, "fcyclic": 3}
	packing     = map[string]uint32{"pack": 0x800000, "nopack": 0x400000}
)

// takeDistribution reads "node[:socket[:core]][,Pack|NoPack]".
func takeDistribution(d *model.JobDesc, s string) error {
	layouts, pack, packed := strings.Cut(strings.ToLower(s), ",")
	var bits uint32
	for i, word := range strings.Split(layouts, ":") {
		known := coreLayouts
		if i == 0 {
			known = nodeLayouts
		}
		n, ok := known[word]
		if !ok || i > 2 {
			return fmt.Errorf("no such distribution: %q", schema.Shorten(s))
		}
		bits |= n << (4 * i)
	}
	if packed {
		n, ok := packing[pack]
		if !ok {
			return fmt.Errorf("no such distribution: %q", schema.Shorten(s))
		}
		bits |= n
	}
	d.Distribution = model.Some(bits)
	return nil
}

// Frequencies and governors are numbers with the top bit set; a plain number is in kHz.
var (
	frequencies = map[string]uint32{"low": 0x80000001, "medium": 0x80000002, "high": 0x80000003, "highm1": 0x80000004}
	governors   = map[string]uint32{
		"conservative": 0x88000000, "ondemand": 0x84000000, "performance": 0x82000000,
		"powersave": 0x81000000, "userspace": 0x80800000, "schedutil": 0x80400000,
	}
)

// takeCPUFrequency reads "frequency", "low-high", each with ":governor", or a governor alone.
func takeCPUFrequency(d *model.JobDesc, s string) error {
	rest, governor, governed := strings.Cut(strings.ToLower(s), ":")
	if n, alone := governors[rest]; alone && !governed {
		d.CPUFreqGov = model.Some(n)
		return nil
	}
	if governed {
		n, known := governors[governor]
		if !known {
			return fmt.Errorf("no such governor: %q", schema.Shorten(governor))
		}
		d.CPUFreqGov = model.Some(n)
	}
	low, high, isRange := strings.Cut(rest, "-")
	n, err := frequency(low)
	if err != nil {
		return err
	}
	if !isRange {
		d.CPUFreqMax = model.Some(n)
		return nil
	}
	most, err := frequency(high)
	if err != nil {
		return err
	}
	if n < 1<<31 && most < n {
		return errors.New("the range of frequencies is empty")
	}
	d.CPUFreqMin, d.CPUFreqMax = model.Some(n), model.Some(most)
	return nil
}

func frequency(s string) (uint32, error) {
	if n, known := frequencies[s]; known {
		return n, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("no such frequency: %q", schema.Shorten(s))
	}
	return uint32(n), nil
}
