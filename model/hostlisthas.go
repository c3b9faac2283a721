package model

import "strings"

// HostlistHas reports whether the host list expression expr contains name,
// according to Hosts. It creates no names, so its cost depends only on the
// length of expr.
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

// pieceHas parses piece from the beginning to the end. It tracks all prefixes
// of name that the parsed part can stand for. A search that tries these
// prefixes one after the other would take exponential time in the number of
// brackets, and piece is untrusted input.
func pieceHas(piece, name string) bool {
	literal, _, _, ok := cutBrackets(piece)
	if !ok {
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
			at := len(name) - len(piece)
			return at >= 0 && ends[at] && name[at:] == piece
		}
		ends = after(ends, name, literal)
		next := make([]bool, len(ends))
		for r := range strings.SplitSeq(ranges, ",") {
			for i, end := range ends {
				if end {
					follow(next, name, i, r)
				}
			}
		}
		ends, piece = next, rest
	}
}

// after returns the new ends after the text of a literal.
func after(ends []bool, name, literal string) []bool {
	next := make([]bool, len(ends))
	for i, end := range ends {
		if end && strings.HasPrefix(name[i:], literal) {
			next[i+len(literal)] = true
		}
	}
	return next
}

// maxDigits limits the digits of a number in a range that is wider than the
// first number of the range.
const maxDigits = 10

// follow marks in next the indexes at which r, a range in brackets, can end if
// it begins at name[i].
func follow(next []bool, name string, i int, r string) {
	from, to, width, ok := numbers(r)
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
