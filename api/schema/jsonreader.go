package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// ReadJSON reads one JSON document (RFC 8259), strictly unless lim.Loose is set.
// The time that it takes is proportional to the length of the text, however
// deeply arrays and objects are nested. (A quadratic reader would be busy for a
// long time with 100 KB of "[0,0,[0,0,[0,0,…".) The lim argument also limits the
// memory that ReadJSON uses.
//
// ReadJSON refuses syntax errors, bytes that are not UTF-8, and escapes for
// half a surrogate pair. It skips a leading byte order mark. It accepts
// repeated member names, and NULs in strings, because they are valid JSON.
// ObjectType and ParseText refuse them later. Every error is a *SyntaxError.
func ReadJSON(text string, lim Limits) (*Value, error) {
	r := &jsonReader{text: strings.TrimPrefix(text, "\uFEFF"), lim: lim}
	n, at := countValues(r.text, lim.Values)
	if n > lim.Values {
		return nil, tooLarge(syntaxErrorAt(r.text, at, "too many values"), valuesHint(lim))
	}
	r.open = make([]Value, 0, n)
	r.skipSpace()
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	r.skipSpace()
	if r.pos < len(r.text) {
		return nil, r.syntaxError("unexpected text after the document")
	}
	return &v, nil
}

// JSONMemory returns how many bytes of memory ReadJSON takes at most for the
// values of a text, in addition to the text itself. A text like "[1,1,1…" takes
// 80 times its length.
func JSONMemory(text string, lim Limits) int64 {
	n, _ := countValues(text, lim.Values)
	if n > lim.Values {
		return 0 // ReadJSON refuses the text before it builds a value
	}
	return int64(n) * 2 * int64(unsafe.Sizeof(Value{})) // each value is in the slice of open values, and then in that of its array
}

// countValues returns the number of values in a text, or at most limit+1. If the
// text has more, at is the index of the byte before the first value above the
// limit. In a text that is not valid JSON, countValues may count too many
// values, but never too few.
func countValues(text string, limit int) (n, at int) {
	n = 1
	for i := 0; i < len(text) && n <= limit; i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ',':
			n, at = n+1, i+1
		case '[', '{':
			rest := strings.TrimLeft(text[i+1:min(i+64, len(text))], " \t\r\n")
			if rest == "" || rest[0] != ']' && rest[0] != '}' {
				n, at = n+1, i+1
			}
		}
	}
	return n, at
}

type jsonReader struct {
	text string
	pos  int
	lim  Limits

	// open contains the items of all arrays and objects that are not closed
	// yet, beginning with the items of the outermost one. When an array or
	// object ends, its items are copied into a slice of their own.
	open []Value

	line int32 // number of the current line, starting at 0
	// col is the column of the byte at colPos. A call to position continues
	// counting from there, so that each character is counted only once.
	col    int32
	colPos int
}

func (r *jsonReader) skipSpace() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case '\n':
			r.startLine()
		case ' ', '\t', '\r':
		default:
			return
		}
		r.pos++
	}
}

// startLine counts the line break at r.pos.
func (r *jsonReader) startLine() {
	r.line++
	r.col, r.colPos = 0, r.pos+1
}

// position returns the line and column of r.pos. It starts counting where the
// previous call stopped.
func (r *jsonReader) position() (line, column int32) {
	if r.pos > r.colPos {
		r.col += int32(utf8.RuneCountInString(r.text[r.colPos:r.pos]))
		r.colPos = r.pos
	}
	return r.line + 1, r.col + 1
}

func (r *jsonReader) syntaxError(problem string) *SyntaxError {
	line, column := r.position()
	return &SyntaxError{Line: int(line), Column: int(column), Problem: problem}
}

// peek returns the next byte, or 0 at the end of the text. A NUL byte in the
// text looks the same, but no token begins with NUL, so the caller refuses it
// anyway.
func (r *jsonReader) peek() byte {
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

func (r *jsonReader) value(depth int) (v Value, err error) {
	if depth > r.lim.Depth {
		err := r.syntaxError("nested too deeply") // the rest is not parsed, so missing closing brackets go unnoticed
		err.Hint = depthHint(r.lim)
		return v, err
	}
	v.Line, v.Column = r.position()
	switch c := r.peek(); {
	case c == '{':
		v.Kind = Map
		v.Items, err = r.items('}', depth)
	case c == '[':
		v.Kind = Array
		v.Items, err = r.items(']', depth)
	case c == '"':
		v.Kind = Text
		v.Text, err = r.string()
	case c == '-' || isDigit(c):
		v.Kind = Number
		v.Text, err = r.number()
	case c == 't':
		v.Kind = Bool
		v.Text, err = r.literal("true")
	case c == 'f':
		v.Kind = Bool
		v.Text, err = r.literal("false")
	case c == 'n':
		v.Kind = Null
		_, err = r.literal("null")
	case r.pos >= len(r.text):
		err = r.syntaxError("a value is missing")
	default:
		err = r.syntaxError("not a value")
	}
	return v, err
}

func (r *jsonReader) literal(w string) (string, error) {
	if !strings.HasPrefix(r.text[r.pos:], w) {
		return "", r.syntaxError("not a value")
	}
	r.pos += len(w)
	return w, nil
}

// items reads an array or object from its opening bracket to its closing
// bracket. The argument end is the closing bracket.
func (r *jsonReader) items(end byte, depth int) ([]Value, error) {
	base := len(r.open)
	r.pos++
	r.skipSpace()
	for first := true; r.peek() != end || !first && !r.lim.Loose; first = false {
		var name string
		var err error
		if end == '}' {
			if name, err = r.name(); err != nil {
				return nil, err
			}
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.Key = name
		r.push(v)
		r.skipSpace()
		if r.peek() == end {
			break
		}
		if r.peek() != ',' {
			return nil, r.syntaxError(fmt.Sprintf(`"," or %q is missing`, string(end)))
		}
		r.pos++
		r.skipSpace()
	}
	r.pos++
	return r.pop(base), nil
}

func (r *jsonReader) push(v Value) { r.open = append(r.open, v) }

func (r *jsonReader) pop(base int) []Value {
	if len(r.open) == base {
		return nil
	}
	items := slices.Clone(r.open[base:])
	clear(r.open[base:])
	r.open = r.open[:base]
	return items
}

// name reads the name of a member and the colon after it.
func (r *jsonReader) name() (string, error) {
	if r.peek() != '"' {
		return "", r.syntaxError("a name in quotes is missing")
	}
	name, err := r.string()
	if err != nil {
		return "", err
	}
	r.skipSpace()
	if r.peek() != ':' {
		return "", r.syntaxError(`":" is missing`)
	}
	r.pos++
	r.skipSpace()
	return name, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (r *jsonReader) digits() bool {
	start := r.pos
	for isDigit(r.peek()) {
		r.pos++
	}
	return r.pos > start
}

func (r *jsonReader) number() (string, error) {
	start := r.pos
	if r.peek() == '-' {
		r.pos++
	}
	if r.peek() == '0' {
		r.pos++
	} else if !r.digits() {
		return "", r.syntaxError("a digit is missing")
	}
	if r.peek() == '.' {
		r.pos++
		if !r.digits() {
			return "", r.syntaxError("a digit is missing")
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.pos++
		if c := r.peek(); c == '+' || c == '-' {
			r.pos++
		}
		if !r.digits() {
			return "", r.syntaxError("a digit is missing")
		}
	}
	return r.text[start:r.pos], nil
}
