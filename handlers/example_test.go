package handlers

import (
	"encoding/json"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// TestExamples sends the example of each operation's body, in all versions and
// both spellings. The answer must be a success without a warning. The page
// /docs offers these bodies, and generators copy them into clients.
func TestExamples(t *testing.T) {
	// These operations have no example, for the given reasons.
	without := map[string]string{
		"post_tres": "no body is accepted",
	}
	for _, e := range api.Endpoints {
		if reason := without[e.ID]; (e.Request != nil) != (e.Example != "" || reason != "") {
			t.Errorf("%s: has a body: %t, example %q, reason for none %q", e.ID, e.Request != nil, e.Example, reason)
		}
		if e.Example == "" {
			continue
		}
		for _, v := range api.Versions {
			for _, spelling := range []schema.Spelling{schema.Sched, schema.Slurm} {
				view := schema.View{Version: v, Spelling: spelling}
				if !e.InView(view) || e.Util && spelling == schema.Sched {
					continue
				}
				t.Run(e.OperationID(view), func(t *testing.T) {
					path := placeholders.Replace(strings.TrimSuffix(e.URL(view), "/"))
					f := demo()
					f.taskResults, f.killResults = nil, nil // of jobs that could not be changed
					f.recorded.users[0].DefaultAccount = "" // the example sets it
					w := serve(t, config(f), request(e.Method, path, e.Example))
					var body struct{ Errors, Warnings []any }
					if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
						t.Fatal(err)
					}
					if w.Code != 200 || body.Errors == nil || len(body.Errors)+len(body.Warnings) > 0 {
						t.Errorf("%s %s %s: status %d\n%s", e.Method, path, e.Example, w.Code, w.Body)
					}
				})
			}
		}
	}
}
