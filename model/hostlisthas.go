package model

import "strings"

// HostlistHas reports whether name is one of the names that Hosts(expr)
// returns. It does not create these names, so the time that it takes depends
// only on the lengths of expr and name.
func HostlistHas(expr, name string) bool {
	for expr != "" {
		var piece string
		piece, expr = cutOutsideBrackets(expr)
		if piece != "" && pieceHas(piece, name) {
			return true
		}
	}
	return false
}

// pieceHas reports whether name is one of the names that piece stands for. The
// argument piece is a host list expression without commas outside brackets.
// pieceHas parses piece from beginning to end, and tracks all prefixes of name
// that the parsed part of piece can stand for. A search that tried one prefix
// after another could take exponential time in the number of brackets. An
// attacker could exploit that, because piece is untrusted input.
func pieceHas(piece, name string) bool {
	literal, _, _, ok := cutBrackets(piece)
	if !ok || isTooLong(piece) {
		return piece == name
	}
	if !strings.HasPrefix(name, literal) {
		return false // the usual case, which needs no memory
	}
	ends := make([]bool, len(name)+1) // ends[i]: the parsed part can stand for name[:i]
	ends[0] = true
	for {
		literal, ranges, rest, ok := cutBrackets(piece)
		if !ok {
			start := len(name) - len(piece)
			return start >= 0 && ends[start] && name[start:] == piece
		}
		ends = appendLiteral(ends, name, literal)
		next := make([]bool, len(ends))
		for r := range strings.SplitSeq(ranges, ",") {
			for i, end := range ends {
				if end {
					matchRange(next, name, i, r)
				}
			}
		}
		ends, piece = next, rest
	}
}

// appendLiteral extends the parsed part of an expression by a literal text. In
// ends, element i is true if the part without this text can stand for name[:i].
// In the result, element i is true if the part with this text can stand for
// name[:i].
func appendLiteral(ends []bool, name, literal string) []bool {
	next := make([]bool, len(ends))
	for i, end := range ends {
		if end && strings.HasPrefix(name[i:], literal) {
			next[i+len(literal)] = true
		}
	}
	return next
}

// maxDigits is the maximum number of digits of a number in a range. It does not
// apply if the first number of the range has more digits. A 32-bit number has
// at most ten.
const maxDigits = 10

// matchRange handles r, one of the ranges in a pair of brackets. For each
// number of r that begins at name[i], it sets next[j], where j is the index
// just after that number.
func matchRange(next []bool, name string, i int, r string) {
	from, to, width, ok := parseRange(r)
	if !ok {
		if strings.HasPrefix(name[i:], r) {
			next[i+len(r)] = true
		}
		return
	}
	var n uint64
	for length := 1; length <= max(width, maxDigits) && i+length <= len(name); length++ {
		digit := name[i+length-1]
		if digit < '0' || digit > '9' {
			return
		}
		if n = n*10 + uint64(digit-'0'); n > to {
			return
		}
		if n >= from && (length == width || length > width && name[i] != '0') {
			next[i+length] = true
		}
	}
}
