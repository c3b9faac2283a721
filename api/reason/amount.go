package reason

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"schedrestd/model"
)

// number returns the number that s begins with, as Slurm writes amounts of
// resources: "2", "4000M", "1.5G". The unit of memory is MiB.
func number(s string) uint64 {
	value := strings.TrimRight(s, "KMGTP")
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= 0 && v < 1<<32) { // larger numbers have a unit
		return 0
	}
	switch strings.TrimPrefix(s, value) {
	case "K":
		v /= 1 << 10
	case "G":
		v *= 1 << 10
	case "T":
		v *= 1 << 20
	case "P":
		v *= 1 << 30
	}
	return uint64(v)
}

// parseTRES returns the amounts in a list such as "cpu=2,mem=4G,gres/gpu=1".
func parseTRES(list string) map[string]uint64 {
	amounts := map[string]uint64{}
	for item := range strings.SplitSeq(list, ",") {
		if name, amount, ok := strings.Cut(item, "="); ok {
			amounts[name] = number(amount)
		}
	}
	return amounts
}

// resourceOf returns the words for n of a trackable resource, such as "2 CPUs".
func resourceOf(tres string, n uint64) string {
	switch kind, name, _ := strings.Cut(tres, "/"); {
	case tres == "cpu":
		return plural(n, "CPU")
	case tres == "node":
		return plural(n, "node")
	case tres == "mem":
		return size(n) + " of memory"
	case tres == "energy":
		return plural(n, "joule")
	case tres == "billing":
		return plural(n, "billing unit") + " (a weighted sum of resources)"
	case kind == "bb":
		return size(n) + " of the burst buffer " + name
	case name == "gpu":
		return plural(n, "GPU")
	case strings.HasPrefix(name, "gpu:"):
		return plural(n, "GPU") + " of type " + name[len("gpu:"):]
	case kind == "license":
		return plural(n, "license") + " of " + name
	case name != "":
		return fmt.Sprintf("%d of %s", n, name)
	}
	return fmt.Sprintf("%d of %s", n, tres)
}

// minutesOf returns the words for n minutes of a trackable resource, such as "2
// CPU minutes", and what they are: an amount times these minutes.
func minutesOf(tres string, n uint64, minutes string) string {
	unit := tres
	switch kind, name, _ := strings.Cut(tres, "/"); {
	case tres == "cpu":
		unit = "CPU"
	case tres == "mem":
		unit = "MB"
	case kind == "license":
		unit = name + " license"
	case name == "gpu" || strings.HasPrefix(name, "gpu:"):
		unit = "GPU"
	case name != "":
		unit = name
	}
	return fmt.Sprintf("%s (%s times %s)", plural(n, unit+" minute"), manyOf(tres), minutes)
}

// manyOf returns the words for several of a trackable resource, such as "CPUs".
func manyOf(tres string) string {
	switch kind, name, _ := strings.Cut(tres, "/"); {
	case tres == "cpu":
		return "CPUs"
	case tres == "node":
		return "nodes"
	case tres == "mem":
		return "MB of memory"
	case tres == "billing":
		return "billing units"
	case kind == "license":
		return "licenses of " + name
	case kind == "bb":
		return "MB of the burst buffer " + name
	case name == "gpu" || strings.HasPrefix(name, "gpu:"):
		return "GPUs" + strings.Replace(name[len("gpu"):], ":", " of type ", 1)
	case name != "":
		return name
	}
	return tres
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }

// verb returns the form of a verb for n of something.
func verb(n uint64, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// size returns the words for n MiB.
func size(n uint64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d TB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d GB", n>>10)
	}
	return fmt.Sprintf("%d MB", n)
}

// span returns the words for n minutes, such as "1 hour 30 minutes".
func span(n uint64) string {
	var parts []string
	for _, unit := range []struct {
		minutes uint64
		name    string
	}{{24 * 60, "day"}, {60, "hour"}, {1, "minute"}} {
		if k := n / unit.minutes; k > 0 {
			parts = append(parts, plural(k, unit.name))
		}
		n %= unit.minutes
	}
	if len(parts) == 0 {
		return "0 minutes"
	}
	return strings.Join(parts, " ")
}

// clock returns the words for a time.
func clock(t model.Time) string { return t.Go().UTC().Format(time.DateTime) + " UTC" }
