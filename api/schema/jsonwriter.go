package schema

import (
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// pieceSize is the number of bytes that a writer collects before it writes them
// to the connection. Each write costs two system calls, because net/http writes
// the size of a chunk from a separate buffer. With pieces of this size, the
// calls cost little, and the buffers for many concurrent lists still need
// little memory.
const pieceSize = 64 << 10

// JSONWriter is an Encoder that writes JSON (RFC 8259) in the layout Compact or
// Pretty. It appends the JSON to one buffer, and writes the buffer in pieces.
//
// The output is always valid JSON. Bytes that are not UTF-8 become U+FFFD.
// Otherwise, one job name with a Latin-1 letter would make the whole list
// unreadable for every user. Integers keep all 64 bits. NaN and infinity, which
// JSON lacks, become 0.
type JSONWriter struct {
	output
	sep      bool // the next key or element needs a comma before it
	afterKey bool // a Key precedes the next value
	pretty   bool
	depth    int
}

// NewJSONWriter returns a JSONWriter that writes to w. The JSONWriter writes
// nothing until it has collected pieceSize bytes, or Flush is called.
func NewJSONWriter(w io.Writer, layout Layout) *JSONWriter {
	return &JSONWriter{output: newOutput(w), pretty: layout&Pretty != 0}
}

// Reset discards the state of j and makes it write to w.
func (j *JSONWriter) Reset(w io.Writer) {
	*j = JSONWriter{output: output{w: w, buf: j.buf[:0]}, pretty: j.pretty}
}

func (j *JSONWriter) BeginObject() { j.open('{') }

func (j *JSONWriter) EndObject() { j.close('}') }

func (j *JSONWriter) BeginArray() { j.open('[') }

func (j *JSONWriter) EndArray() { j.close(']') }

func (j *JSONWriter) open(c byte) {
	j.comma()
	j.buf = append(j.buf, c)
	j.sep = false
	j.depth++
}

func (j *JSONWriter) close(c byte) {
	j.depth--
	if j.pretty && j.sep {
		j.line()
	}
	j.buf = append(j.buf, c)
	j.endValue()
}

// comma writes the separator between elements of the same level.
func (j *JSONWriter) comma() {
	if j.sep {
		j.buf = append(j.buf, ',')
	}
	if j.pretty && j.depth > 0 && !j.afterKey {
		j.line()
	}
	j.afterKey = false
}

// line begins a new line with the indentation of the current depth.
func (j *JSONWriter) line() {
	j.buf = append(j.buf, '\n')
	for range j.depth {
		j.buf = append(j.buf, "  "...)
	}
}

// endValue ends a value. If the buffer contains at least pieceSize bytes,
// endValue writes the buffer to the connection.
func (j *JSONWriter) endValue() {
	j.sep = true
	if j.pretty && j.depth == 0 {
		j.buf = append(j.buf, '\n')
	}
	if len(j.buf) >= pieceSize {
		j.Flush()
	}
}

// Key writes the name of a member.
func (j *JSONWriter) Key(name string) {
	j.comma()
	j.buf = append(j.buf, '"')
	j.buf = append(j.buf, name...)
	j.buf = append(j.buf, '"', ':')
	if j.pretty {
		j.buf = append(j.buf, ' ')
	}
	j.sep, j.afterKey = false, true
}

// keyText writes the name of a member, in the layout Compact. The text argument
// is a comma, the name in quotes and a colon.
func (j *JSONWriter) keyText(text string) {
	if !j.sep {
		text = text[1:]
	}
	j.buf = append(j.buf, text...)
	j.sep, j.afterKey = false, true
}

func (j *JSONWriter) Int(n int64) {
	j.comma()
	j.buf = strconv.AppendInt(j.buf, n, 10)
	j.endValue()
}

func (j *JSONWriter) Uint(n uint64) {
	j.comma()
	j.buf = strconv.AppendUint(j.buf, n, 10)
	j.endValue()
}

// UintBetween writes a value whose JSON text consists of before, n and after.
// Lists contain many such values, and one call is faster than several. If the
// layout is not Compact, UintBetween writes nothing and returns false. The
// caller must then write the value piece by piece.
func (j *JSONWriter) UintBetween(before string, n uint64, after string) bool {
	if j.pretty {
		return false
	}
	j.comma()
	j.buf = append(j.buf, before...)
	j.buf = strconv.AppendUint(j.buf, n, 10)
	j.buf = append(j.buf, after...)
	j.endValue()
	return true
}

// Float writes f so that readers get the same double. A whole number that is
// written without an exponent gets the suffix ".0", so that strict readers
// recognize it as a floating-point number.
func (j *JSONWriter) Float(f float64) {
	j.comma()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	form := byte('f')
	if a := math.Abs(f); a >= 1e15 || (a > 0 && a < 1e-6) {
		form = 'e'
	}
	j.buf = strconv.AppendFloat(j.buf, f, form, -1, 64)
	if form == 'f' && f == math.Trunc(f) {
		j.buf = append(j.buf, ".0"...)
	}
	j.endValue()
}

func (j *JSONWriter) Bool(b bool) {
	j.comma()
	j.buf = strconv.AppendBool(j.buf, b)
	j.endValue()
}

func (j *JSONWriter) Null() {
	j.comma()
	j.buf = append(j.buf, "null"...)
	j.endValue()
}

// String writes s. It escapes only the characters that JSON requires to be
// escaped.
func (j *JSONWriter) String(s string) {
	j.comma()
	j.buf = append(j.buf, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			j.buf = append(j.buf, s[start:i]...)
			j.buf = appendEscape(j.buf, c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			j.buf = append(j.buf, s[start:i]...)
			j.buf = append(j.buf, "\uFFFD"...)
			start = i + 1
		}
		i += n
	}
	j.buf = append(j.buf, s[start:]...)
	j.buf = append(j.buf, '"')
	j.endValue()
}

const hexDigits = "0123456789abcdef"

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
