package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

// A store counts the memory of Pieces.
type store struct{ limit, used atomic.Int64 }

func newStore(limit int) *store {
	s := &store{}
	s.limit.Store(int64(limit))
	return s
}

func (s *store) reserve(n int) bool {
	if s.used.Load()+int64(n) > s.limit.Load() {
		return false
	}
	s.used.Add(int64(n))
	return true
}

func (s *store) free(n int) { s.used.Add(-int64(n)) }

// contents returns messages of n bytes: one that can be compressed, one that
// can't, and a mixture.
func contents(n int) map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, n)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	text := bytes.Repeat([]byte("0123456789abcdefg"), n)[:n]
	mixed := bytes.Clone(random)
	for i := 0; i < n; i += 3 * PieceSize / 2 {
		copy(mixed[i:], text[:min(PieceSize, n-i)])
	}
	return map[string][]byte{"text": text, "random": random, "mixed": mixed}
}

func TestPieces(t *testing.T) {
	for _, n := range []int{0, 1, PieceSize, PieceSize + 1, 5*PieceSize - 1, 40 * PieceSize} {
		for name, want := range contents(n) {
			s := newStore(n + n/1000 + 100)
			p, unread, err := Collect(iotest.HalfReader(bytes.NewReader(want)), n, s.reserve, s.free)
			if err != nil || unread != 0 {
				t.Fatal(err, unread)
			}
			if used := int(s.used.Load()); name == "text" && used > 10+n/10 || used > n+4*(n/PieceSize+1) {
				t.Errorf("%s: %d bytes need %d", name, n, used)
			}
			var got []byte
			for {
				piece, err := p.Next()
				if err == io.EOF {
					break
				}
				if err != nil || len(piece) > PieceSize {
					t.Fatal(err, len(piece))
				}
				got = append(got, piece...)
				if name == "random" && int(s.used.Load()) > n-len(got)+chunkSize {
					t.Fatalf("after %d of %d bytes, %d are in use", len(got), n, s.used.Load())
				}
			}
			if !bytes.Equal(want, got) || s.used.Load() != 0 {
				t.Errorf("%s: %d bytes: %d came, %d were not given back", name, n, len(got), s.used.Load())
			}
		}
	}
}

// TestPiecesWithoutMemory checks a message for only the beginning of which there
// is memory.
func TestPiecesWithoutMemory(t *testing.T) {
	const n = 10 * PieceSize
	for name, want := range contents(n) {
		r := bytes.NewReader(want)
		s := newStore(2*PieceSize + 100)
		p, unread, err := Collect(r, n, s.reserve, s.free)
		if err != nil || unread != r.Len() || name == "random" && unread != n-2*PieceSize || name == "text" && unread != 0 {
			t.Fatal(name, err, unread)
		}
		var got []byte
		for piece, err := p.Next(); err == nil; piece, err = p.Next() {
			got = append(got, piece...)
		}
		if !bytes.Equal(want[:n-unread], got) || s.used.Load() != 0 {
			t.Errorf("%s: %d bytes came, %d were not given back", name, len(got), s.used.Load())
		}
	}
}

// TestSharedPieces checks readers of the same message, one of which stops early.
func TestSharedPieces(t *testing.T) {
	const n = 20 * PieceSize
	for name, want := range contents(n) {
		s := newStore(2 * n)
		p, _, err := Collect(bytes.NewReader(want), n, s.reserve, s.free)
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for i, share := range p.Share(4) {
			wait.Go(func() {
				defer share.Drop()
				var got []byte
				for piece, err := share.Next(); err == nil; piece, err = share.Next() {
					if got = append(got, piece...); i == 2 && len(got) > n/2 {
						return
					}
				}
				if !bytes.Equal(want, got) {
					t.Errorf("%s: reader %d got %d bytes", name, i, len(got))
				}
			})
		}
		wait.Wait()
		if s.used.Load() != 0 {
			t.Errorf("%s: %d bytes were not given back", name, s.used.Load())
		}
	}
}

// TestDroppedPieces checks that each dropped piece is freed exactly once.
func TestDroppedPieces(t *testing.T) {
	s := newStore(4 * PieceSize)
	p, _, err := Collect(bytes.NewReader(make([]byte, 3*PieceSize)), 3*PieceSize, s.reserve, s.free)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(); err != nil || s.used.Load() == 0 {
		t.Fatal(err, s.used.Load())
	}
	p.Drop()
	p.Drop()
	if _, err := p.Next(); err != io.EOF || s.used.Load() != 0 {
		t.Errorf("%v, %d bytes not given back", err, s.used.Load())
	}
}

// TestPiecesThatDoNotCome checks that Collect allocates memory only for the
// bytes that arrive, even if the announced length is larger.
func TestPiecesThatDoNotCome(t *testing.T) {
	r := bytes.NewReader(make([]byte, 3*PieceSize))
	s := newStore(1 << 30)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Seek(0, io.SeekStart)
			if _, _, err := Collect(r, 1<<30, s.reserve, s.free); !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 5*PieceSize || s.used.Load() != 0 {
		t.Errorf("%d bytes; %d were not given back", allocated, s.used.Load())
	}
}
