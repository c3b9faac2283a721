package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
	"golang.org/x/sys/unix"
)

// PieceSize is the length of each piece of a long message, except the last.
const PieceSize = 64 << 10

// Pieces holds what remains of a long message after its beginning has been
// read, split into pieces. It frees each piece after use. It is not safe for
// concurrent use, but Share makes several of one.
//
// The pieces are compressed. A list of jobs repeats the same texts and zeros
// from record to record, so it needs a tenth or less of its length, and the
// compression takes less time than the decoding of the records.
//
// The pieces are outside Go's heap. In the heap, a freed piece would still use
// memory until the garbage collector runs. Because the garbage collector does
// not free the pieces, the caller must call Drop, or call Next until it returns
// io.EOF.
type Pieces struct {
	free   func(n int)
	chunks []*chunk // the first one has the next piece
	at     int      // where the next piece begins in the first chunk
	buf    *buffer  // the piece that Next returned last
}

// A chunk is memory with a few compressed pieces, which one or more Pieces
// read. A piece is a length of four bytes and its content. If the lowest bit of
// the length is set, the content is not compressed.
type chunk struct {
	bytes []byte
	users atomic.Int32
}

const chunkSize = 2 * PieceSize // address space; memory is used only for the pieces

// A buffer has room for a piece before and after it is compressed.
type buffer struct {
	plain      [PieceSize]byte
	compressed [PieceSize + PieceSize/4]byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// Collect reads n bytes from r. For each piece it calls reserve with the memory
// that the piece needs at most, and free with the memory that is no longer
// needed, now or when the piece has been used. If reserve returns false, Collect
// returns what it has read so far, and the number of bytes that it has not read.
//
// If Collect returns an error, it has freed what it read. The function free must
// be safe for concurrent use if the result is shared.
func Collect(r io.Reader, n int, reserve func(n int) bool, free func(n int)) (p *Pieces, unread int, err error) {
	p = &Pieces{free: free}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for n > 0 {
		size := min(n, PieceSize)
		if !reserve(4 + size) {
			break
		}
		piece, err := Fill(r, buf.plain[:0], size)
		if err == nil {
			err = p.store(piece, buf.compressed[:])
		}
		if err != nil {
			free(4 + size)
			p.Drop()
			return nil, n, err
		}
		n -= size
	}
	return p, n, nil
}

// store compresses a piece and adds it. The buffer is for the compressed piece.
func (p *Pieces) store(piece, buffer []byte) error {
	header, content := uint32(0), s2.Encode(buffer, piece)
	if len(content) >= len(piece) {
		header, content = 1, piece
	}
	header |= uint32(len(content)) << 1
	last := len(p.chunks) - 1
	if last < 0 || len(p.chunks[last].bytes)+4+len(content) > chunkSize {
		mapping, err := unix.Mmap(-1, 0, chunkSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("memory for a message: %w", err)
		}
		c := &chunk{bytes: mapping[:0]}
		c.users.Store(1)
		p.chunks, last = append(p.chunks, c), last+1
	}
	c := p.chunks[last]
	c.bytes = append(binary.LittleEndian.AppendUint32(c.bytes, header), content...)
	p.free(len(piece) - len(content))
	return nil
}

// Next returns the next piece, which is valid until Next or Drop is called.
// After the last piece, it returns io.EOF.
func (p *Pieces) Next() ([]byte, error) {
	if len(p.chunks) > 0 && p.at == len(p.chunks[0].bytes) {
		p.dropChunk()
	}
	if len(p.chunks) == 0 {
		p.dropBuffer()
		return nil, io.EOF
	}
	rest := p.chunks[0].bytes[p.at:]
	header := binary.LittleEndian.Uint32(rest)
	content := rest[4 : 4+header>>1]
	p.at += 4 + len(content)
	if header&1 != 0 {
		return content, nil
	}
	if p.buf == nil {
		p.buf = buffers.Get().(*buffer)
	}
	return s2.Decode(p.buf.plain[:], content)
}

// Drop frees the remaining pieces.
func (p *Pieces) Drop() {
	for len(p.chunks) > 0 {
		p.dropChunk()
	}
	p.dropBuffer()
}

// Share returns n Pieces that read the message of p, each at its own speed and
// in its own goroutine. Memory is freed when all of them have used it. p must
// not be used any more.
func (p *Pieces) Share(n int) []*Pieces {
	for _, c := range p.chunks {
		c.users.Add(int32(n - 1))
	}
	shares := make([]*Pieces, n)
	for i := range shares {
		shares[i] = &Pieces{free: p.free, chunks: slices.Clone(p.chunks)}
	}
	return shares
}

// Another returns one more Pieces that reads what p has not read yet. Like those
// that Share returns, it is used independently.
func (p *Pieces) Another() *Pieces {
	for _, c := range p.chunks {
		c.users.Add(1)
	}
	return &Pieces{free: p.free, chunks: slices.Clone(p.chunks), at: p.at}
}

// dropChunk goes to the next chunk.
func (p *Pieces) dropChunk() {
	c := p.chunks[0]
	p.chunks[0] = nil
	if p.chunks, p.at = p.chunks[1:], 0; c.users.Add(-1) > 0 {
		return
	}
	n := len(c.bytes)
	_ = unix.Munmap(c.bytes[:chunkSize]) // this can't fail
	p.free(n)
}

func (p *Pieces) dropBuffer() {
	if p.buf != nil {
		buffers.Put(p.buf)
		p.buf = nil
	}
}
