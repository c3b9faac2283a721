//go:build failpoint

package ctld

import (
	"fmt"
	"testing"
	"time"

	"schedrestd/ctld/failpoint"
	"schedrestd/model"
)

// TestKilledAtFailpoints kills the controller between any two writes that
// belong together, repeatedly, while jobs are submitted. It checks that no
// accepted job is lost and none runs twice.
func TestKilledAtFailpoints(t *testing.T) {
	for _, point := range []string{"accepted", "recorded", "prepared", "spawned", "started", "outcome", "finished"} {
		t.Run(point, func(t *testing.T) {
			storm(t, 40, func(s *site, over func() bool) {
				s.kill()
				deaths := 0
				for n := 1; !over(); n = n%5 + 1 {
					s.start(fmt.Sprintf("%s=%s:%d", failpoint.Variable, point, n))
					died := make(chan struct{})
					go func(cmd interface{ Wait() error }) { cmd.Wait(); close(died) }(s.cmd)
					for alive := true; alive && !over(); {
						select {
						case <-died:
							alive = false
							deaths++
						case <-time.After(10 * time.Millisecond):
						}
					}
					s.cmd.Process.Kill()
					<-died
					s.cmd = nil
				}
				s.start()
				t.Logf("died %d times", deaths)
				if deaths == 0 {
					t.Error("it never died there")
				}
			})
		})
	}
}

// TestStepDiesAtFailpoints checks that a job is started again when its step
// dies before it has claimed the job, and counts as lost when the step dies
// later.
func TestStepDiesAtFailpoints(t *testing.T) {
	for point, want := range map[string]model.JobState{
		"unclaimed": model.JobFailed, // each time, until the controller gives up
		"claimed":   model.JobNodeFail,
		"ended":     model.JobNodeFail,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.start(failpoint.Variable + "=" + point)
			work := t.TempDir()
			s.await(s.accepted(desc(work, "echo ran >>ran")), want)
			if ran := exists(work + "/ran"); ran != (point == "ended") {
				t.Errorf("it ran: %v", ran)
			}
		})
	}
}
