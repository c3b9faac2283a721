package rest

import "testing"

// TestProblem checks that the text for a problem says nothing twice.
func TestProblem(t *testing.T) {
	for _, tt := range []struct {
		p    problem
		want string
	}{
		{problem{Description: "there is no job 9", Number: 2017, Error: "Invalid job id specified", Code: "not_found"}, "there is no job 9"},
		{problem{Description: "Failure to query job", Number: 2017, Error: "Invalid job id specified"}, "Failure to query job (Invalid job id specified)"},
		{problem{Number: 2017, Error: "Invalid job id specified"}, "Invalid job id specified"},
		{problem{Description: "partition: unknown", Source: "#/job/partition"}, "partition: unknown"},
		{problem{Description: "job 1: not found", Source: "#/jobs"}, "job 1: not found"},
		{problem{Description: "there is no job 7", Source: "#/jobs"}, "there is no job 7"},
		{problem{Description: "the job is held", Source: "#/job"}, "the job is held"},
		{problem{Description: "not a number", Source: "#/job/tasks"}, "#/job/tasks: not a number"},
		{problem{Description: "a\x1b[2J", Source: "_dump_jobs"}, `a\x1b[2J`},
	} {
		if got := tt.p.String(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.p, got, tt.want)
		}
	}
}
