package ctld

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

// TestRequeue checks that the processes of a requeued job end, and that the job
// then runs again.
func TestRequeue(t *testing.T) {
	for _, v := range []codec.Version{codec.V2205, codec.Newest} {
		c, _ := controller(t, Config{})
		rpc, cred, dir := newClient(t, c, v), model.Credential{}, t.TempDir()
		id := submit(t, c, desc(dir, `echo "run $SLURM_RESTART_COUNT" >>runs; while [ ! -e go ]; do sleep 0.02; done`))
		awaitState(t, c, id, model.JobRunning)
		hasRuns := func(want string) func() bool {
			return func() bool { b, _ := os.ReadFile(filepath.Join(dir, "runs")); return string(b) == want }
		}
		await(t, "it runs", hasRuns("run \n"))
		if results, err := rpc.Requeue(t.Context(), cred, key("", uint64(id)), 0); err != nil || results != nil {
			t.Fatal(v, results, err)
		}
		await(t, "it runs again", hasRuns("run \nrun 1\n"))
		if j := awaitState(t, c, id, model.JobRunning); j.RestartCnt != 1 || j.Nodes == "" || j.StartTime == 0 {
			t.Errorf("%+v", j)
		}
		os.WriteFile(filepath.Join(dir, "go"), nil, 0o644)
		awaitState(t, c, id, model.JobComplete)
		if entries, _ := os.ReadDir(filepath.Join(c.cfg.StateDir, "steps")); len(entries) > 0 {
			t.Errorf("left behind: %v", entries)
		}
	}
}

// TestRequeueHeld checks that a job that is requeued with a hold waits until an
// administrator releases it. While the job waits, its state reason must show
// whether its owner or an administrator held it.
func TestRequeueHeld(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID})
	for _, tt := range []struct {
		client server.Identity
		reason uint32
	}{{ownUser, reasonHeldUser}, {admin, reasonHeldAdmin}} {
		id := submit(t, c, desc(t.TempDir(), "sleep 60"))
		awaitState(t, c, id, model.JobRunning)
		text := key("", uint64(id))
		if err := c.requeueJob(tt.client, text, model.RequeueHold); err != nil {
			t.Fatal(err)
		}
		j := awaitState(t, c, id, model.JobPending)
		if j.StateReason != tt.reason || j.Priority != 0 || j.RestartCnt != 1 || j.StartTime != 0 || j.Nodes != "" {
			t.Errorf("%+v", j)
		}
		if err := c.updateJob(admin, text, &model.JobDesc{Priority: model.Infinite[uint32]()}); err != nil {
			t.Fatal(err)
		}
		awaitState(t, c, id, model.JobRunning)
		if err := cancel(c, id); err != nil {
			t.Fatal(err)
		}
		awaitState(t, c, id, model.JobCancelled)
	}
}

func TestRefusedRequeues(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID})
	endedID := submit(t, c, desc(t.TempDir(), "true"))
	awaitState(t, c, endedID, model.JobComplete) // before the next job, because there may be only one processor
	noRequeueDesc := desc(t.TempDir(), "true")
	noRequeueDesc.Requeue = model.Some[uint16](0)
	endedNoRequeueID := submit(t, c, noRequeueDesc)
	awaitState(t, c, endedNoRequeueID, model.JobComplete)
	noRequeueDesc.Script = "#!/bin/sh\nsleep 60\n"
	noRequeueID := submit(t, c, noRequeueDesc)
	awaitState(t, c, noRequeueID, model.JobRunning)
	held := desc(t.TempDir(), "true")
	held.Priority = model.Some[uint32](0)
	heldID := submit(t, c, held)
	for _, tt := range []struct {
		name   string
		client server.Identity
		id     uint32
		flags  model.Requeue
		want   int
	}{
		{"waits", ownUser, heldID, 0, fault.JobPending},
		{"has ended", ownUser, endedID, 0, fault.NotSupported},
		{"must not be requeued", ownUser, noRequeueID, 0, fault.Disabled},
		{"must not be requeued and has ended", ownUser, endedNoRequeueID, 0, fault.Disabled},
		{"marked", ownUser, noRequeueID, model.RequeueHold | model.RequeueSpecialExit, fault.NotSupported},
		{"unknown", ownUser, 99, 0, fault.InvalidJobID},
		{"another user's", otherUser, heldID, 0, fault.InvalidJobID},
	} {
		err := c.requeueJob(tt.client, key("", uint64(tt.id)), tt.flags)
		if e, _ := errors.AsType[*errs.Error](err); e == nil || e.Number != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if j := viewJob(t, c, noRequeueID); j.State != model.JobRunning {
		t.Errorf("state %d", j.State)
	}
}

// TestCancelAfterRequeue requeues a running job, and cancels it before its run
// has ended. The job must end as cancelled, even if the controller is killed
// immediately after the cancellation.
func TestCancelAfterRequeue(t *testing.T) {
	for _, crash := range []bool{false, true} {
		s := newSite(t)
		s.start()
		work := t.TempDir()
		id := s.accepted(desc(work, `trap "" TERM; echo run >>runs; while :; do sleep 0.05; done`)) // ignores SIGTERM, so it runs for KillWait more
		await(t, "it runs", func() bool { return exists(filepath.Join(work, "runs")) })
		text := key("", uint64(id))
		if _, err := s.client.Requeue(t.Context(), model.Credential{}, text, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Kill(t.Context(), model.Credential{}, text, 9, 0); err != nil {
			t.Fatal(err)
		}
		if crash {
			s.kill()
			s.start()
		}
		s.await(id, model.JobCancelled)
		if got := read(t, filepath.Join(work, "runs")); got != "run\n" {
			t.Errorf("crash %v: runs %q", crash, got)
		}
	}
}

// TestRequeueSurvives checks that a job is still requeued if the controller is
// killed before the job's run has ended.
func TestRequeueSurvives(t *testing.T) {
	s := newSite(t)
	s.start()
	work := t.TempDir()
	id := s.accepted(desc(work, `trap "" TERM; echo run >>runs; while [ ! -e go ]; do sleep 0.05; done`))
	hasRuns := func(want string) func() bool {
		return func() bool { b, _ := os.ReadFile(filepath.Join(work, "runs")); return string(b) == want }
	}
	await(t, "it runs", hasRuns("run\n"))
	if _, err := s.client.Requeue(t.Context(), model.Credential{}, key("", uint64(id)), 0); err != nil {
		t.Fatal(err)
	}
	s.kill()
	s.start()
	await(t, "it runs again", hasRuns("run\nrun\n"))
	os.WriteFile(filepath.Join(work, "go"), nil, 0o644)
	if j := s.await(id, model.JobComplete); j.RestartCnt != 1 {
		t.Errorf("%+v", j)
	}
}

// TestRecordsOfRuns checks that accounting gets a record of each run of a job that is
// requeued.
func TestRecordsOfRuns(t *testing.T) {
	k := &keeper{}
	c, _ := controller(t, Config{Accounting: k})
	dir := t.TempDir()
	id := submit(t, c, desc(dir, `[ -e again ] && exit 0; touch again; sleep 60`))
	await(t, "it runs", func() bool { return exists(filepath.Join(dir, "again")) })
	submitted := viewJob(t, c, id).SubmitTime
	await(t, "the first second is over", func() bool { return model.At(time.Now()) > submitted })
	if err := c.requeueJob(ownUser, key("", uint64(id)), 0); err != nil {
		t.Fatal(err)
	}
	if j := awaitState(t, c, id, model.JobComplete); j.SubmitTime <= submitted || j.RestartCnt != 1 {
		t.Errorf("%+v", j)
	}
	latest := map[model.Time]model.Job{} // by time of submission, as the daemon keeps them
	await(t, "all records arrive", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, j := range k.jobs {
			latest[j.SubmitTime] = j
		}
		return len(k.jobs) == 6 // the submission, start and end of both runs
	})
	if first := latest[submitted]; len(latest) != 2 || first.State != model.JobPending|model.JobRequeued || first.RestartCnt != 0 ||
		first.StartTime == 0 || first.EndTime < first.StartTime || first.Nodes == "" || !first.Run.HasUsage || first.ExitCode != 0 {
		t.Errorf("%d records, the first run is %+v", len(latest), first)
	}
}
