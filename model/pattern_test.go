package model

import (
	"strings"
	"testing"
)

// TestExpandPath checks how both kinds of slurmd replace patterns. The results of
// the patterns without a name were seen as files of real jobs.
func TestExpandPath(t *testing.T) {
	long := "/" + strings.Repeat("x", MaxExpanded-1)
	tests := []struct{ name, pattern, old, recent string }{
		{"nothing to replace", "out", "/d/out", ""},
		{"absolute", "/tmp/%j", "/tmp/12", ""},
		{"words", "%x-%j.out", "/d/job-12.out", ""},
		{"width", "%5j", "/d/00012", ""},
		{"width less than the text", "%1j", "/d/12", ""},
		{"width above the limit", "%9999999999999999999999j", "/d/0000000012", ""},
		{"width before a name", "%5x", "/d/job", ""},
		{"percent sign", "100%%", "/d/100%", ""},
		{"percent sign before a letter", "%%j", "/d/%j", ""},
		{"not known", "%q", "/d/%q", ""},
		{"not known, with a width", "a%13q", "/d/a3q", "/d/a%13q"},
		{"a width before a percent sign", "%5%j", "/d/512", "/d/%5%j"},
		{"cut short", "%j%", "/d/12%", "/d/12"},
		{"only a percent sign", "%", "/d/%", "/d/"}, // no file: the job fails
		{"cut short in a width", "%j%07", "/d/127", "/d/12%07"},
		{"a replacement with a pattern", "%p", "/d/%j", ""},
		{"a backslash", `a\%j`, "/da%j", "/d/a%j"},
		{"a backslash in an absolute path", `/a\%j`, "/a%j", ""},
		{"two backslashes", `/a\\%j`, `/a\%j`, "/a%j"},
		{"a number", "7", "/dev/null", "/d/7"},
		{"the number 0", "0", "/d/0", ""},
		{"the longest", long[:MaxExpanded-2] + "%j", long[:MaxExpanded-2] + "12", ""},
		{"too long", long[:MaxExpanded-2] + "%x", long[:MaxExpanded-2] + "%x", ""},
		{"too long with a text after it", "/" + strings.Repeat("%x", 2000) + "/out", "/" + strings.Repeat("%x", 2000) + "/out", ""},
		{"too long without a pattern", long + "x", long + "x", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for rules, want := range map[PathRules]string{OldPathRules: tt.old, NewPathRules: tt.recent} {
				if want == "" {
					want = tt.old
				}
				got, ok := rules.ExpandPath("/d", tt.pattern, func(letter byte, width int) (string, bool) {
					switch letter {
					case 'j':
						return PadNumber(12, width), true
					case 'x':
						return "job", true
					case 'p':
						return "%j", true
					}
					return "", false
				})
				if got != want {
					t.Errorf("rules %d: %q, want %q", rules, got, want)
				}
				if tooLong := strings.HasPrefix(tt.name, "too long"); ok == tooLong {
					t.Errorf("rules %d: it fits: %t", rules, ok)
				}
			}
		})
	}
	if got, _ := NewPathRules.ExpandPath("/", "a", nil); got != "/a" {
		t.Errorf("in the root directory: %q", got)
	}
}
