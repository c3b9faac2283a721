package server

import (
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
)

func TestBudget(t *testing.T) {
	b := newBudget(semaphore.Row{Total: 100, Share: 40}, func(uid uint32) bool { return uid == 0 }, "bytes")
	one := b.reservation(1)
	if err := one.grow(30); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		uid  uint32
		n    int
		want bool
	}{{1, 20, false}, {1, 10, true}, {2, 40, true}, {3, 30, false}, {3, 20, true}, {0, 1 << 30, true}} {
		if err := b.reservation(tt.uid).grow(tt.n); (err == nil) != tt.want || err != nil && errs.KindOf(err) != errs.TooMany {
			t.Errorf("%d bytes of uid %d: %v", tt.n, tt.uid, err)
		}
	}
	one.Release()
	one.Release() // has no effect
	if total, _ := b.bytes.Counts(); total != 70 || b.bytes.Held(1) != 10 {
		t.Errorf("%d bytes, %d of one user, after some were given back", total, b.bytes.Held(1))
	}
}
