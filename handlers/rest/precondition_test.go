package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestPreconditions checks that the gateway makes no change if the condition in
// the request is false. A condition must have no effect if it is true, or if
// the request changes nothing.
func TestPreconditions(t *testing.T) {
	const job, submit, body = "/sched/v0.0.42/job/12", "/sched/v0.0.42/job/submit", `{"job": {"script": "x"}}`
	for _, tt := range []struct {
		method, path, body string
		conditions         []string // "Name: value"
		want               int
	}{
		{"DELETE", job, "", nil, 200},
		{"DELETE", job, "", []string{`If-Match: "x"`}, 412},
		{"DELETE", job, "", []string{`If-Match: W/"x", "y"`}, 412},
		{"DELETE", job, "", []string{"If-Match: "}, 412},
		{"DELETE", job, "", []string{"If-Match: *"}, 200},
		{"DELETE", job, "", []string{"If-Match: *", `If-Match: "x"`}, 412},
		{"DELETE", job, "", []string{"If-None-Match: *"}, 412},
		{"DELETE", job, "", []string{`If-None-Match: "x"`}, 200},
		{"DELETE", job, "", []string{`If-None-Match: "x", W/"y,z"`}, 200},
		{"DELETE", job, "", []string{`If-None-Match: "x", *`}, 412},
		{"DELETE", job, "", []string{"If-None-Match: x"}, 412},
		{"DELETE", job, "", []string{"If-Match: *", "If-None-Match: *"}, 412},
		{"DELETE", "/sched/v0.0.40/job/12", "", []string{`If-Match: "x"`}, 412},
		{"POST", submit, body, nil, 200},
		{"POST", submit, body, []string{`If-Match: "x"`}, 412},
		{"POST", submit, body, []string{"If-Match: *"}, 412},
		{"POST", submit, body, []string{"If-None-Match: *"}, 200},
		{"POST", submit, body, []string{`If-None-Match: "x"`}, 200},
		{"POST", submit, `{"job": {"tasks": "many"}}`, []string{`If-Match: "x"`}, 422}, // answered as without the condition (RFC 9110, 13.2.1)
		{"GET", "/sched/v0.0.42/ping", "", []string{`If-Match: "x"`}, 200},
	} {
		t.Run(fmt.Sprint(tt.method, tt.conditions), func(t *testing.T) {
			site := newSite(0)
			r := newRequest(tt.method, tt.path, tt.body)
			for _, c := range tt.conditions {
				name, value, _ := strings.Cut(c, ": ")
				r.Header.Add(name, value)
			}
			w := site.serve(r)
			if w.Code != tt.want {
				t.Errorf("status %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if changed := site.changes > 0; changed != (tt.method != "GET" && tt.want == 200) {
				t.Errorf("status %d, and changed: %t", w.Code, changed)
			}
			if w.Code == http.StatusPreconditionFailed {
				if code := envelope(t, w.Body.Bytes()).Errors[0].Code; code != "precondition_failed" {
					t.Errorf("code %q", code)
				}
			}
		})
	}
}
