package ctld

import (
	"slices"
	"testing"

	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/step"
	"schedrestd/model"
)

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
