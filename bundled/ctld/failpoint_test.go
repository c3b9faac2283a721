//go:build failpoint

package ctld

import (
	"fmt"
	"os"
	"testing"
	"time"

	"schedrestd/bundled/ctld/failpoint"
	"schedrestd/model"
)

// TestKilledAtFailpoints repeatedly kills the controller between two writes
// that belong together, while jobs are submitted. It checks that no accepted
// job is lost and none runs twice.
func TestKilledAtFailpoints(t *testing.T) {
	for _, point := range []string{"accepted", "recorded", "prepared", "spawned", "started", "outcome", "finished"} {
		t.Run(point, func(t *testing.T) {
			storm(t, 15, func(s *site, over func() bool) {
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
				t.Logf("killed %d times", deaths)
				if deaths == 0 {
					t.Error("the controller was never killed there")
				}
			})
		})
	}
}

// TestStepDiesAtFailpoints checks what happens to a job whose step is killed.
// If the step is killed before it has claimed the job (see package step), the
// controller starts the job again, and the job does not end. If the step is
// killed later, the controller records the job as lost.
func TestStepDiesAtFailpoints(t *testing.T) {
	for point, want := range map[string]model.JobState{
		"unclaimed": model.JobPending, // the step is killed in each attempt
		"claimed":   model.JobNodeFail,
		"ended":     model.JobNodeFail,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.start(failpoint.Variable + "=" + point)
			work := t.TempDir()
			id := s.accepted(desc(work, "echo ran >>ran"))
			await(t, "a start fails", func() bool {
				j := s.job(id)
				return j.State.Ended() || j.StateReason == reasonLaunch && point == "unclaimed"
			})
			s.await(id, want)
			if ran := exists(work + "/ran"); ran != (point == "ended") {
				t.Errorf("it ran: %v", ran)
			}
			if want == model.JobPending {
				s.kill()
				s.start()
				s.await(id, model.JobComplete)
			}
		})
	}
}

// TestKilledAtFailpointWhileRequeueing kills the controller between the writes
// of a requeue. It checks that the job is not lost, and that the next
// controller completes the requeue and runs the job a second time.
func TestKilledAtFailpointWhileRequeueing(t *testing.T) {
	for _, point := range []string{"requeueing", "requeued"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.start(failpoint.Variable + "=" + point)
			work := t.TempDir()
			id := s.accepted(desc(work, "echo run >>runs; while [ ! -e go ]; do sleep 0.02; done"))
			await(t, "it runs", func() bool { return exists(work + "/runs") })
			s.client.Requeue(t.Context(), model.Credential{}, key("", uint64(id)), 0) // the controller may be killed before it answers
			s.cmd.Wait()
			s.cmd = nil
			s.start()
			await(t, "it runs again", func() bool { return read(t, work+"/runs") == "run\nrun\n" })
			os.WriteFile(work+"/go", nil, 0o644)
			if j := s.await(id, model.JobComplete); j.RestartCnt != 1 {
				t.Errorf("%d restarts", j.RestartCnt)
			}
			if left, _ := os.ReadDir(s.state + "/steps"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
