package step

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/become/stage"
)

// stopperUID is the uid of a user that only this test uses. A process of this
// user constantly stops all other processes of the user.
const stopperUID = 31_241

// TestUserCannotHoldUpTheStep checks that a job ends even if its user
// immediately stops every process of that user.
func TestUserCannotHoldUpTheStep(t *testing.T) {
	b := newFixture(t).asOther()
	b.user = &User{UID: stopperUID, GID: stopperUID, Groups: []uint32{stopperUID}}
	if err := os.Chown(b.work, stopperUID, stopperUID); err != nil {
		t.Fatal(err)
	}
	argv, env := stage.Target{UID: stopperUID, GID: stopperUID, Path: stage.Program, Argv: []string{"stopper"}}.Command()
	stopper, err := os.StartProcess(stage.Program, argv, &os.ProcAttr{Env: env, Files: []*os.File{nil, nil, os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stopper.Kill(); _, _ = stopper.Wait() })

	waitCtx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const maxJobs = 4
	var jobs sync.WaitGroup
	slots := make(chan struct{}, maxJobs)
	for range 40 {
		spec := b.spec("exit 0")
		spec.TimeLimit, spec.KillWait = 50*time.Millisecond, 50*time.Millisecond
		slots <- struct{}{}
		s := b.start(spec)
		jobs.Go(func() {
			defer func() { <-slots }()
			if err := s.Wait(waitCtx); err != nil {
				t.Errorf("job %d does not end: %v", spec.Job, err)
				_ = s.handle.Signal(syscall.SIGKILL)
			} else if _, ok, err := ReadOutcome(spec.Home); !ok || err != nil {
				t.Errorf("job %d has no outcome: %v", spec.Job, err)
			}
		})
	}
	jobs.Wait()
}

func TestStepThatDoesNotReportIsKilled(t *testing.T) {
	defer func(limit time.Duration) { claimTimeout = limit }(claimTimeout)
	claimTimeout = 100 * time.Millisecond
	b := newFixture(t)
	sleep, err := os.Open("/bin/sleep") // its argument is the job's number
	if err != nil {
		t.Fatal(err)
	}
	defer sleep.Close()
	fd, err := dupFD(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program := &Program{fd}
	defer program.Close()
	spec := b.spec("exit 0")
	spec.Job = 86_400
	if _, err := program.Start(spec, b.log); err == nil || !strings.Contains(err.Error(), "no report within 100ms") {
		t.Error(err)
	}
	if err := Withdraw(spec.Home); err != nil {
		t.Errorf("the job can't be started again: %v", err)
	}
}
