package model

import (
	"fmt"
	"strconv"
	"strings"
)

// HostsWellFormed reports whether a host list expression is well-formed. In a
// well-formed expression, brackets occur in pairs and contain only numbers and
// ascending ranges, and no name is longer than maxName.
func HostsWellFormed(expr string) bool {
	for expr != "" {
		var piece string
		if piece, expr = cutOutsideBrackets(expr); !wellFormed(piece) || isTooLong(piece) {
			return false
		}
	}
	return true
}

func wellFormed(piece string) bool {
	for {
		literal, after, opened := strings.Cut(piece, "[")
		if strings.ContainsAny(literal, "]\x00") {
			return false
		}
		if !opened {
			return true
		}
		ranges, rest, closed := strings.Cut(after, "]")
		if !closed {
			return false
		}
		for r := range strings.SplitSeq(ranges, ",") {
			if from, to, _, ok := parseRange(r); !ok || from > to {
				return false
			}
		}
		piece = rest
	}
}

// FoldHosts returns names as a host list expression, in the same order.
// Consecutive names that differ only in the number at their ends are joined
// with brackets, as in "n[1-3,08],login".
func FoldHosts(names []string) string {
	var b strings.Builder
	for i := 0; i < len(names); {
		prefix, numbered := cutNumber(names[i])
		end := i + 1
		for numbered && end < len(names) {
			if p, ok := cutNumber(names[end]); !ok || p != prefix {
				break
			}
			end++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if end == i+1 {
			b.WriteString(names[i])
		} else {
			b.WriteString(prefix + "[" + foldNumbers(names[i:end], len(prefix)) + "]")
		}
		i = end
	}
	return b.String()
}

// foldNumbers returns the numbers in names as a list with ranges, such as
// "1-3,08". In each name, the number begins at index skip.
func foldNumbers(names []string, skip int) string {
	var b strings.Builder
	for i := 0; i < len(names); {
		first := names[i][skip:]
		n, _ := strconv.ParseUint(first, 10, 32) // cutNumber has checked it
		end := i + 1
		for end < len(names) && names[end][skip:] == fmt.Sprintf("%0*d", len(first), n+uint64(end-i)) {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if b.WriteString(first); end > i+1 {
			b.WriteString("-" + names[end-1][skip:])
		}
		i = end
	}
	return b.String()
}

// cutNumber returns a name without the number at its end. The ok result is false
// if there is no number, or if a host list can't represent the number.
func cutNumber(name string) (prefix string, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	_, err := strconv.ParseUint(name[len(prefix):], 10, 32)
	return prefix, err == nil
}
