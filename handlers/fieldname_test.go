package handlers

import (
	"net/http"
	"testing"
)

// TestInvalidFieldIsNamed checks that the text of an error names the field or
// parameter that is missing or invalid. Clients often show only the text.
func TestInvalidFieldIsNamed(t *testing.T) {
	for _, tt := range []struct {
		method, path, body string
		want               string
	}{
		{"POST", "/slurmdb/v0.0.43/accounts/", `{"accounts": [{"name": "a"}]}`,
			"accounts/0/description: required, but missing from the object at line 1, column 15"},
		{"POST", "/slurm/v0.0.43/job/submit", `{"job": {"script": "#!/bin/sh", "tasks": "many"}}`,
			`job/tasks: expected integer, got string "many" (line 1, column 42)`},
		{"POST", "/slurm/v0.0.43/job/submit", `{"job": {"environment": ["A=b"], "current_working_directory": "/"}}`,
			"job/script: the job has no script"},
		{"POST", "/slurm/v0.0.43/job/submit", `{}`, "job: required, but missing"},
		{"POST", "/slurm/v0.0.43/job/submit", `[]`, "the body: expected object, got array (line 1, column 1)"},
		{"POST", "/slurm/v0.0.43/node/n1", `{"weight": {"set": "maybe"}}`,
			`weight/set: expected true or false, got string "maybe" (line 1, column 20)`},
		{"GET", "/slurm/v0.0.43/jobs?flags=NOPE", "", `flags: unknown word "NOPE"; expected one of ALL, DETAIL, MIXED, LOCAL, SIBLING, FEDERATION, FUTURE`},
	} {
		w := serve(t, config(demo()), request(tt.method, tt.path, tt.body))
		errors := envelope(t, w.Body.Bytes()).Errors
		if w.Code != http.StatusUnprocessableEntity || len(errors) == 0 || errors[0].Description != tt.want {
			t.Errorf("%s %s: status %d, %+v; want %q", tt.path, tt.body, w.Code, errors, tt.want)
		}
	}
}
