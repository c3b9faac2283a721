package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

// TestFields checks that an answer has only the fields that the client asked
// for, in JSON and YAML, and that everything beside the records stays.
func TestFields(t *testing.T) {
	for _, tt := range []struct{ path, accept, want string }{
		{"/sched/v0.0.45/jobs?fields=job_id,time_limit.number", "application/json", `{"jobs":[{"job_id":12,"time_limit":{"number":0}}],"last_backfill":`},
		{"/slurm/v0.0.42/jobs?fields=job_id&fields=tasks", "application/json", `{"jobs":[{"job_id":12,"tasks":{"set":true,"infinite":false,"number":0}}],"last_backfill":`},
		{"/sched/v0.0.43/job/12?fields=job_id", "application/json", `{"jobs":[{"job_id":12}],"last_backfill":`},
		{"/sched/v0.0.43/nodes?fields=name", "application/yaml", "nodes:\n  - name: n1\n  - name: n2\nlast_update:"},
		{"/scheddb/v0.0.43/accounts?fields=name", "application/json", `{"accounts":[{"name":"lab"}],"meta":{"plugin":{`},
	} {
		r := request(http.MethodGet, tt.path, "")
		r.Header.Set("Accept", tt.accept)
		w := serve(t, config(demo()), r)
		if body := w.Body.String(); w.Code != http.StatusOK || !strings.HasPrefix(body, tt.want) || !strings.Contains(body, "warnings") {
			t.Errorf("%s: status %d: %.200s", tt.path, w.Code, body)
		}
	}
}

// TestFieldsRefused checks the answers to requests for fields that do not
// exist. The controller must not be asked for a list.
func TestFieldsRefused(t *testing.T) {
	for query, want := range map[string]string{
		"fields=job_id,jobid":      `fields: unknown field "jobid"; did you mean job_id?`,
		"fields=":                  "fields: no field is named; omit the parameter to get all fields",
		"fields=,":                 "fields: no field is named; omit the parameter to get all fields",
		"fields=job_id.number":     `fields: field "job_id" has no fields of its own`,
		"fields=meta":              `fields: unknown field "meta"`,
		"fields=cpus&fields=cpu_s": `fields: unknown field "cpu_s"; did you mean cpus?`,
	} {
		f := demo()
		w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.45/jobs?"+query, ""))
		body := envelope(t, w.Body.Bytes())
		if w.Code != http.StatusUnprocessableEntity || len(body.Errors) != 1 || body.Errors[0].Description != want || body.Errors[0].Source != "query/fields" {
			t.Errorf("%s: status %d, %+v", query, w.Code, body.Errors)
		}
		if d := cmp.Diff([]string{"verify"}, f.calls); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	if w := serve(t, config(demo()), request(http.MethodDelete, "/sched/v0.0.45/job/12?fields=job_id", "")); !strings.Contains(w.Body.String(), "unknown parameter") {
		t.Errorf("of a change: %s", w.Body)
	}
}

// TestFieldsOfFailures checks that an error after the choice of fields has its
// usual form.
func TestFieldsOfFailures(t *testing.T) {
	f := demo()
	f.callErr = errs.New(errs.Unavailable, "gone")
	w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.45/jobs?fields=job_id", ""))
	if body := envelope(t, w.Body.Bytes()); w.Code != http.StatusServiceUnavailable || len(body.Errors) != 1 {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
