package api

import (
	"testing"

	"schedrestd/model"
)

// TestOutputPaths checks the default paths of a job's input and output. Only a
// job with a script has defaults.
func TestOutputPaths(t *testing.T) {
	for _, tt := range []struct {
		name    string
		job     model.Job
		in      string
		out     string
		failure string
	}{
		{"script", model.Job{BatchFlag: 1}, "/dev/null", "/home/a/slurm-7.out", "/home/a/slurm-7.out"},
		{"script with an output", model.Job{BatchFlag: 1, StdOut: "%j.out"}, "/dev/null", "/home/a/7.out", "/home/a/7.out"},
		{"script with all", model.Job{BatchFlag: 1, StdIn: "in", StdOut: "/o", StdErr: "/e"}, "/home/a/in", "/o", "/e"},
		{"allocation", model.Job{}, "", "", ""},
		{"allocation with an output", model.Job{StdOut: "/o"}, "", "/o", ""},
		{"allocation with all", model.Job{StdIn: "/i", StdOut: "/o", StdErr: "%j.err"}, "/i", "/o", "/home/a/7.err"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := JobRow{Job: &tt.job}
			j.StepID.JobID, j.WorkDir = 7, "/home/a"
			if in, out, failure := stdin(&j), stdout(&j), stderr(&j); in != tt.in || out != tt.out || failure != tt.failure {
				t.Errorf("input %q, output %q, errors %q", in, out, failure)
			}
		})
	}
}
