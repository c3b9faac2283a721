package cluster

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"schedrestd/metric/exposition"
	"schedrestd/model"
)

// tres returns the names and values in a list of trackable resources, such as
// "cpu=4,mem=1.50G".
func tres(list string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for element := range strings.SplitSeq(list, ",") {
			name, value, ok := strings.Cut(element, "=")
			if ok && !yield(name, value) {
				return
			}
		}
	}
}

// amount parses a number with an optional suffix, which stands for a power of
// 1,024. It returns 0 if the number is malformed. The result is exact, because
// Slurm does not round the fractions that it writes.
func amount(s string) uint64 {
	n, _ := parseAmount(s)
	return n
}

func parseAmount(s string) (uint64, bool) {
	unit := 1.0
	if len(s) > 1 {
		if i := strings.IndexByte("KMGTPE", s[len(s)-1]&^0x20); i >= 0 {
			s = s[:len(s)-1]
			unit = float64(uint64(1) << (10 * (i + 1)))
		}
	}
	if strings.Trim(s, "0123456789.") != "" { // refuses signs, exponents and words such as Inf
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n*unit >= 1<<63 {
		return 0, false
	}
	return uint64(n * unit), true
}

// gresKind is the name and the type of a kind of generic resource. The type may
// be empty.
type gresKind struct{ name, typ string }

// gres is an amount of a generic resource on a node.
type gres struct {
	gresKind
	total, used uint64
}

// gresOf returns the generic resources of a node. If used resources have a type
// that the node's configuration lacks, gresOf adds them to the resource of the
// same name without a type. If the configuration lacks that resource too,
// gresOf returns the used resources as a resource of their own.
func gresOf(n *model.Node) (list []gres) {
	for kind, total := range gresList(n.GRES) {
		if i := slices.IndexFunc(list, func(g gres) bool { return g.gresKind == kind }); i >= 0 {
			list[i].total += total
		} else {
			list = append(list, gres{gresKind: kind, total: total})
		}
	}
	for kind, used := range gresList(n.GRESUsed) {
		i := slices.IndexFunc(list, func(g gres) bool { return g.gresKind == kind })
		if i < 0 {
			i = slices.IndexFunc(list, func(g gres) bool { return g.gresKind == gresKind{name: kind.name} })
		}
		if i >= 0 {
			list[i].used += used
		} else if used > 0 {
			list = append(list, gres{gresKind: kind, total: used, used: used})
		}
	}
	return list
}

// gresList returns the kinds and amounts in a list of generic resources, such
// as "gpu:a100:2(S:0-1),tmpdisk:no_consume:100G".
func gresList(list string) iter.Seq2[gresKind, uint64] {
	return func(yield func(gresKind, uint64) bool) {
		for element := range strings.SplitSeq(withoutDetails(list), ",") {
			parts := strings.Split(element, ":")
			if parts[0] == "" || parts[0] == "N/A" {
				continue
			}
			total, counted := uint64(1), false
			if last := len(parts) - 1; last > 0 {
				if n, ok := parseAmount(parts[last]); ok {
					total, counted = n, true
					parts = parts[:last]
				}
			}
			kind := gresKind{name: exposition.Text(parts[0])}
			if len(parts) > 1 && parts[1] != "no_consume" {
				kind.typ = exposition.Text(parts[1])
			}
			if !counted && len(parts) > 1 && parts[len(parts)-1] == "" {
				total = 0
			}
			if !yield(kind, total) {
				return
			}
		}
	}
}

// withoutDetails returns a list without the parts in parentheses, which may
// contain commas.
func withoutDetails(list string) string {
	depth := 0
	return strings.Map(func(r rune) rune {
		switch r {
		case '(':
			depth++
			return -1
		case ')':
			depth--
			return -1
		}
		if depth > 0 {
			return -1
		}
		return r
	}, list)
}

func sortedGRES(m map[gresKind]*stateAmounts) []gresKind {
	return slices.SortedFunc(maps.Keys(m), func(a, b gresKind) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.typ, b.typ))
	})
}
