package schema

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads the string whose opening quote is at r.pos. If the string has no
// escapes, the result is a slice of the input, not a copy.
func (r *jsonReader) string() (string, error) {
	r.pos++ // "
	start := r.pos
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == '"':
			s := r.text[start:r.pos]
			r.pos++
			return s, nil
		case c == '\\':
			return r.escaped(start)
		default:
			if err := r.char(c); err != nil {
				return "", err
			}
		}
	}
	return "", r.syntaxError("the string does not end")
}

// char reads an unescaped character.
func (r *jsonReader) char(c byte) error {
	if c < ' ' {
		return r.control(c)
	}
	if c < utf8.RuneSelf {
		r.pos++
		return nil
	}
	ch, n := utf8.DecodeRuneInString(r.text[r.pos:])
	if ch == utf8.RuneError && n == 1 {
		return r.syntaxError("not UTF-8")
	}
	r.pos += n
	return nil
}

// control reads an unescaped control character.
func (r *jsonReader) control(c byte) error {
	if !r.lim.Loose || c != '\n' && c != '\r' && c != '\t' {
		return r.syntaxError("control character in a string")
	}
	if c == '\n' {
		r.startLine()
	}
	r.pos++
	return nil
}

// escaped reads the rest of a string that has escapes. The start argument is
// the index of the first byte after the opening quote. r.pos is the index of
// the first backslash.
func (r *jsonReader) escaped(start int) (string, error) {
	var b strings.Builder
	b.Grow(endOfString(r.text[r.pos:]) + r.pos - start) // once, because a script may be as long as the body
	b.WriteString(r.text[start:r.pos])
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.pos++
			return b.String(), nil
		case c == '\\':
			ch, err := r.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(ch)
		default:
			from := r.pos
			if err := r.char(c); err != nil {
				return "", err
			}
			b.WriteString(r.text[from:r.pos])
		}
	}
	return "", r.syntaxError("the string does not end")
}

// endOfString returns the number of bytes before the quote that ends a string, or
// of all bytes if there is none. The text begins inside the string.
func endOfString(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

// simpleEscapes maps the character after a backslash to the character that the
// escape stands for.
var simpleEscapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads one escape at its backslash.
func (r *jsonReader) escape() (rune, error) {
	if r.pos+1 >= len(r.text) {
		return 0, r.syntaxError("the string does not end")
	}
	c := r.text[r.pos+1]
	if ch, ok := simpleEscapes[c]; ok {
		r.pos += 2
		return ch, nil
	}
	if c != 'u' {
		return 0, r.syntaxError("no such escape")
	}
	ch, ok := hex4(r.text[r.pos+2:])
	switch {
	case !ok:
		return 0, r.syntaxError(`four hex digits must follow "\u"`)
	case !utf16.IsSurrogate(ch):
		r.pos += 6
		return ch, nil
	}
	rest := r.text[r.pos+6:]
	if !strings.HasPrefix(rest, `\u`) {
		return 0, r.syntaxError("half a surrogate pair")
	}
	low, ok := hex4(rest[2:])
	pair := utf16.DecodeRune(ch, low)
	if !ok || pair == utf8.RuneError {
		return 0, r.syntaxError("half a surrogate pair")
	}
	r.pos += 12
	return pair, nil
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var n rune
	for i := range 4 {
		n <<= 4
		switch c := s[i]; {
		case isDigit(c):
			n |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			n |= rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			n |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return n, true
}
