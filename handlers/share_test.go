package handlers

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharesFiltered checks that the controller gets the accounts and users
// that the client has sent.
func TestSharesFiltered(t *testing.T) {
	for query, want := range map[string][2][]string{
		"":                              {},
		"?accounts=&users=":             {},
		"?users=20001,bob,5":            {nil, {"alice", "bob", "5"}},
		"?users=,%20alice%20,,bob":      {nil, {" alice ", "bob"}}, // a blank is a part of a name
		"?accounts=physics,chemistry":   {{"physics", "chemistry"}, nil},
		"?users=alice&accounts=physics": {{"physics"}, {"alice"}},
	} {
		f := demo()
		if w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.43/shares"+query, "")); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", query, w.Code)
		}
		if d := cmp.Diff([][2][]string{want}, f.shareQueries); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}
