package printable

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain, ünïcödé 日本", "plain, ünïcödé 日本"},
		{"\x1b[2J", `\x1b[2J`},
		{"a\nb\r\tc\x00", `a\nb\r\tc\x00`},
		{"\u202e\u200b\ufeff", `\u202e\u200b\ufeff`},
		{"\xff\xfe", `\xff\xfe`},
		{"\ufffd\xff\ufffd", "\ufffd\\xff\ufffd"}, // the replacement character itself is printable
		{strings.Repeat("x", MaxLength+5), strings.Repeat("x", MaxLength) + "…"},
	}
	for _, tt := range tests {
		if got := Text(tt.in); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzText checks that a terminal shows a worker's text as harmless text of
// limited length, whatever the worker writes.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;t\x07", "\xf0\x28\x8c\x28", "\u2028", "\ufffd", "<4>text"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if len(got) > MaxLength+16 {
			t.Fatalf("%d bytes out of %d", len(got), len(s))
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q lets invalid bytes through", s)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}
