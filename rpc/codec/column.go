package codec

// Column encodes or decodes one field of all records in rows, for a list that
// is sent field by field. On the wire, the values of the field are an array: a
// count, which must be len(rows), followed by one value for each record. For
// the first field of the list, Array must be used instead, because it creates
// the rows.
func Column[T any](c *Codec, name, element string, rows []T, walk func(*Codec, *T)) {
	if c.mode == describing {
		c.row(name, element+"[]")
		return
	}
	n := uint32(len(rows))
	if c.mode != filling {
		c.Uint32(name, &n)
	}
	if c.err == nil && uint64(n) != uint64(len(rows)) {
		c.Fail(name, ErrColumn)
	}
	for i := range rows {
		if c.err != nil {
			return
		}
		walk(c, &rows[i])
	}
}

// StreamList encodes or decodes the elements of the Stream s in the form of a
// List.
func StreamList[T any](c *Codec, name, element string, s *Stream[T], walk func(*Codec, *T)) {
	if c.mode == describing {
		c.row(name, "list<"+element+">")
		return
	}
	n := uint32(s.Size())
	if s.Pull == nil && s.List == nil {
		n = noVal32
	}
	if c.mode == filling {
		n = [...]uint32{noVal32, 0, 1, 2, 3}[c.rng.IntN(5)]
	} else {
		c.Uint32(name, &n)
	}
	if n == noVal32 || c.err != nil || !c.fits(name, uint64(n)) {
		return
	}
	if c.mode != encoding && s.Each == nil {
		s.List = make([]T, 0, min(n, 16))
	}
	for range n {
		if c.err != nil {
			return
		}
		Next(c, name, element, s, walk)
	}
	s.walked = 0 // so that a client can encode the list again
}

// Inline encodes or decodes the stream's next element within a Loop, like Next.
// But in a description, the fields of the element belong to the loop, and not
// to a table of their own.
func Inline[T any](c *Codec, name string, s *Stream[T], walk func(*Codec, *T)) {
	if c.mode == describing {
		var element T
		walk(c, &element)
		return
	}
	Next(c, name, "", s, walk)
}
