package ipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Message is one kind of the book with its fields.
type Message interface {
	Kind() Kind
	walk(*walker)
}

// walker writes or reads the fields of a message; a message has one walk for both.
// The first error sticks. Every value has one encoding only, so what was read can
// be written back to the same bytes (the fuzz targets hold it to that).
type walker struct {
	buf     []byte // written so far, or still to read
	reading bool
	err     error
}

var (
	errShort    = errors.New("ends within a field")
	errLeftover = errors.New("has bytes left over")
)

func (w *walker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// take is the next n bytes to read, nil when there are not so many.
func (w *walker) take(n int) []byte {
	if w.err == nil && len(w.buf) < n {
		w.err = errShort
	}
	if w.err != nil {
		return nil
	}
	b := w.buf[:n]
	w.buf = w.buf[n:]
	return b
}

func (w *walker) u8(v *uint8) {
	if !w.reading {
		w.buf = append(w.buf, *v)
	} else if b := w.take(1); b != nil {
		*v = b[0]
	}
}

func (w *walker) u16(v *uint16) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint16(w.buf, *v)
	} else if b := w.take(2); b != nil {
		*v = binary.LittleEndian.Uint16(b)
	}
}

func (w *walker) u32(v *uint32) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, *v)
	} else if b := w.take(4); b != nil {
		*v = binary.LittleEndian.Uint32(b)
	}
}

func (w *walker) u64(v *uint64) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, *v)
	} else if b := w.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

// flag is a byte that is 0 or 1 and nothing else.
func (w *walker) flag(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	w.u8(&b)
	if b > 1 {
		w.fail("has a flag that is %d", b)
	}
	*v = b == 1
}

// span is a time span in whole milliseconds.
func (w *walker) span(v *time.Duration) {
	ms := uint32(min(max(0, v.Milliseconds()), 1<<32-1))
	w.u32(&ms)
	*v = time.Duration(ms) * time.Millisecond
}

// text is a string of at most limit bytes, its length first.
func (w *walker) text(v *string, limit int) {
	n := uint16(min(len(*v), 1<<16-1))
	if !w.reading && len(*v) > limit {
		w.fail("has a text of %d bytes, more than %d", len(*v), limit)
	}
	w.u16(&n)
	if int(n) > limit {
		w.fail("has a text of %d bytes, more than %d", n, limit)
		return
	}
	if !w.reading {
		w.buf = append(w.buf, *v...)
	} else if b := w.take(int(n)); b != nil {
		*v = string(b)
	}
}

// bytes is a value of a fixed length.
func (w *walker) bytes(v []byte) {
	if !w.reading {
		w.buf = append(w.buf, v...)
	} else if b := w.take(len(v)); b != nil {
		copy(v, b)
	}
}

// blob is at most limit bytes, their number first.
func (w *walker) blob(v *[]byte, limit int) {
	text := string(*v)
	w.text(&text, limit)
	if w.reading && w.err == nil {
		*v = []byte(text)
	}
}

// list is a count and then the elements, at most limit of them. The count is checked
// against the bytes left (least is the size of the smallest element), so a few
// bytes can't make the reader allocate a long list.
func list[T any](w *walker, s *[]T, limit, least int, each func(*T)) {
	n := uint16(min(len(*s), 1<<16-1))
	w.u16(&n)
	if int(n) > limit {
		w.fail("has a list of %d, more than %d", n, limit)
		return
	}
	if w.reading && w.err == nil {
		if int(n)*least > len(w.buf) {
			w.err = errShort
			return
		}
		*s = nil
		if n > 0 {
			*s = make([]T, n)
		}
	}
	for i := range *s {
		each(&(*s)[i])
	}
}

// encode is m as a frame: its kind, then its fields.
func encode(m Message) ([]byte, error) {
	w := &walker{buf: []byte{byte(m.Kind())}}
	m.walk(w)
	if w.err == nil && len(w.buf) > MaxMessage {
		w.fail("is longer than %d bytes", MaxMessage)
	}
	return w.buf, w.err
}

// decode reads the fields of m from b and refuses what is left over.
func decode(b []byte, m Message) error {
	w := &walker{buf: b, reading: true}
	m.walk(w)
	if w.err == nil && len(w.buf) > 0 {
		w.err = errLeftover
	}
	return w.err
}
