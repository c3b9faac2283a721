package schema

import "testing"

// TestParseBool checks which values count as booleans. slurmrestd takes all
// accepted values in the same way; it also accepts the refused ones.
func TestParseBool(t *testing.T) {
	for _, tt := range []struct {
		kind    Kind
		untyped bool // the value is from a query
		want    bool
		texts   []string
	}{
		{Bool, false, true, []string{"true"}},
		{Bool, false, false, []string{"false"}},
		{Number, false, true, []string{"1"}},
		{Number, false, false, []string{"0"}},
		{Text, false, true, []string{"true", "TRUE", "True", "t", "T", "yes", "Yes", "YES", "y", "Y", "on", "ON", "1"}},
		{Text, false, false, []string{"false", "FALSE", "f", "F", "no", "No", "n", "N", "off", "Off", "0", ""}},
		{Text, true, true, []string{"true", "yes", "on", "1"}},
		{Text, true, false, []string{"false", "no", "off", "0"}},
	} {
		for _, text := range tt.texts {
			r, got := Report{}, !tt.want
			v := Value{Kind: tt.kind, Text: text, Untyped: tt.untyped}
			wantWarnings := 1
			if tt.kind == Bool || tt.untyped {
				wantWarnings = 0
			}
			if ok := ParseBool(&r, &v, &got); !ok || got != tt.want || len(r.Errors) != 0 || len(r.Warnings) != wantWarnings {
				t.Errorf("%s %q: %v, %v, %+v", tt.kind, text, ok, got, r)
			}
		}
	}
	for _, v := range []Value{
		{Kind: Text, Text: "tr"}, {Kind: Text, Text: "ye"}, {Kind: Text, Text: "none"}, {Kind: Text, Text: "nope"}, {Kind: Text, Text: " yes"},
		{Kind: Text, Text: "yes "}, {Kind: Text, Text: "2"}, {Kind: Text, Text: "~"}, {Kind: Text, Text: "o"}, {Kind: Text, Text: "YES\x00"},
		{Kind: Number, Text: "2"}, {Kind: Number, Text: "-1"}, {Kind: Number, Text: "0.5"}, {Kind: Null}, {Kind: Array}, {Kind: Map},
		{Kind: Text, Untyped: true},
	} {
		r, got := Report{}, false
		if ok := ParseBool(&r, &v, &got); ok || got || len(r.Errors) != 1 {
			t.Errorf("%s %q: %v, %v, %+v", v.Kind, v.Text, ok, got, r)
		}
	}
}
