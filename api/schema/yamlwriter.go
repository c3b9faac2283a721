package schema

import (
	"bytes"
	"io"
	"math"
	"strconv"
)

// YAMLWriter is an Encoder that writes YAML. It appends the YAML to one buffer,
// and writes the buffer in pieces.
//
// Readers of YAML 1.1 and of YAML 1.2 get the same values. YAMLWriter quotes
// any text that a reader of either version could take for a value of another
// type, such as "on", "1e3", "12:30" or "2024-01-01". As with a JSONWriter,
// bytes that are not UTF-8 become U+FFFD, integers keep all 64 bits, and NaN
// and infinity become 0.
//
// The layout Pretty uses the block style. Compact uses the flow style and writes
// everything on one line. Without NoTag, each value has a tag that names its
// type, as in slurmrestd's answers.
type YAMLWriter struct {
	output
	flow, tags bool
	open       []yamlLevel // unclosed objects and arrays, outermost first
	sep        bool        // flow style: the next key or element needs a comma before it
}

// yamlLevel is an unclosed object or array. The flow style uses only the field
// array.
type yamlLevel struct {
	array    bool
	nonEmpty bool // it has at least one element
	inline   bool // its first element is on the line that opened it, for example after "- "
	indent   int
}

// NewYAMLWriter returns a YAMLWriter that writes to w. Its pieces have the same
// size as those of a JSONWriter.
func NewYAMLWriter(w io.Writer, layout Layout) *YAMLWriter {
	return &YAMLWriter{output: newOutput(w), flow: layout&Pretty == 0, tags: layout&NoTag == 0}
}

// Reset discards the state of y and makes it write to w.
func (y *YAMLWriter) Reset(w io.Writer) {
	*y = YAMLWriter{output: output{w: w, buf: y.buf[:0]}, flow: y.flow, tags: y.tags, open: y.open[:0]}
}

func (y *YAMLWriter) BeginObject() { y.begin(false) }

func (y *YAMLWriter) EndObject() { y.end("{}") }

func (y *YAMLWriter) BeginArray() { y.begin(true) }

func (y *YAMLWriter) EndArray() { y.end("[]") }

func (y *YAMLWriter) begin(array bool) {
	y.beginValue()
	level := yamlLevel{array: array}
	if n := len(y.open); n > 0 {
		level.indent = y.open[n-1].indent + 2
	}
	level.inline = !y.tags && (len(y.open) == 0 || y.open[len(y.open)-1].array)
	tag, bracket := "!!map", byte('{')
	if array {
		tag, bracket = "!!seq", '['
	}
	y.tag(tag)
	if y.flow {
		if y.tags {
			y.buf = append(y.buf, ' ')
		}
		y.buf = append(y.buf, bracket)
	}
	y.sep = false
	y.open = append(y.open, level)
}

func (y *YAMLWriter) end(empty string) {
	level := y.open[len(y.open)-1]
	y.open = y.open[:len(y.open)-1]
	switch {
	case y.flow:
		y.buf = append(y.buf, empty[1])
	case !level.nonEmpty:
		y.writeSpace()
		y.buf = append(y.buf, empty...)
	}
	y.endValue()
}

// Key writes the name of the next value.
func (y *YAMLWriter) Key(name string) {
	y.beginItem()
	y.text(name)
	y.buf = append(y.buf, ':')
	if y.flow {
		y.buf = append(y.buf, ' ')
		y.sep = false
	}
}

// beginItem writes the separator before a key or an element: a new line or a
// space in the block style, a comma in the flow style.
func (y *YAMLWriter) beginItem() {
	if y.flow {
		if y.sep {
			y.buf = append(y.buf, ", "...)
		}
		return
	}
	level := &y.open[len(y.open)-1]
	switch {
	case level.nonEmpty || !level.inline:
		y.buf = append(y.buf, '\n')
		for range level.indent {
			y.buf = append(y.buf, ' ')
		}
	default:
		y.writeSpace()
	}
	level.nonEmpty = true
}

// beginValue begins an item if the next value is an element of an array. In the
// block style it also writes the dash.
func (y *YAMLWriter) beginValue() {
	if n := len(y.open); n > 0 && y.open[n-1].array {
		y.beginItem()
		if !y.flow {
			y.buf = append(y.buf, '-')
		}
	}
}

// writeSpace writes the space that separates a value from the key, dash or tag
// before it.
func (y *YAMLWriter) writeSpace() {
	if n := len(y.buf); !y.flow && n > 0 && (y.buf[n-1] == ':' || y.buf[n-1] == '-' || y.endsWithTag()) {
		y.buf = append(y.buf, ' ')
	}
}

// endsWithTag reports whether the last output was a tag.
func (y *YAMLWriter) endsWithTag() bool {
	return bytes.HasSuffix(y.buf, []byte("!!map")) || bytes.HasSuffix(y.buf, []byte("!!seq"))
}

// tag writes a tag with the type of the next value.
func (y *YAMLWriter) tag(name string) {
	if y.tags {
		y.writeSpace()
		y.buf = append(y.buf, name...)
	}
}

// scalar writes everything that comes before a scalar: dash, space and tag.
func (y *YAMLWriter) scalar(tag string) {
	y.beginValue()
	if y.tags {
		y.tag(tag)
		y.buf = append(y.buf, ' ')
		return
	}
	y.writeSpace()
}

// endValue ends a value. It flushes the buffer if the buffer holds enough bytes
// for a piece.
func (y *YAMLWriter) endValue() {
	y.sep = true
	if len(y.open) == 0 {
		y.buf = append(y.buf, '\n')
	}
	if len(y.buf) >= pieceSize {
		y.Flush()
	}
}

// String writes s. It quotes s if a YAML reader could otherwise take it for a
// value of another type.
func (y *YAMLWriter) String(s string) {
	y.scalar("!!str")
	y.text(s)
	y.endValue()
}

func (y *YAMLWriter) Int(n int64) {
	y.scalar("!!int")
	y.buf = strconv.AppendInt(y.buf, n, 10)
	y.endValue()
}

func (y *YAMLWriter) Uint(n uint64) {
	y.scalar("!!int")
	y.buf = strconv.AppendUint(y.buf, n, 10)
	y.endValue()
}

// Float writes f so that readers get the same double. It writes a decimal point
// even before an exponent, because readers of YAML 1.1 require one.
func (y *YAMLWriter) Float(f float64) {
	y.scalar("!!float")
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	var number [32]byte
	form := byte('f')
	if a := math.Abs(f); a >= 1e15 || (a > 0 && a < 1e-6) {
		form = 'e'
	}
	digits := strconv.AppendFloat(number[:0], f, form, -1, 64)
	mantissa, exponent, _ := bytes.Cut(digits, []byte("e"))
	y.buf = append(y.buf, mantissa...)
	if !bytes.Contains(mantissa, []byte(".")) {
		y.buf = append(y.buf, ".0"...)
	}
	if len(exponent) > 0 {
		y.buf = append(append(y.buf, 'e'), exponent...)
	}
	y.endValue()
}

func (y *YAMLWriter) Bool(b bool) {
	y.scalar("!!bool")
	y.buf = strconv.AppendBool(y.buf, b)
	y.endValue()
}

func (y *YAMLWriter) Null() {
	y.scalar("!!null")
	y.buf = append(y.buf, "null"...)
	y.endValue()
}
