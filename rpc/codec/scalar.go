package codec

import (
	"encoding/binary"
	"math"

	"schedrestd/model"
)

// Uint8 encodes or decodes one byte.
func (c *Codec) Uint8(name string, v *uint8) {
	switch c.mode {
	case encoding:
		c.buf = append(c.buf, *v)
	case decoding:
		if b := c.read(name, 1); b != nil {
			*v = b[0]
		}
	case filling:
		*v = uint8(c.rng.Uint32())
	case describing:
		c.row(name, "u8")
	}
}

// Uint16 encodes or decodes two bytes, big endian.
func (c *Codec) Uint16(name string, v *uint16) {
	switch c.mode {
	case encoding:
		c.buf = binary.BigEndian.AppendUint16(c.buf, *v)
	case decoding:
		if b := c.read(name, 2); b != nil {
			*v = binary.BigEndian.Uint16(b)
		}
	case filling:
		*v = uint16(c.rng.Uint32())
	case describing:
		c.row(name, "u16")
	}
}

// Uint32 encodes or decodes four bytes, big endian.
func (c *Codec) Uint32(name string, v *uint32) {
	switch c.mode {
	case encoding:
		c.buf = binary.BigEndian.AppendUint32(c.buf, *v)
	case decoding:
		if b := c.read(name, 4); b != nil {
			*v = binary.BigEndian.Uint32(b)
		}
	case filling:
		*v = c.rng.Uint32()
	case describing:
		c.row(name, "u32")
	}
}

// Uint16In32 encodes or decodes a number that is a Uint16 on the wire and a
// uint32 in memory. It is for protocol versions in which the field was still a
// Uint16. It sends only the low 16 bits of v.
func (c *Codec) Uint16In32(name string, v *uint32) {
	narrow := uint16(*v)
	if c.Uint16(name, &narrow); c.mode != encoding {
		*v = uint32(narrow)
	}
}

// Uint32In64 encodes or decodes a number that is a Uint32 on the wire and a
// uint64 in memory. It is for protocol versions in which the field was still a
// Uint32. It sends only the low 32 bits of v.
func (c *Codec) Uint32In64(name string, v *uint64) {
	narrow := uint32(*v)
	if c.Uint32(name, &narrow); c.mode != encoding {
		*v = uint64(narrow)
	}
}

// Uint64 encodes or decodes eight bytes, big endian.
func (c *Codec) Uint64(name string, v *uint64) {
	switch c.mode {
	case encoding:
		c.buf = binary.BigEndian.AppendUint64(c.buf, *v)
	case decoding:
		if b := c.read(name, 8); b != nil {
			*v = binary.BigEndian.Uint64(b)
		}
	case filling:
		*v = c.rng.Uint64()
	case describing:
		c.row(name, "u64")
	}
}

// Bool encodes or decodes one byte, which is 0 or 1. A decoder accepts any
// other value as true.
func (c *Codec) Bool(name string, v *bool) {
	if c.mode == describing {
		c.row(name, "bool")
		return
	}
	var b uint8
	if *v {
		b = 1
	}
	c.Uint8(name, &b)
	if c.mode != encoding { // not when encoding, because another goroutine may be reading *v
		*v = b != 0
	}
}

// Time encodes or decodes eight bytes, signed seconds since 1970.
func (c *Codec) Time(name string, v *model.Time) {
	if c.mode == describing {
		c.row(name, "time")
		return
	}
	u := uint64(*v)
	if c.Uint64(name, &u); c.mode != encoding {
		*v = model.Time(u)
	}
}

// floatScale is the factor by which a floating-point number is multiplied
// before it is sent.
const floatScale = 1_000_000

// Float encodes or decodes a floating-point number. The number is multiplied by
// a million and sent as an IEEE double, big endian. After a round trip, the
// last bit of the number may differ.
func (c *Codec) Float(name string, v *float64) {
	switch c.mode {
	case describing:
		c.row(name, "f64")
	case filling:
		*v = float64(c.rng.IntN(1 << 20))
	default:
		u := math.Float64bits(*v * floatScale)
		if c.Uint64(name, &u); c.mode == decoding {
			*v = math.Float64frombits(u) / floatScale
		}
	}
}

// OptUint8 encodes or decodes a Uint8 in which 0xfe means "not set" and 0xff
// "unlimited".
func (c *Codec) OptUint8(name string, v *model.Opt[uint8]) {
	raw, walked := optToWire(c, v)
	if walked {
		c.Uint8(name, &raw)
		optFromWire(c, v, raw)
	}
}

// OptUint16 encodes or decodes a Uint16 in which 0xfffe means "not set" and
// 0xffff "unlimited".
func (c *Codec) OptUint16(name string, v *model.Opt[uint16]) {
	raw, walked := optToWire(c, v)
	if walked {
		c.Uint16(name, &raw)
		optFromWire(c, v, raw)
	}
}

// OptUint32 encodes or decodes a Uint32 in which 0xfffffffe means "not set" and
// 0xffffffff "unlimited".
func (c *Codec) OptUint32(name string, v *model.Opt[uint32]) {
	raw, walked := optToWire(c, v)
	if walked {
		c.Uint32(name, &raw)
		optFromWire(c, v, raw)
	}
}

// OptUint64 encodes or decodes a Uint64 whose two largest values mean "not set"
// and "unlimited".
func (c *Codec) OptUint64(name string, v *model.Opt[uint64]) {
	raw, walked := optToWire(c, v)
	if walked {
		c.Uint64(name, &raw)
		optFromWire(c, v, raw)
	}
}

// optToWire returns the number that represents v on the wire, and true. When
// filling, it may instead set v to "not set" or "unlimited", and return false.
// In that case, the caller has nothing more to do.
//
// OptUint8, OptUint16, OptUint32 and OptUint64 are separate functions to save
// memory. A generic function with a method such as Uint16 as an argument would
// allocate memory for each number, and a long list can contain a million
// numbers.
func optToWire[T model.Unsigned](c *Codec, v *model.Opt[T]) (raw T, walked bool) {
	infinite := ^T(0)
	switch {
	case c.mode == filling && c.rng.IntN(4) == 0:
		*v = [...]model.Opt[T]{{}, model.Infinite[T]()}[c.rng.IntN(2)]
		return 0, false
	case v.Infinite:
		return infinite, true
	case !v.Set:
		return infinite - 1, true
	}
	return v.Number, true
}

// optFromWire sets v to the value that raw represents.
func optFromWire[T model.Unsigned](c *Codec, v *model.Opt[T], raw T) {
	infinite := ^T(0)
	switch {
	case c.mode == encoding:
	case raw == infinite:
		*v = model.Infinite[T]()
	case raw == infinite-1:
		*v = model.Opt[T]{}
	default:
		*v = model.Some(raw)
	}
}
