package handlers

import (
	"net/http"
	"strings"
	"testing"
)

// TestAuditFields checks that the audit log names the fields that a change
// sets, but contains none of their values.
func TestAuditFields(t *testing.T) {
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "job/12", `{"comment": "secret", "time_limit": {"set": true, "number": 5}, "priority": 7, "colour": "red", "hold": null}`, "comment time_limit priority"},
		{"POST", "job/submit", `{"script": "#!/bin/sh\n", "job": {"environment": {"TOKEN": "secret"}, "current_working_directory": "/tmp"}}`, "script job/environment job/current_working_directory"},
		{"POST", "reservations", `{"reservations": [{"name": "maint", "comment": "secret"}, {"name": "weekly", "duration": 5}]}`, "reservations/name reservations/comment reservations/duration"},
		{"POST", "partitions", `{"partitions": [{"name": "debug", "defaults": {"time": 5}, "nodes": {"total": 3}}]}`, "partitions/name partitions/defaults/time partitions/nodes/total"},
		{"DELETE", "node/n1", "", ""},
	} {
		f := demo()
		cfg := config(f)
		r := &recorder{}
		cfg.Worker = r
		if w := serve(t, cfg, request(tt.method, "/slurm/v0.0.45/"+tt.path, tt.body)); w.Code != http.StatusOK || len(r.changes) != 1 {
			t.Errorf("%s: status %d, %d changes: %s", tt.path, w.Code, len(r.changes), w.Body)
			continue
		}
		if got := r.changes[0].Fields; got != tt.want || strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want %q", tt.path, got, tt.want)
		}
	}
}
