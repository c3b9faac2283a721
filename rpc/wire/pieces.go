package wire

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// PieceSize is the length of each piece of a long message, except the last.
const PieceSize = 64 << 10

// Pieces holds what remains of a long message after its beginning has been
// read, split into pieces. It frees each piece after use. It is not safe for
// concurrent use.
//
// The pieces are outside Go's heap. In the heap, a freed piece would still use
// memory until the garbage collector runs. Because the garbage collector does
// not free the pieces, the caller must call Drop, or call Next until it returns
// io.EOF.
type Pieces struct {
	// OnFree is called when a piece is freed, with the length of the piece.
	OnFree func(n int)

	list    [][]byte
	current []byte // the piece that Next returned last
}

// Collect reads n bytes from r. If it returns an error, it has freed what it
// read.
func Collect(r io.Reader, n int) (*Pieces, error) {
	p := &Pieces{}
	for n > 0 {
		mapping, err := unix.Mmap(-1, 0, PieceSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			p.Drop()
			return nil, fmt.Errorf("memory for a message: %w", err)
		}
		piece, err := Fill(r, mapping[:0], min(n, PieceSize))
		p.list = append(p.list, piece)
		if err != nil {
			p.Drop()
			return nil, err
		}
		n -= len(piece)
	}
	return p, nil
}

// Next returns the next piece, which is valid until Next or Drop is called.
// After the last piece, it returns io.EOF.
func (p *Pieces) Next() ([]byte, error) {
	p.free()
	if len(p.list) == 0 {
		return nil, io.EOF
	}
	p.current, p.list[0] = p.list[0], nil
	p.list = p.list[1:]
	return p.current, nil
}

// Drop frees the remaining pieces.
func (p *Pieces) Drop() {
	for err := error(nil); err == nil; {
		_, err = p.Next()
	}
}

func (p *Pieces) free() {
	if p.current == nil {
		return
	}
	n := len(p.current)
	_ = unix.Munmap(p.current[:PieceSize]) // the whole mapping, even if the piece is shorter; this can't fail
	if p.current = nil; p.OnFree != nil {
		p.OnFree(n)
	}
}
