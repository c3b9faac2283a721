package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestPieces(t *testing.T) {
	for _, n := range []int{0, 1, PieceSize, PieceSize + 1, 5*PieceSize - 1} {
		want := bytes.Repeat([]byte("0123456789abcdefg"), n)[:n]
		p, err := Collect(iotest.HalfReader(bytes.NewReader(want)), n)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		unfreed, peak := n, 0
		p.OnFree = func(m int) { unfreed -= m }
		for {
			if peak = max(peak, len(got)-(n-unfreed)); peak > PieceSize {
				t.Fatalf("%d bytes were handed out and not given back", peak)
			}
			piece, err := p.Next()
			if err == io.EOF {
				break
			}
			got = append(got, piece...)
		}
		if !bytes.Equal(want, got) || unfreed != 0 {
			t.Errorf("%d bytes: %d came, %d were not given back", n, len(got), unfreed)
		}
	}
}

// TestDroppedPieces checks that each dropped piece is freed exactly once.
func TestDroppedPieces(t *testing.T) {
	p, err := Collect(bytes.NewReader(make([]byte, 3*PieceSize)), 3*PieceSize)
	if err != nil {
		t.Fatal(err)
	}
	freed := 0
	p.OnFree = func(n int) { freed += n }
	if _, err := p.Next(); err != nil || freed != 0 {
		t.Fatal(err, freed)
	}
	p.Drop()
	p.Drop()
	if _, err := p.Next(); err != io.EOF || freed != 3*PieceSize {
		t.Errorf("%v, %d bytes given back", err, freed)
	}
}

// TestPiecesThatDoNotCome checks that Collect allocates memory only for the
// bytes that arrive, even if the announced length is larger.
func TestPiecesThatDoNotCome(t *testing.T) {
	r := bytes.NewReader(make([]byte, 3*PieceSize))
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Seek(0, io.SeekStart)
			if _, err := Collect(r, 1<<30); !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 5*PieceSize {
		t.Errorf("%d bytes", allocated)
	}
}
