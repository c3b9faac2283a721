package schema

import "io"

// Layout determines how a body is laid out. The content of a body is the same
// in all layouts.
type Layout uint8

const (
	Compact Layout = 0 // as short as the format allows, on one line
	Pretty  Layout = 1 // each value on its own line, indented
	NoTag   Layout = 2 // combined with one of the others; YAML only: no value has a tag for its type
)

// output is a writer's buffer, which is written in pieces.
type output struct {
	w    io.Writer
	buf  []byte
	mark int // length of buf at the last Mark; 0 for none
	err  error
}

func newOutput(w io.Writer) output {
	return output{w: w, buf: make([]byte, 0, pieceSize+4<<10)}
}

// A Marker is a writer that distinguishes the records of a body from what follows
// them.
type Marker interface {
	io.Writer

	// Mark is called at the end of the records, with the part of them that has
	// not been written yet. It returns true if it has written this part.
	Mark(rest []byte) bool
}

// Mark marks the end of the records. Of several marks, the last one counts.
func (o *output) Mark() {
	o.mark = len(o.buf)
	if m, ok := o.w.(Marker); ok && o.err == nil && m.Mark(o.buf) {
		o.buf, o.mark = o.buf[:0], 0
	}
}

// Marked returns what was collected before Mark. It returns nil if something of
// the body has been written before, or if Mark was not called.
func (o *output) Marked() []byte { return o.buf[:o.mark] }

// Capacity returns the size of the buffer in bytes.
func (o *output) Capacity() int { return cap(o.buf) }

// Fail aborts the body with err.
func (o *output) Fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// Err returns the first error.
func (o *output) Err() error { return o.err }

// Flush writes the collected bytes. After an error it discards them instead,
// because a truncated answer must never look complete.
func (o *output) Flush() error {
	if o.err == nil && len(o.buf) > 0 {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf, o.mark = o.buf[:0], 0
	return o.err
}
