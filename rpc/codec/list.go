package codec

import "reflect"

// Record encodes or decodes a record inside another record. In a description it
// is one row, with the name of the inner record's table.
func Record[T any](c *Codec, name, table string, v *T, walk func(*Codec, *T)) {
	if c.mode == describing {
		c.row(name, "@"+table)
		return
	}
	walk(c, v)
}

// List encodes or decodes a count, followed by that many records. A count of
// NO_VAL means a null list, which corresponds to nil in memory. In a
// description, element is the name of the element's type.
func List[T any](c *Codec, name, element string, v *[]T, walk func(*Codec, *T)) {
	if c.mode == describing {
		c.row(name, "list<"+element+">")
		return
	}
	n := uint32(len(*v))
	if *v == nil {
		n = noVal32
	}
	if c.mode == filling {
		n = [...]uint32{noVal32, 0, 1, 2, 3}[c.rng.IntN(5)]
	} else {
		c.Uint32(name, &n)
	}
	if n == noVal32 || c.err != nil {
		*v = nil
		return
	}
	elements(c, name, n, v, walk)
}

// Array encodes or decodes a count, followed by that many elements. An empty
// array corresponds to nil in memory. In a description, element is the name of
// the element's type.
func Array[T any](c *Codec, name, element string, v *[]T, walk func(*Codec, *T)) {
	if c.mode == describing {
		c.row(name, element+"[]")
		return
	}
	n := uint32(len(*v))
	if c.mode == filling {
		n = uint32(c.rng.IntN(4))
	} else {
		c.Uint32(name, &n)
	}
	if c.mode != encoding && (n == 0 || c.err != nil) {
		*v = nil
		return
	}
	elements(c, name, n, v, walk)
}

// elements encodes or decodes n elements of v. When decoding or filling, it
// replaces the slice.
func elements[T any](c *Codec, name string, n uint32, v *[]T, walk func(*Codec, *T)) {
	if c.mode == encoding {
		for i := range *v {
			walk(c, &(*v)[i])
		}
		return
	}
	if !c.fits(name, uint64(n)) {
		return
	}
	if c.skipping {
		*v = nil
		for range n {
			var element T
			if walk(c, &element); c.err != nil {
				return
			}
		}
		return
	}
	// The slice grows as elements arrive, because in memory an element may be a
	// hundred times larger than on the wire.
	*v = make([]T, 0, min(n, 16))
	size := sizeOf[T]()
	for range n {
		if c.addListMemory(name, size); c.err != nil {
			return
		}
		*v = append(*v, *new(T))
		walk(c, &(*v)[len(*v)-1])
	}
}

// maxListMemory limits the memory for the elements of all lists in a message.
// If records are passed on one by one, it limits the memory for the lists of a
// single record. A list of empty texts takes at least four times as many bytes
// in memory as on the wire.
const maxListMemory = 256 << 20

// addListMemory adds size, the memory of a list element that is kept, to the
// total. It sets an error if the total exceeds maxListMemory.
func (c *Codec) addListMemory(name string, size int) {
	if c.listMemory += size; c.listMemory > maxListMemory {
		c.Fail(name, ErrLarge)
	}
}

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// fits reports whether n is a possible count, and sets an error if it is not.
// When decoding, every element takes at least one of the unread bytes.
func (c *Codec) fits(name string, n uint64) bool {
	if c.mode == decoding && n > uint64(c.unread()) {
		c.Fail(name, ErrCount)
		return false
	}
	return true
}

// Strings encodes or decodes an Array of texts, such as arguments. An empty text
// stays empty: slurmctld takes a null for the end of the array.
func (c *Codec) Strings(name string, v *[]string) {
	Array(c, name, "str", v, func(c *Codec, s *string) { c.Element(s) })
}

// NullableStrings encodes or decodes an Array of texts, in which "" stands for
// null.
func (c *Codec) NullableStrings(name string, v *[]string) {
	Array(c, name, "str", v, func(c *Codec, s *string) { c.String(name, s) })
}

// Uint16s encodes or decodes an Array of 16-bit numbers.
func (c *Codec) Uint16s(name string, v *[]uint16) {
	if c.skipping {
		c.skipNumbers(name, 2)
		return
	}
	Array(c, name, "u16", v, func(c *Codec, n *uint16) { c.Uint16(name, n) })
}

// Uint32s encodes or decodes an Array of 32-bit numbers.
func (c *Codec) Uint32s(name string, v *[]uint32) {
	if c.skipping {
		c.skipNumbers(name, 4)
		return
	}
	Array(c, name, "u32", v, func(c *Codec, n *uint32) { c.Uint32(name, n) })
}

// Uint64s encodes or decodes an Array of 64-bit numbers.
func (c *Codec) Uint64s(name string, v *[]uint64) {
	if c.skipping {
		c.skipNumbers(name, 8)
		return
	}
	Array(c, name, "u64", v, func(c *Codec, n *uint64) { c.Uint64(name, n) })
}

// skipNumbers skips an Array of numbers, each of which has size bytes.
func (c *Codec) skipNumbers(name string, size int) {
	var n uint32
	if c.Uint32(name, &n); c.err == nil && c.fits(name, uint64(n)*uint64(size)) {
		c.read(name, int(n)*size)
	}
}

// Count encodes or decodes the number of records in a later Loop. The number is
// sent as a Uint32. When encoding, n must be that number. In all modes, Count
// returns the number, or 0 after an error.
func (c *Codec) Count(name string, n int) int { return count(c, name, uint32(n), c.Uint32) }

// Count16 works like Count, but sends the number as a Uint16.
func (c *Codec) Count16(name string, n int) int { return count(c, name, uint16(n), c.Uint16) }

func count[T uint16 | uint32](c *Codec, name string, n T, walk func(string, *T)) int {
	if c.mode == filling {
		n = T(c.rng.IntN(4))
	} else {
		walk(name, &n)
	}
	if c.err != nil || !c.fits(name, uint64(n)) {
		return 0
	}
	return int(n)
}

// Loop calls walk(i) for each i from 0 to n-1. The n argument is the result of
// the Count with the same name. In a description, the fields occur once,
// between a "loop" and an "endloop" row.
func (c *Codec) Loop(name string, n int, walk func(i int)) {
	if c.mode == describing {
		c.row(name, "loop")
		walk(0)
		c.row("", "endloop")
		return
	}
	for i := 0; i < n && c.err == nil; i++ {
		walk(i)
	}
}

// Stream is the repeated part of an answer. Its elements are either kept in a
// list or passed on one at a time. If they are passed on, an answer of any
// length needs only the memory of one element.
type Stream[T any] struct {
	List []T            // encoding: the elements to send; decoding without Each: the received elements
	Each func(*T) error // decoding: called with each element, which is valid only during the call

	// Digest is set before each call of Each to a hash of the element's bytes,
	// unless it is nil. Each process has other hashes.
	Digest *uint64

	// Pull is used instead of List when encoding. It is called Len times, and
	// returns the elements one after the other. Each element is valid until the
	// next call.
	Pull func() (*T, error)
	Len  int

	walked  int // encoding: number of elements of List already walked
	element T   // decoding with Each: reused for all elements
}

// Size returns the number of elements to send when encoding.
func (s *Stream[T]) Size() int {
	if s.Pull != nil {
		return s.Len
	}
	return len(s.List)
}

// Next encodes or decodes the stream's next element. It must be called within a
// Loop.
func Next[T any](c *Codec, name, table string, s *Stream[T], walk func(*Codec, *T)) {
	switch {
	case c.mode == encoding && s.Pull != nil:
		element, err := s.Pull()
		if err != nil {
			c.Fail(name, err)
			return
		}
		Record(c, name, table, element, walk)
		c.flush()
	case c.mode == encoding:
		if s.walked == len(s.List) {
			c.Fail(name, ErrCount)
			return
		}
		Record(c, name, table, &s.List[s.walked], walk)
		s.walked++
	case c.mode == decoding && s.Each != nil:
		var zero T
		s.element = zero
		saved := c.listMemory
		if s.Digest != nil {
			c.pieces.beginDigest(c.off)
		}
		if Record(c, name, table, &s.element, walk); c.err == nil {
			if s.Digest != nil {
				*s.Digest = c.pieces.endDigest(c.buf[:c.off])
			}
			c.err = s.Each(&s.element)
		}
		c.listMemory = saved
	default:
		var element T
		if Record(c, name, table, &element, walk); c.mode != describing && c.err == nil {
			c.addListMemory(name, sizeOf[T]())
			s.List = append(s.List, element)
		}
	}
}
