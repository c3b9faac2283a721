package schema

import (
	"strings"
	"testing"
)

// TestChange tests which members of a body a table of changes warns about.
func TestChange(t *testing.T) {
	change := Change("thing", func() Fields[thing] {
		return Fields[thing]{
			F("port", Int32, func(o *thing) *uint16 { return &o.Port }, ""),
			F("parts", List(String), func(o *thing) *[]string { return &o.Parts }, ""),
			Group("group", "", []Field[thing]{
				F("offset", Int64, func(o *thing) *int64 { return &o.Offset }, ""),
				F("state", colours.Type, func(o *thing) *uint32 { return &o.State }, ""),
			}),
			Set("other_port", Int32, func(o *thing, n uint16) error { o.Port = n; return nil }, ""),
		}
	})
	for _, tt := range []struct{ name, text, want string }{
		{"values", `{"port": 1, "parts": ["a"], "group": {"offset": 2, "state": ["BLUE"]}}`, ""},
		{"zero", `{"port": 0}`, "#/port"},
		{"an empty list that is not nil", `{"parts": []}`, ""},
		{"no words", `{"port": 1, "group": {"offset": 0, "state": []}}`, "#/group/offset #/group/state"},
		{"an empty group", `{"group": {}}`, "#/group"},
		{"null", `{"port": null}`, ""},
		{"the same value twice", `{"port": 7, "other_port": 7}`, ""},
		{"another warning", `{"port": "0"}`, "#/port"},
	} {
		doc, err := ReadJSON(tt.text, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		for _, lenient := range []bool{false, true} {
			r, o := Report{Lenient: lenient}, thing{}
			change.Parser(View{Version: 42})(&r, doc, &o)
			var sources []string
			for _, n := range append(r.Warnings, r.Errors...) {
				sources = append(sources, strings.TrimSuffix(n.Source, "/"))
			}
			want := tt.want
			if lenient {
				want = ""
			}
			if got := strings.Join(sources, " "); got != want {
				t.Errorf("%s: notes about %q, want %q", tt.name, got, want)
			}
		}
	}
}
