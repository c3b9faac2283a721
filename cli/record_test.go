package cli

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestRecord checks how an object is flattened, and that names and texts can't
// control a terminal.
func TestRecord(t *testing.T) {
	got, err := recordOf([]byte(`{"name": "x\n\u001b[2J", "words": ["a", "b"], "inner": {"text": "t", "count": 1}, "rows": [{"text": "u", "n": {"set": true, "infinite": false, "number": 2}}, {"text": "v", "n": null}],
		"set": {"set": true, "infinite": false, "number": 4}, "none": {"set": false, "infinite": false, "number": 0}, "all": {"set": false, "infinite": true, "number": 0},
		"empty": [], "nothing": null, "yes": true, "big": 18446744073709551615, "\u001b]0;": "say \"x\"", "last": 0.5}`))
	want := record{{"name", `x\n\x1b[2J`}, {"words", "a,b"}, {"inner.text", "t"}, {"inner.count", "1"}, {"rows", "u,2,v,"},
		{"set", "4"}, {"none", ""}, {"all", "unlimited"}, {"empty", ""}, {"nothing", ""}, {"yes", "true"}, {"big", "18446744073709551615"},
		{`\x1b]0;`, `say "x"`}, {"last", "0.5"}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(field{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, malformed := range []string{"", "{", `{"a": [`, `{"a": [{"b": 1`, `{"a" 1}`} {
		if got, err := recordOf([]byte(malformed)); err == nil {
			t.Errorf("%q: %v", malformed, got)
		}
	}
}
