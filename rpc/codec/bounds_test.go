package codec

import (
	"encoding/binary"
	"errors"
	"testing"
)

// TestLongText checks a text whose announced length is large. Memory must be
// allocated only for the bytes that arrive.
func TestLongText(t *testing.T) {
	for _, n := range []uint32{maxValue, maxValue + 1, 1 << 29} {
		calls, piece := 0, make([]byte, 64<<10)
		next := func() ([]byte, error) { calls++; return piece, nil }
		c := NewPiecesDecoder(Newest, binary.BigEndian.AppendUint32(nil, n), next, 1<<30)
		var text string
		c.String("text", &text)
		if long := n > maxValue; long != errors.Is(c.Err(), ErrLong) || long && calls > 0 {
			t.Errorf("%d bytes: %v, %d pieces were read", n, c.Err(), calls)
		}
	}
}

// TestListOfNothing checks the memory limit for lists of empty texts. Such
// lists need more bytes in memory than on the wire. The limit applies to the
// sum of all lists that are kept. If records are passed on one by one, the
// limit applies to each record separately.
func TestListOfNothing(t *testing.T) {
	const lists, long = 8, 1 << 10
	var row, in []byte
	row = append(binary.BigEndian.AppendUint32(row, long), make([]byte, 4*long)...)
	in = binary.BigEndian.AppendUint32(in, lists)
	for range lists {
		in = append(in, row...)
	}
	budget := int(2.5 * long * float64(sizeOf[string]())) // for two and a half lists
	walk := func(c *Codec, texts *[]string) { c.Strings("texts", texts) }

	c := NewDecoder(Newest, in)
	c.listMemory = maxListMemory - budget
	var all [][]string
	if Array(c, "lists", "list", &all, walk); !errors.Is(c.Err(), ErrLarge) || len(all) > 3 {
		t.Errorf("kept: %v after %d lists", c.Err(), len(all))
	}

	c = NewDecoder(Newest, in)
	c.listMemory = maxListMemory - budget
	count := 0
	s := Stream[[]string]{Each: func(*[]string) error { count++; return nil }}
	if StreamList(c, "lists", "list", &s, walk); c.Finish() != nil || count != lists {
		t.Errorf("handed on: %v after %d lists", c.Err(), count)
	}
}
