package wire

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// PieceSize is how long the pieces of a long message are.
const PieceSize = 64 << 10

// Pieces is the rest of a long message, in pieces that are given back one by one as they are
// used. It is for one goroutine.
//
// They are the system's memory and not the garbage collector's, which would let as much garbage again
// come together before it looks for any. Who drops none keeps them for good.
type Pieces struct {
	// Gone hears of each piece that was given back, and its bytes.
	Gone func(n int)

	list [][]byte
	last []byte // what Next gave
}

// Collect reads n bytes of r. What has come of them when there is an error is dropped.
func Collect(r io.Reader, n int) (*Pieces, error) {
	p := &Pieces{}
	for n > 0 {
		room, err := unix.Mmap(-1, 0, PieceSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			p.Drop()
			return nil, fmt.Errorf("memory for a message: %w", err)
		}
		piece, err := Fill(r, room[:0], min(n, PieceSize))
		p.list = append(p.list, piece)
		if err != nil {
			p.Drop()
			return nil, err
		}
		n -= len(piece)
	}
	return p, nil
}

// Next is the next piece, to be used until Next or Drop is called; io.EOF: that was the last.
func (p *Pieces) Next() ([]byte, error) {
	p.free()
	if len(p.list) == 0 {
		return nil, io.EOF
	}
	p.last, p.list[0] = p.list[0], nil
	p.list = p.list[1:]
	return p.last, nil
}

// Drop gives back what is left.
func (p *Pieces) Drop() {
	for err := error(nil); err == nil; {
		_, err = p.Next()
	}
}

func (p *Pieces) free() {
	if p.last == nil {
		return
	}
	n := len(p.last)
	_ = unix.Munmap(p.last[:PieceSize]) // whole, as it was got: it can't fail
	if p.last = nil; p.Gone != nil {
		p.Gone(n)
	}
}
