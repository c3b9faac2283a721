package model

import (
	"strings"
	"testing"
)

func TestExpandPattern(t *testing.T) {
	long := strings.Repeat("x", MaxExpanded)
	tests := []struct{ name, pattern, want string }{
		{"nothing to replace", "out", "out"},
		{"words", "%x-%j.out", "job-12.out"},
		{"width", "%5j", "00012"},
		{"width less than the text", "%1j", "12"},
		{"width above the limit", "%9999999999999999999999j", "0000000012"},
		{"percent sign", "100%%", "100%"},
		{"not known", "%q-%3q", "%q-%3q"},
		{"cut short", "%j%", "12%"},
		{"cut short in a width", "%j%07", "12%07"},
		{"a replacement with a placeholder", "%p", "%j"},
		{"the longest", long[:MaxExpanded-2] + "%j", long[:MaxExpanded-2] + "12"},
		{"too long", long[:MaxExpanded-2] + "%x", long[:MaxExpanded-2] + "%x"},
		{"too long with a text after it", strings.Repeat("%x", 2000) + "/out", strings.Repeat("%x", 2000) + "/out"},
		{"too long without a placeholder", long + "x", long + "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := ExpandPattern(tt.pattern, func(letter byte) (string, bool) {
				text, known := map[byte]string{'j': "12", 'x': "job", 'p': "%j"}[letter]
				return text, known
			})
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if tooLong := strings.HasPrefix(tt.name, "too long"); ok == tooLong {
				t.Errorf("it fits: %t", ok)
			}
		})
	}
}
