package rest

import (
	"cmp"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"schedrestd/handlers/feed"
)

// spoolPiece is the length of the pieces of a spool.
const spoolPiece = 64 << 10

// spool stores a body until its length is known. In HTTP/1.0, only the length
// shows that a body is complete. The clients of an inetd gateway are often
// simple tools, so they get the length, too.
//
// The stored body is compressed, with the client's coding or with zstd. A list
// of 20,000 jobs then takes a few megabytes instead of 150.
type spool struct {
	compressed bool // the client accepts the compressed form
	coding     string
	coder      coder
	plainSize  int // bytes that were written, before compression

	pieces   [][]byte
	size     int // bytes in the pieces
	reserved feed.Reservation
	full     bool      // Memory refused more bytes
	out      io.Writer // receives further data; if nil, they are stored in pieces
}

// newSpool returns an empty spool. If the client accepts a coding, coding is its
// name, and otherwise "".
func newSpool(coding string, reserved feed.Reservation) *spool {
	s := &spool{compressed: coding != "", coding: cmp.Or(coding, "zstd"), reserved: reserved}
	s.coder = getCoder(s.coding, (*spoolStore)(s))
	return s
}

func (s *spool) Write(b []byte) (int, error) {
	s.plainSize += len(b)
	return s.coder.Write(b)
}

// spoolStore is the writer to which a spool's coder writes.
type spoolStore spool

// Write stores compressed data. If Memory is exhausted, Write sets full, but
// still stores the data. The caller of spool.Write must check full after each
// call. So at most a few of the coder's blocks are stored beyond the limit.
func (s *spoolStore) Write(b []byte) (int, error) {
	if s.out != nil {
		return s.out.Write(b)
	}
	for rest := b; len(rest) > 0; {
		last := len(s.pieces) - 1
		if last < 0 || len(s.pieces[last]) == spoolPiece {
			s.grow()
			last++
		}
		n := min(len(rest), spoolPiece-len(s.pieces[last]))
		s.pieces[last] = append(s.pieces[last], rest[:n]...)
		rest = rest[n:]
	}
	s.size += len(b)
	return len(b), nil
}

func (s *spoolStore) grow() {
	s.pieces = append(s.pieces, make([]byte, 0, spoolPiece))
	s.full = s.full || !s.reserved.Grow(spoolPiece)
}

// Read returns the stored data and frees each piece that has been read. So the
// data can be read only once.
func (s *spoolStore) Read(b []byte) (int, error) {
	for len(s.pieces) > 0 && len(s.pieces[0]) == 0 {
		s.pieces[0], s.pieces = nil, s.pieces[1:]
		s.reserved.Shrink(spoolPiece)
	}
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	return n, nil
}

// send writes the stored body to w. It decompresses the body if the client does
// not accept the coding.
func (s *spool) send(w io.Writer) error {
	if s.compressed {
		_, err := io.Copy(w, (*spoolStore)(s))
		return err
	}
	z := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(z)
	defer z.Reset(nil)
	if err := z.Reset((*spoolStore)(s)); err != nil {
		return err
	}
	_, err := z.WriteTo(w)
	return err
}

// decoders are reused like coders.
var decoders = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(1<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}}

// release frees everything that the spool holds.
func (s *spool) release() {
	putCoder(s.coding, s.coder)
	s.reserved.Shrink(s.reserved.Size())
	s.pieces = nil
}
