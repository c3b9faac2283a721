// Package codec converts Slurm's RPC records between memory and bytes.
//
// Each record is declared once, by a function called its walk. The walk names
// the fields in wire order, and the protocol versions that have them. The same
// function can encode a record, decode it, fill it with random values for
// round-trip tests, or describe it. A test compares the descriptions with the
// tables of the protocol, and the documentation of the records is generated
// from the descriptions. An example:
//
//	func node(c *codec.Codec, n *model.Node) {
//		c.String("name", &n.Name)
//		if c.Since(codec.V2505) {
//			c.String("topology_str", &n.Topology)
//		}
//		c.Uint16("cpus", &n.CPUs)
//	}
//
// After the first error, all calls do nothing. So a walk needs no error
// handling. At the end, the caller checks Err or Finish. Finish also returns an
// error if bytes are left over. No memory is allocated for a length or count
// that exceeds the number of bytes left in the input.
//
// The comment on each method describes how the method's type is laid out in
// bytes. Slurm's messages use these layouts in all protocol versions from Oldest
// to Newest.
package codec

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// Version is the number of a protocol version. It is the high byte of a 16-bit
// field in a message's header.
type Version uint16

// The protocol versions, named after the release that introduced them.
const (
	V2205 Version = 38
	V2302 Version = 39
	V2311 Version = 40
	V2405 Version = 41
	V2411 Version = 42
	V2505 Version = 43
	V2511 Version = 44
	V2605 Version = 45
	V2611 Version = 46 // as in a development snapshot

	Oldest = V2205
	Newest = V2611
)

// Release returns the first Slurm release that uses v, such as "24.11".
func (v Version) Release() string {
	releases := [...]string{"22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05", "26.11"}
	if v < Oldest || v > Newest {
		return fmt.Sprintf("protocol %d", uint16(v))
	}
	return releases[v-Oldest]
}

// Errors of a decoder.
var (
	ErrShort     = errors.New("message ends early")
	ErrCount     = errors.New("count is larger than the bytes left")
	ErrNoNUL     = errors.New("text without its final NUL")
	ErrLeftover  = errors.New("bytes left over")
	ErrBitString = errors.New("bit string does not match its length or is not hexadecimal")
	ErrColumn    = errors.New("count differs from that of the records")
	ErrDecimal   = errors.New("text is not a decimal number")
	ErrLong      = errors.New("value is longer than any valid one")
	ErrLarge     = errors.New("record needs more memory than any valid one")
)

type mode uint8

const (
	encoding mode = iota
	decoding
	filling
	describing
)

// A Codec encodes, decodes, fills or describes records, in one protocol
// version. It is not safe for concurrent use.
type Codec struct {
	mode       mode
	version    Version
	buf        []byte    // encoding: output; decoding: current piece of the input
	out        io.Writer // encoding: destination of buf; if nil, Bytes returns buf
	off        int       // decoding: bytes of buf consumed
	pieces     pieces    // decoding: input that is not in buf
	skipping   bool      // decoding: texts, bit strings and list elements are not kept
	listMemory int       // decoding: memory of the list elements that are kept, in bytes
	err        error
	rng        *rand.Rand
	rows       []Row
	trace      func(field string, at, n int, text bool)
	isText     bool // decoding: what is read is a part of a text
}

// NewEncoder returns a Codec that appends to buf, which may be nil.
func NewEncoder(v Version, buf []byte) *Codec {
	return &Codec{mode: encoding, version: v, buf: buf}
}

// NewStreamEncoder returns a Codec for a record that contains a Stream with a
// Pull function. Between the elements of the stream, the Codec writes the
// encoded bytes to out. Finish writes the rest.
func NewStreamEncoder(v Version, out io.Writer) *Codec {
	return &Codec{mode: encoding, version: v, out: out}
}

// flushSize is how many bytes a stream encoder collects before it writes them.
const flushSize = 32 << 10

// flush writes the encoded bytes once there are enough.
func (c *Codec) flush() {
	if c.out == nil || c.err != nil || len(c.buf) < flushSize {
		return
	}
	_, c.err = c.out.Write(c.buf)
	if c.buf = c.buf[:0]; cap(c.buf) > 4*flushSize {
		c.buf = nil // so that the memory for one long element is not kept until the end
	}
}

// NewDecoder returns a Codec that decodes buf. The decoded strings and byte
// slices are copies.
func NewDecoder(v Version, buf []byte) *Codec {
	return &Codec{mode: decoding, version: v, buf: buf}
}

// NewFiller returns a Codec for tests. It sets each field to a random value
// that survives a round trip.
func NewFiller(v Version, rng *rand.Rand) *Codec {
	return &Codec{mode: filling, version: v, rng: rng}
}

// NewDescriber returns a Codec that lists the fields of a record, with their
// types; see Rows.
func NewDescriber(v Version) *Codec {
	return &Codec{mode: describing, version: v}
}

// Trace makes a decoder call f with the offset and the length of each field,
// both in bytes, and whether it is a text. A text is two calls: its length, and
// its bytes.
func (c *Codec) Trace(f func(field string, at, n int, text bool)) { c.trace = f }

// Since reports whether the protocol version of c is v or newer.
func (c *Codec) Since(v Version) bool { return c.version >= v }

// Until reports whether the protocol version of c is older than v. It is for
// fields that v no longer has.
func (c *Codec) Until(v Version) bool { return c.version < v }

// Decoding reports whether c decodes a record. If so, the values come from the
// input, and the caller should check them.
func (c *Codec) Decoding() bool { return c.mode == decoding }

// SkipIf calls walk for a part of a record. If c decodes the record and skip is
// true, the part's texts, bit strings and lists are not checked, and are empty.
// This costs much less than decoding them.
func (c *Codec) SkipIf(skip bool, walk func()) {
	before := c.skipping
	c.skipping = before || skip && c.mode == decoding
	walk()
	c.skipping = before
}

// Storing reports whether c sets the fields of a record rather than reading
// them. That is the case when c decodes or fills the record.
func (c *Codec) Storing() bool { return c.mode == decoding || c.mode == filling }

// Err returns the first error, or nil.
func (c *Codec) Err() error { return c.err }

// Fail sets the error, unless an error is already set.
func (c *Codec) Fail(name string, err error) {
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("field %s at byte %d: %w", name, c.pieces.offset+c.off, err)
	}
}

// Finish returns Err. If there is no error but a decoder has not consumed its
// whole input, Finish returns ErrLeftover. A stream encoder first writes the
// rest of the encoded bytes.
func (c *Codec) Finish() error {
	if c.err == nil && c.out != nil {
		_, c.err = c.out.Write(c.buf)
		c.buf = nil
	}
	if c.err == nil && c.mode == decoding && c.unread() > 0 {
		c.err = fmt.Errorf("%d %w", c.unread(), ErrLeftover)
	}
	return c.err
}

// Bytes returns the bytes that an encoder has written, or nil after an error.
func (c *Codec) Bytes() []byte {
	if c.err != nil || c.mode != encoding {
		return nil
	}
	return c.buf
}

// Rest returns the unread bytes of a decoder's current piece of input, without
// copying them.
func (c *Codec) Rest() []byte {
	if c.err != nil || c.mode != decoding {
		return nil
	}
	return c.buf[c.off:]
}

// read returns the next n bytes of the input, which are valid until the next
// call. If fewer bytes are left, it sets the error and returns nil.
func (c *Codec) read(name string, n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > len(c.buf)-c.off {
		return c.join(name, n)
	}
	if c.trace != nil {
		c.trace(name, c.pieces.offset+c.off, n, c.isText)
	}
	b := c.buf[c.off : c.off+n]
	c.off += n
	return b
}
