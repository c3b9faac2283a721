package ctld

import (
	"slices"
	"strings"
	"testing"

	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/step"
	"schedrestd/model"
)

// TestVariables checks which values variables have that are not only about the job.
func TestVariables(t *testing.T) {
	c := &Controller{cfg: Config{Node: "here"}}
	j := &model.Job{WorkDir: "/work", AllocNode: "client"}
	for _, tt := range []struct {
		sent []step.Raw
		want []step.Raw
	}{
		{nil, []step.Raw{"SLURM_SUBMIT_DIR=/work", "SCHED_SUBMIT_DIR=/work", "SLURM_SUBMIT_HOST=client", "HOSTNAME=here", "SLURM_TOPOLOGY_ADDR=here"}},
		{[]step.Raw{"SLURM_SUBMIT_DIR=/from", "SLURM_SUBMIT_HOST=laptop", "HOSTNAME=laptop"},
			[]step.Raw{"SLURM_SUBMIT_DIR=/from", "SCHED_SUBMIT_DIR=/from", "SLURM_SUBMIT_HOST=laptop", "HOSTNAME=here"}},
	} {
		env := c.environment(tt.sent, j, nss.User{})
		for _, want := range tt.want {
			name, _, _ := strings.Cut(string(want), "=")
			found := slices.DeleteFunc(slices.Clone(env), func(v step.Raw) bool { return !strings.HasPrefix(string(v), name+"=") })
			if len(found) != 1 || found[0] != want {
				t.Errorf("%q: %q, want %q", tt.sent, found, want)
			}
		}
	}
}

// TestKeptLimits checks that PropagateResourceLimits removes the limits of a
// submission that it does not name, unless the user asked for them.
func TestKeptLimits(t *testing.T) {
	c := &Controller{cfg: Config{Node: "here", KeptLimits: []string{"CORE", "NOFILE"}}}
	for variable, want := range map[step.Raw]bool{
		"SLURM_RLIMIT_CORE=0": false, "SLURM_RLIMIT_NOFILE=": false, "SLURM_RLIMIT_CPU=5": true, "SLURM_RLIMIT_CORE=U0": true, "CORE=1": true, "SLURM_RLIMIT_CORES=1": true,
		"SLURMD_NODENAME=there": false,
	} {
		env := c.environment([]step.Raw{variable}, &model.Job{}, nss.User{})
		if slices.Contains(env, variable) != want {
			t.Errorf("%s: in the job %v, want %v", variable, !want, want)
		}
		if !slices.Contains(env, "SLURMD_NODENAME=here") {
			t.Errorf("no SLURMD_NODENAME in %q", env)
		}
	}
}
