package model

import (
	"fmt"
	"slices"
	"strings"
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

// TestHostsIsLazy checks that Hosts creates only the names that the caller
// reads. The expression stands for 2^64 names.
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

// TestHostlistHas checks that HostlistHas agrees with Hosts.
func TestHostlistHas(t *testing.T) {
	exprs := []string{
		"", "a", "n[0008-0011],login", "n[1,3-4,x]", "r[1-2]n[1-2]x", "n[3-1],a", "n[1-2", "n]1,a", ",,a,",
		"n[0-12]", "n[00-12][0-3]", "n[1-3][1-3]", "n[9-11]0", "n[]", "n[,]", "n[1-]", "n[-1]", "n[1-2]]", "n[[1-2]]", "[1-2]", "n[1-2][x,yy][1-2]",
	}
	names := []string{"", "a", "n", "n]1", "n[1-2", "login", "n[1", "nx", "nyy", "n1x1", "n2yy2", "1", "2", "n1]", "r1n1x", "r2n2", "n1-", "n-1"}
	for i := range 150 {
		names = append(names, fmt.Sprintf("n%d", i), fmt.Sprintf("n%02d", i), fmt.Sprintf("n%04d", i))
	}
	for _, expr := range exprs {
		all := slices.Collect(Hosts(expr))
		for _, name := range append(all, names...) {
			if got, want := HostlistHas(expr, name), slices.Contains(all, name); got != want {
				t.Errorf("%q has %q: %v, want %v", expr, name, got, want)
			}
		}
	}
}

// TestHostlistHasIsCheap checks that HostlistHas returns quickly for an
// expression that stands for more names than a program can create, and that can
// be matched with a name in very many ways.
func TestHostlistHasIsCheap(t *testing.T) {
	expr := strings.Repeat("[0-4294967295]", 25)
	if !HostlistHas(expr, strings.Repeat("1", 80)) || HostlistHas(expr, strings.Repeat("1", 80)+"x") || HostlistHas(expr, "1") {
		t.Error("HostlistHas returned a wrong result")
	}
}

func FuzzHostlistHas(f *testing.F) {
	f.Add("n[1-3,08],login", "n08")
	f.Add("r[1-2]n[01-12]x", "r1n07x")
	f.Fuzz(func(t *testing.T, expr, name string) {
		n, want := 0, false
		for host := range Hosts(expr) {
			if want = host == name; want {
				break
			}
			if n++; n == 10_000 {
				t.Skip("too many names to compare with")
			}
		}
		if got := HostlistHas(expr, name); got != want {
			t.Errorf("%q has %q: %v, want %v", expr, name, got, want)
		}
	})
}

// BenchmarkHostlistHas looks for a node in the middle of a partition of 5000
// nodes.
func BenchmarkHostlistHas(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		HostlistHas("n[0001-5000]", "n2500")
	}
}

// TestLongNames checks that Hosts makes no name longer than maxName: a short text
// could stand for gigabytes.
func TestLongNames(t *testing.T) {
	for _, expr := range []string{strings.Repeat("n", maxName) + "[1-65536]", "n[" + strings.Repeat("0", maxName) + "1-65536]", strings.Repeat("[0]", 1_000_000), strings.Repeat("[x]", maxName+1)} {
		if got := slices.Collect(Hosts(expr)); len(got) != 1 || got[0] != expr {
			t.Errorf("%.20q…: %d names", expr, len(got))
		}
	}
	if got := slices.Collect(Hosts(strings.Repeat("n", maxName-1) + "[1-3]")); len(got) != 3 {
		t.Errorf("%d names of the maximum length", len(got))
	}
}
