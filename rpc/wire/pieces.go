package wire

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// PieceSize is the length of each piece of a long message, except the last.
const PieceSize = 64 << 10

// Pieces holds what remains of a long message after its beginning has been
// read, split into pieces. It frees each piece after use. It is not safe for
// concurrent use, but Share makes several of one.
//
// The pieces are outside Go's heap. In the heap, a freed piece would still use
// memory until the garbage collector runs. Because the garbage collector does
// not free the pieces, the caller must call Drop, or call Next until it returns
// io.EOF.
type Pieces struct {
	// OnFree is called when a piece is freed, with the length of the piece.
	OnFree func(n int)

	list    []*piece
	current *piece // the piece that Next returned last
}

// A piece is memory that one or more Pieces read.
type piece struct {
	bytes []byte
	users atomic.Int32
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
		b, err := Fill(r, mapping[:0], min(n, PieceSize))
		one := &piece{bytes: b}
		one.users.Store(1)
		p.list = append(p.list, one)
		if err != nil {
			p.Drop()
			return nil, err
		}
		n -= len(b)
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
	return p.current.bytes, nil
}

// Drop frees the remaining pieces.
func (p *Pieces) Drop() {
	for err := error(nil); err == nil; {
		_, err = p.Next()
	}
}

// Share returns n Pieces that read the message of p, each at its own speed and
// in its own goroutine. A piece is freed when all of them have used it. OnFree
// must then be safe for concurrent use. p must not be used any more.
func (p *Pieces) Share(n int) []*Pieces {
	for _, one := range p.list {
		one.users.Store(int32(n))
	}
	shares := make([]*Pieces, n)
	for i := range shares {
		shares[i] = &Pieces{OnFree: p.OnFree, list: slices.Clone(p.list)}
	}
	return shares
}

// Another returns one more Pieces that reads what p has not read yet. Like those
// that Share returns, it is used independently.
func (p *Pieces) Another() *Pieces {
	for _, one := range p.list {
		one.users.Add(1)
	}
	return &Pieces{OnFree: p.OnFree, list: slices.Clone(p.list)}
}

func (p *Pieces) free() {
	one := p.current
	if p.current = nil; one == nil || one.users.Add(-1) > 0 {
		return
	}
	n := len(one.bytes)
	_ = unix.Munmap(one.bytes[:PieceSize]) // the whole mapping, even if the piece is shorter; this can't fail
	if p.OnFree != nil {
		p.OnFree(n)
	}
}
