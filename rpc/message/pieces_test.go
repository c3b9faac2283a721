package message

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/rpc/codec"
)

// cut returns a function that returns the pieces of b one by one. It overwrites
// each piece when the next one is requested.
func cut(b []byte, size int) (next func() ([]byte, error)) {
	var last []byte
	return func() ([]byte, error) {
		for i := range last {
			last[i] = 0xee
		}
		if len(b) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		n := min(size, len(b))
		last, b = slices.Clone(b[:n]), b[n:]
		return last, nil
	}
}

// TestPieces checks that a message always decodes to the same value, however it
// is cut into pieces. Each piece is overwritten when the next one is requested.
func TestPieces(t *testing.T) {
	for name, make := range messages {
		for v := codec.Oldest; v <= codec.Newest; v++ {
			filled := make()
			filled.Walk(codec.NewFiller(v, rand.New(rand.NewPCG(uint64(v), 1))))
			out := codec.NewEncoder(v, nil)
			filled.Walk(out)
			b := out.Bytes()
			whole := make()
			if err := DecodeBody(v, 1, b, whole); err != nil {
				t.Fatal(err)
			}
			for size := 1; size <= 9; size += 2 {
				for _, first := range []int{0, 3} {
					first = min(first, len(b))
					pieced := make()
					err := DecodePieces(v, 1, b[:first], cut(b[first:], size), len(b)-first, pieced)
					if diff := cmp.Diff(whole, pieced, comparable); err != nil || diff != "" {
						t.Fatalf("%s at protocol %d, cut to %d: %v\nwhole -, cut +:\n%s", name, v, size, err, diff)
					}
				}
			}
			if len(b) == 0 {
				continue
			}
			for announced, want := range map[int]error{len(b) - 1: nil, len(b): io.ErrUnexpectedEOF, len(b) + 1: codec.ErrLeftover} {
				there := b
				if announced == len(b) {
					there = b[:len(b)-1] // the message is truncated
				}
				err := DecodePieces(v, 1, nil, cut(there, 4), announced, make())
				if err == nil || want != nil && !errors.Is(err, want) {
					t.Fatalf("%s at protocol %d, %d bytes of %d announced as %d: %v", name, v, len(there), len(b), announced, err)
				}
			}
		}
	}
}
