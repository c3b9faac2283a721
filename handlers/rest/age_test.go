package rest

import (
	"testing"
	"time"
)

// TestMaxAge checks how old an answer may be according to Cache-Control
// (RFC 9111, 1.2.2 and 5.2.1).
func TestMaxAge(t *testing.T) {
	for _, tt := range []struct {
		header string
		age    time.Duration
		stated bool
	}{
		{"", 0, false},
		{"no-transform", 0, false},
		{"max-age=5", 5 * time.Second, true},
		{`Max-Age="7", max-age=9`, 7 * time.Second, true},
		{"max-age=5, no-cache", 0, true},
		{"max-age=soon", 0, true},
		{"max-age=99999999999", (1<<31 - 1) * time.Second, true},
	} {
		if age, stated := maxAge([]string{tt.header}); age != tt.age || stated != tt.stated {
			t.Errorf("%q: %v, %v; want %v, %v", tt.header, age, stated, tt.age, tt.stated)
		}
	}
}
