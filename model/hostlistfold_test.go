package model

import (
	"slices"
	"strings"
	"testing"
)

// TestFoldHosts checks that FoldHosts returns the same expressions as
// slurmrestd 26.05, and that expanding an expression returns the original
// names.
func TestFoldHosts(t *testing.T) {
	for _, tt := range []struct{ names, want string }{
		{"", ""},
		{"n1 n2 n3 x7", "n[1-3],x7"},
		{"n3 n1 n1", "n[3,1,1]"},
		{"n08 n09 n10 n11", "n[08-11]"},
		{"n1 x n2", "n1,x,n2"},
		{"n9 n10 n010 n11", "n[9-10,010,11]"},
		{"a1b1 a1b2 a2b1 a2b2", "a1b[1-2],a2b[1-2]"},
		{"n1-ib n2-ib", "n1-ib,n2-ib"},
		{"n10 n9 n8", "n[10,9,8]"},
		{"n99 n100 n0100", "n[99-100,0100]"},
		{"1 2 3", "[1-3]"},
		{"n4294967295 n4294967296", "n4294967295,n4294967296"},
	} {
		names := strings.Fields(tt.names)
		got := FoldHosts(names)
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.names, got, tt.want)
		}
		if back := slices.Collect(Hosts(got)); !slices.Equal(back, names) || !HostsWellFormed(got) {
			t.Errorf("%s stands for %q", got, back)
		}
	}
}

// FuzzFoldHosts checks that expanding the result of FoldHosts returns the
// original names, if those names are valid.
func FuzzFoldHosts(f *testing.F) {
	f.Add("n1 n2 n3 x7")
	f.Add("n08 n9 n010 4294967295 4294967296")
	f.Fuzz(func(t *testing.T, text string) {
		names := slices.DeleteFunc(strings.Fields(text), func(s string) bool { return len(s) > maxName || strings.ContainsAny(s, "[],") })
		if back := slices.Collect(Hosts(FoldHosts(names))); !slices.Equal(back, names) {
			t.Errorf("%q became %q", names, back)
		}
	})
}

func TestHostsWellFormed(t *testing.T) {
	for expr, want := range map[string]bool{
		"": true, "n1": true, "n[1-3,5],x7": true, "a[1-2]b[1-2]": true, "n[1-3]-ib": true, "n[08]": true,
		"n[1": false, "n1]": false, "n[]": false, "n[3-1]": false, "n[a]": false, "n[[1]]": false, "n[1-2-3]": false, "n[1,]": false, "n[99999999999]": false,
		strings.Repeat("n", 250) + "[1-65535]": true, strings.Repeat("n", 251) + "[1-65535]": false, // names of 256 bytes
		"n[" + strings.Repeat("0", 255) + "1-9]": false, strings.Repeat("[0]", 256): false, "n[" + strings.Repeat("1,", 300) + "1]": true,
	} {
		if got := HostsWellFormed(expr); got != want {
			t.Errorf("%q: %v", expr, got)
		}
	}
}
