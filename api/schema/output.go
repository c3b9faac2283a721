package schema

import "io"

// Layout is the arrangement of a body by a format's writer. The content is the
// same in all layouts.
type Layout uint8

// The layouts.
const (
	Compact Layout = iota // as short as the format allows: one line
	Pretty                // a line for each value, indented; in YAML each with its type's tag
	NoTag                 // YAML alone: Pretty without the tags
)

// output is where a writer's bytes go: one buffer, written out in pieces.
type output struct {
	w   io.Writer
	buf []byte
	err error
}

func newOutput(w io.Writer) output {
	return output{w: w, buf: make([]byte, 0, pieceSize+4<<10)}
}

// Buffered returns how many bytes were collected and not yet written.
func (o *output) Buffered() int { return len(o.buf) }

// Capacity returns the size of the buffer in bytes.
func (o *output) Capacity() int { return cap(o.buf) }

// Fail gives the body up.
func (o *output) Fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// Err returns the first error.
func (o *output) Err() error { return o.err }

// Flush sends what has been collected. After a failure it drops it instead: half
// an answer must never end up looking like a whole one.
func (o *output) Flush() error {
	if o.err == nil && len(o.buf) > 0 {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}
