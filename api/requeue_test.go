package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
)

// TestJobNames checks that a string of job ids is split only at commas outside
// brackets.
func TestJobNames(t *testing.T) {
	parse := jobNames().Parser(schema.View{Version: V45})
	for text, want := range map[string][]string{
		"12": {"12"}, "12,13": {"12", "13"}, "12_[1-2,4]": {"12_[1-2,4]"}, "12,13_[1-2]": {"12", "13_[1-2]"},
		"12_[1,3],13,14_5": {"12_[1,3]", "13", "14_5"}, "": nil, "12,": nil, ",12": nil, "12,,13": nil, "12;13": nil,
	} {
		var r schema.Report
		var names []string
		ok := parse(&r, &schema.Value{Kind: schema.Text, Text: text, Untyped: true}, &names)
		if !ok {
			names = nil
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
