package model

import (
	"iter"
	"strconv"
	"strings"
)

// Hosts returns the names in a host list expression such as "n[1-3,08],login",
// in order. It creates one name at a time, because a few bytes can stand for
// billions of names. The caller may stop at any name. A malformed part of the
// expression is returned unchanged, as is a part that stands for a name longer than
// maxName.
func Hosts(expr string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for expr != "" {
			var piece string
			piece, expr = cutOutsideBrackets(expr)
			switch {
			case piece == "":
			case isTooLong(piece):
				if !yield(piece) {
					return
				}
			case !expand("", piece, yield):
				return
			}
		}
	}
}

// cutOutsideBrackets cuts s at its first comma that is not in brackets.
func cutOutsideBrackets(s string) (piece, rest string) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth <= 0 {
				return s[:i], s[i+1:]
			}
		}
	}
	return s, ""
}

// maxName is the maximum length of a name that Hosts makes. Without it, a kilobyte
// could expand to gigabytes: "x[1-65536]" with a long x, a number with thousands
// of leading zeros, or thousands of brackets, for each of which expand keeps the
// name so far.
const maxName = 255

// isTooLong reports whether piece, a host list expression without commas outside
// brackets, may stand for a name longer than maxName.
func isTooLong(piece string) bool {
	if len(piece) <= maxName { // no name is longer than its text
		return false
	}
	for length := 0; length <= maxName; {
		literal, ranges, rest, ok := cutBrackets(piece)
		if !ok {
			return length+len(piece) > maxName
		}
		longest := 0
		for r := range strings.SplitSeq(ranges, ",") {
			if _, to, width, ok := parseRange(r); ok {
				longest = max(longest, width, len(strconv.FormatUint(to, 10)))
			} else {
				longest = max(longest, len(r))
			}
		}
		length += len(literal) + longest
		piece = rest
	}
	return true
}

// expand calls yield for each name that piece stands for, with prefix at the
// beginning of the name. The piece argument is a host list expression without
// commas outside brackets. If a call returns false, expand stops and returns
// false.
func expand(prefix, piece string, yield func(string) bool) bool {
	literal, ranges, rest, ok := cutBrackets(piece)
	if !ok {
		return yield(prefix + piece)
	}
	prefix += literal
	for r := range strings.SplitSeq(ranges, ",") {
		from, to, width, ok := parseRange(r)
		if !ok {
			if !expand(prefix+r, rest, yield) {
				return false
			}
			continue
		}
		for n := from; n <= to; n++ {
			if !expand(numbered(prefix, n, width), rest, yield) {
				return false
			}
		}
	}
	return true
}

// numbered returns prefix followed by n, with at least width digits.
func numbered(prefix string, n uint64, width int) string {
	var space [20]byte
	digits := strconv.AppendUint(space[:0], n, 10)
	var b strings.Builder
	b.Grow(len(prefix) + max(width, len(digits)))
	b.WriteString(prefix)
	for range width - len(digits) {
		b.WriteByte('0')
	}
	b.Write(digits)
	return b.String()
}

// cutBrackets splits piece at its first pair of brackets. ok is false if piece
// has no brackets.
func cutBrackets(piece string) (literal, ranges, rest string, ok bool) {
	literal, after, opened := strings.Cut(piece, "[")
	ranges, rest, closed := strings.Cut(after, "]")
	return literal, ranges, rest, opened && closed
}

// parseRange parses a number or a range, such as "3", "1-3" or "08-11". The
// result width is the number of digits of the first number; zeros pad the other
// numbers to this width. If r is neither a number nor a range, ok is false.
func parseRange(r string) (from, to uint64, width int, ok bool) {
	low, high, isRange := strings.Cut(r, "-")
	from, err := strconv.ParseUint(low, 10, 32)
	to = from
	if err == nil && isRange {
		to, err = strconv.ParseUint(high, 10, 32)
	}
	return from, to, len(low), err == nil
}
