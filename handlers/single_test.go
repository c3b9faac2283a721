package handlers

import (
	"net/http"
	"testing"
)

// TestRepeatedHeaders checks that a header may be repeated with the same value,
// but not with another one. SchedMD's client for Go sends Content-Type twice,
// and a proxy may join the two lines.
func TestRepeatedHeaders(t *testing.T) {
	tests := []struct {
		name, header string
		lines        []string
		status       int
	}{
		{"type, twice", "Content-Type", []string{"application/json", "application/json"}, 200},
		{"type, twice in a line", "Content-Type", []string{"application/json, application/json"}, 200},
		{"type, both ways", "Content-Type", []string{"application/json,application/json", "Application/JSON"}, 200},
		{"type with a charset, twice", "Content-Type", []string{"application/json; charset=utf-8", "application/json; charset=UTF-8"}, 200},
		{"comma in quotes", "Content-Type", []string{`application/json; charset="utf-8,x"`}, 415},
		{"two types", "Content-Type", []string{"application/json", "application/yaml"}, 415},
		{"two types in a line", "Content-Type", []string{"application/json, application/yaml"}, 415},
		{"a type and none", "Content-Type", []string{"application/json", ""}, 415},
		{"coding, twice", "Content-Encoding", []string{"identity", "identity"}, 200},
		{"coding, twice the wrong one", "Content-Encoding", []string{"gzip", "gzip"}, 415},
		{"two codings", "Content-Encoding", []string{"identity, gzip"}, 415},
		{"token, twice", "X-Sched-User-Token", []string{token, token}, 401},
		{"name, twice", "X-Sched-User-Name", []string{"alice", "alice"}, 401},
		{"bearer, twice", "Authorization", []string{"Bearer " + token, "Bearer " + token}, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := request(http.MethodPost, "/sched/v0.0.42/job/submit", `{"job":{"script":"x"}}`)
			r.Header[tt.header] = tt.lines
			w := serve(t, config(f), r)
			if w.Code != tt.status || len(f.submitted) > 0 != (tt.status == 200) {
				t.Errorf("status %d, want %d; %d submitted: %s", w.Code, tt.status, len(f.submitted), w.Body)
			}
		})
	}
}
