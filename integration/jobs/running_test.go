package jobs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/integration/running"
)

// TestRunningJob checks what the fields of a submission change in the running
// job (package running). TestRunningAsBundled of integration/slurm runs the same
// jobs on a Slurm cluster.
func TestRunningJob(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	u := harness.OrdinaryUser(t)
	for _, tt := range running.Cases(u.Name, l.Work) {
		t.Run(tt.Name, func(t *testing.T) {
			id := l.Submit(tt.Script, tt.Fields, "X-SCHED-USER-NAME: "+u.Name)
			l.AwaitEnd(id)
			text, err := os.ReadFile(filepath.Join(l.Work, cmp.Or(tt.Output, fmt.Sprintf("sched-%d.out", id))))
			harness.Must(t, err)
			if got := string(text); got != tt.Want {
				t.Errorf("printed %q, want %q", got, tt.Want)
			}
		})
	}
}
