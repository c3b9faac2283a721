// Package printable makes text from other processes safe for logs and
// terminals.
package printable

import (
	"strconv"
	"strings"
	"unicode"
)

// MaxLength is the number of bytes, including escapes, after which Text cuts
// off its output.
const MaxLength = 2048

// Text makes s safe for a log and a terminal. It escapes characters that can't
// be printed, and shortens a text that is too long.
func Text(s string) string {
	if len(s) <= MaxLength && isPlain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if b.Len() >= MaxLength {
			b.WriteString("…")
			break
		}
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(s[i:], "\ufffd"):
			q := strconv.QuoteToASCII(s[i : i+1])
			b.WriteString(q[1 : len(q)-1])
		case !unicode.IsPrint(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isPlain reports whether s is printable ASCII.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
