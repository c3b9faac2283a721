package ipc

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Message is a message, or a part of a message. Walk encodes or decodes its
// fields.
type Message interface{ Walk(*Walker) }

// Walker encodes or decodes the fields of a message. After an error, it decodes
// no more fields. Every value has exactly one encoding, so encoding a decoded
// message yields the original bytes. The fuzz targets check that.
type Walker struct {
	buf     []byte // the bytes written so far, or those not read yet
	reading bool
	err     error
	hook    func(field any, label string, lo, hi int) // for tests that list or set the fields of messages
}

var (
	errShort    = errors.New("ends within a field")
	errLeftover = errors.New("has bytes left over")
)

func (w *Walker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// read returns the next n bytes to read, or nil when there are fewer.
func (w *Walker) read(n int) []byte {
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

// visit passes a field to the test hook, if one is set. The caller encodes or
// decodes the field afterwards.
func (w *Walker) visit(field any, label string, lo, hi int) {
	if w.hook != nil {
		w.hook(field, label, lo, hi)
	}
}

// number writes v as size bytes, or reads size bytes and returns their value.
func (w *Walker) number(v uint64, size int) uint64 {
	var b [8]byte
	if !w.reading {
		binary.LittleEndian.PutUint64(b[:], v)
		w.buf = append(w.buf, b[:size]...)
	} else if data := w.read(size); data != nil {
		copy(b[:], data)
		v = binary.LittleEndian.Uint64(b[:])
	}
	return v
}

// Fields encodes or decodes values of these types: numbers, durations (in whole
// milliseconds), flags (as 0 or 1), netip values, and Messages. It panics for
// any other type.
func (w *Walker) Fields(list ...any) {
	for _, field := range list {
		switch v := field.(type) {
		case *uint8:
			*v = uint8(w.field(v, "u8", uint64(*v), 1))
		case *uint16:
			*v = uint16(w.field(v, "u16", uint64(*v), 2))
		case *uint32:
			*v = uint32(w.field(v, "u32", uint64(*v), 4))
		case *uint64:
			*v = w.field(v, "u64", *v, 8)
		case *int8:
			*v = int8(w.field(v, "i8", uint64(*v), 1))
		case *int32:
			*v = int32(w.field(v, "i32", uint64(*v), 4))
		case *time.Duration:
			*v = time.Duration(w.field(v, "span", uint64(min(max(0, v.Milliseconds()), 1<<32-1)), 4)) * time.Millisecond
		case *bool:
			w.flag(v)
		case packed:
			w.pack(v)
		case Message:
			v.Walk(w)
		default:
			panic(fmt.Sprintf("a %T has no form in messages", field))
		}
	}
}

// NoFields is embedded in messages that have no fields.
type NoFields struct{}

func (NoFields) Walk(*Walker) {}

// packed is a value of package netip.
type packed interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
	IsValid() bool
}

// maxNetip bounds the encoding of a netip value: an IPv6 address, its zone and
// its port.
const maxNetip = 16 + 64 + 2

// pack encodes or decodes v in the encoding of package netip, preceded by the
// length of that encoding. It rejects invalid values, and encodings that
// package netip would not produce.
func (w *Walker) pack(v packed) {
	w.visit(v, "netip", 0, maxNetip)
	enc, _ := v.MarshalBinary()
	n := w.count(len(enc), "address", maxNetip)
	if !w.reading {
		w.buf = append(w.buf, enc...)
	} else if enc = w.read(n); enc != nil && v.UnmarshalBinary(enc) != nil {
		w.fail("has an address of %d bytes", n)
	}
	if canonical, _ := v.MarshalBinary(); w.err == nil && (!v.IsValid() || !bytes.Equal(canonical, enc)) {
		w.fail("has an address that is none")
	}
}

func (w *Walker) field(ptr any, label string, v uint64, size int) uint64 {
	w.visit(ptr, label, 0, 0)
	return w.number(v, size)
}

// Enum encodes or decodes *v, an enumeration or a set of bits, whose value must
// be from lo to hi. The label argument names the field in errors.
func Enum[T ~uint8 | ~uint16](w *Walker, v *T, label string, lo, hi T) {
	w.visit(v, label, int(lo), int(hi))
	*v = T(w.number(uint64(*v), int(unsafe.Sizeof(*v))))
	if *v < lo || *v > hi {
		w.fail("has a %s that is %d", label, *v)
	}
}

func (w *Walker) flag(v *bool) {
	w.visit(v, "flag", 0, 0)
	var b uint64
	if *v {
		b = 1
	}
	b = w.number(b, 1)
	if b > 1 {
		w.fail("has a flag that is %d", b)
	}
	*v = b == 1
}

// version encodes or decodes the version of the sender's protocol table. It
// fails if the sender's version differs from the version of this program.
func (w *Walker) version() {
	if v := w.number(tableVersion, 4); v != tableVersion {
		w.fail("has another protocol version: install all programs from the same build")
	}
}

// count encodes n, the number of elements or bytes that follow. When it
// decodes, it ignores n and reads the number instead. It returns the number,
// and fails if the number exceeds limit.
func (w *Walker) count(n int, label string, limit int) int {
	if n = int(w.number(uint64(min(n, 1<<16-1)), 2)); n > limit {
		w.fail("has a %s of length %d, more than %d", label, n, limit)
	}
	return n
}

// Text encodes or decodes strings of at most limit bytes, each preceded by its
// length.
func (w *Walker) Text(limit int, list ...*string) {
	for _, v := range list {
		w.visit(v, "text", 0, limit)
		if n := w.count(len(*v), "text", limit); !w.reading {
			w.buf = append(w.buf, *v...)
		} else if b := w.read(n); b != nil {
			*v = string(b)
		}
	}
}

// Bytes encodes or decodes len(v) bytes, without the length.
func (w *Walker) Bytes(v []byte) {
	w.visit(&v[0], "bytes", 0, len(v))
	w.raw(v)
}

// raw writes the bytes of v, or reads the same number of bytes into v.
func (w *Walker) raw(v []byte) {
	if !w.reading {
		w.buf = append(w.buf, v...)
	} else if b := w.read(len(v)); b != nil {
		copy(v, b)
	}
}

// Blob encodes or decodes a byte slice of at most limit bytes, preceded by its
// length.
func (w *Walker) Blob(v *[]byte, limit int) {
	w.visit(v, "blob", 0, limit)
	if n := w.count(len(*v), "blob", limit); !w.reading {
		w.buf = append(w.buf, *v...)
	} else if b := w.read(n); b != nil {
		*v = bytes.Clone(b)
	}
}

// List encodes or decodes the number of elements, which is at most limit. Then
// it calls the function each for every element. minSize is the minimum encoded
// size of an element, in bytes. List checks the number of elements against the
// remaining bytes, so that a short message can't make the reader allocate a
// long list.
func List[T any](w *Walker, s *[]T, limit, minSize int, each func(*T)) {
	w.visit(s, "list", 0, limit)
	n := w.count(len(*s), "list", limit)
	if w.reading && w.err == nil {
		if n*minSize > len(w.buf) {
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

// Encode returns m as a frame: its kind, then its fields.
func Encode(m Message) ([]byte, error) {
	w := &Walker{buf: []byte{byte(KindOf(m))}}
	m.Walk(w)
	if w.err == nil && len(w.buf) > MaxMessage {
		w.fail("is longer than %d bytes", MaxMessage)
	}
	return w.buf, w.err
}

// Unmarshal reads the fields of m from b and rejects leftover bytes.
func Unmarshal(b []byte, m Message) error {
	w := &Walker{buf: b, reading: true}
	m.Walk(w)
	if w.err == nil && len(w.buf) > 0 {
		w.err = errLeftover
	}
	return w.err
}
