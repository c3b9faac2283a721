package rest

import (
	"slices"
	"testing"
)

// FuzzAccept checks that the result for any header is one of the offers or "",
// and that an offer with q=0 is never chosen.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"*/*", "application/json;q=0.5,application/yaml", "a/b;x=\"\\\",c\";q=1.000", ",,;;q=", "*;q=0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := choose(preferences([]string{header}), BodyMedia)
		if got != "" && !slices.Contains(BodyMedia, got) {
			t.Errorf("%q: chose %q", header, got)
		}
		if got := choose(preferences([]string{header, MediaJSON + ";q=0," + MediaYAML + ";q=0," + MediaXYAML}), []string{MediaXYAML}); got != MediaXYAML {
			t.Errorf("%q: chose %q", header, got)
		}
		if c, ok := chooseCoding(preferences([]string{header})); c.name != "" && (!ok || !slices.Contains(codings, c.name)) {
			t.Errorf("%q: chose %q", header, c.name)
		}
	})
}
