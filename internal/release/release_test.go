package release

import "testing"

func TestBuild(t *testing.T) {
	for _, tt := range []struct{ commit, date, want string }{
		{"", "", Version},
		{"0123456789ab", "2026-01-02", Version + " (commit 0123456789ab, 2026-01-02)"},
		{"0123456789ab-dirty", "", Version + " (commit 0123456789ab-dirty)"},
	} {
		if got := build(tt.commit, tt.date); got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.commit, tt.date, got, tt.want)
		}
	}
}
