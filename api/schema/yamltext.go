package schema

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text writes s as a scalar that every reader parses as text.
func (y *YAMLWriter) text(s string) {
	if isPlainText(s) {
		y.buf = append(y.buf, s...)
		return
	}
	y.buf = append(y.buf, '"')
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if printable(r, n) {
			i += n
			continue
		}
		y.buf = append(y.buf, s[start:i]...)
		y.buf = appendYAMLEscape(y.buf, r)
		i += n
		start = i
	}
	y.buf = append(y.buf, s[start:]...)
	y.buf = append(y.buf, '"')
}

// printable reports whether a quoted text may contain the character r
// unescaped. Some readers refuse unprintable characters, and some treat the
// line separators of YAML 1.1 as line ends.
func printable(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size == 1, r == '"', r == '\\':
		return false
	case r < utf8.RuneSelf:
		return r >= ' ' && r != 0x7f
	}
	return r == ' ' || unicode.IsPrint(r)
}

func appendYAMLEscape(b []byte, r rune) []byte {
	switch {
	case r == utf8.RuneError: // invalid UTF-8; U+FFFD itself is printable
		return append(b, "\uFFFD"...)
	case r < utf8.RuneSelf && r != 0x7f:
		return appendEscape(b, byte(r)) // JSON's escapes are valid in YAML too
	case r <= 0xffff:
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return fmt.Appendf(b, `\U%08x`, r)
}

// isPlainText reports whether s can be written without quotes, like most names
// and paths. Quotes are necessary if a reader could take s for a value of
// another type, or if s has a special meaning in the flow style.
func isPlainText(s string) bool {
	if s == "" || !isLetter(s[0]) && s[0] != '_' && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case isLetter(c), isDigit(c), strings.IndexByte("_./+@=()<>;~^$-", c) >= 0:
		case c == ' ' && i+1 < len(s) && s[i+1] != ' ':
		default:
			return false
		}
	}
	return len(s) > 5 || !isYAMLWord(s)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isYAMLWord reports whether s is a word, such as true, that YAML 1.1 or 1.2
// does not read as text. All such words are short.
func isYAMLWord(s string) bool {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}
