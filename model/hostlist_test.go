package model

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHosts(t *testing.T) {
	tests := []struct {
		expr string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"n[0008-0011],login", []string{"n0008", "n0009", "n0010", "n0011", "login"}},
		{"n[1,3-4,x]", []string{"n1", "n3", "n4", "nx"}},
		{"r[1-2]n[1-2]x", []string{"r1n1x", "r1n2x", "r2n1x", "r2n2x"}},
		{"n[3-1],a", []string{"a"}},
		{"n[1-2", []string{"n[1-2"}},
		{"n]1,a", []string{"n]1", "a"}},
		{",,a,", []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			if d := cmp.Diff(tt.want, slices.Collect(Hosts(tt.expr))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestHostsIsLazy: an expression for four billion names costs its reader only as many as he
// takes.
func TestHostsIsLazy(t *testing.T) {
	n := 0
	for range Hosts("n[0-4294967295]m[0-4294967295]") {
		if n++; n == 1000 {
			break
		}
	}
	if n != 1000 {
		t.Errorf("%d names", n)
	}
}
