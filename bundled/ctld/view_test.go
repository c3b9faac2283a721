package ctld

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

// TestStateWhileProcessesExit checks that a job that was cancelled or requeued has its
// next state while its processes still run.
func TestStateWhileProcessesExit(t *testing.T) {
	c, _ := controller(t, Config{})
	for _, tt := range []struct {
		name string
		end  func(id uint32) error
		want model.JobState
	}{
		{"cancelled", func(id uint32) error { return cancel(c, id) }, model.JobCancelled},
		{"requeued", func(id uint32) error { return c.requeueJob(ownUser, key("", uint64(id)), 0) }, model.JobPending},
	} {
		d := desc(t.TempDir(), `trap "" TERM; while :; do sleep 0.05; done`) // runs for KillWait more
		d.TimeLimit = model.Some[uint32](9000)
		id := submit(t, c, d)
		awaitState(t, c, id, model.JobRunning)
		if err := tt.end(id); err != nil {
			t.Fatal(tt.name, err)
		}
		if j := viewJob(t, c, id); j.State != tt.want|model.JobCompleting {
			t.Errorf("%s: state %d", tt.name, j.State)
		} else if tt.want == model.JobCancelled && j.EndTime > model.At(time.Now()) {
			t.Errorf("%s: it ends at %d", tt.name, j.EndTime)
		}
		if err := cancel(c, id); err != nil {
			t.Fatal(tt.name, err)
		}
		awaitState(t, c, id, model.JobCancelled)
	}
}

// TestTimesOfWaitingJobs checks the times of jobs that are held or wait for their begin.
func TestTimesOfWaitingJobs(t *testing.T) {
	c, _ := controller(t, Config{})
	begin := model.At(time.Now().Add(time.Hour))
	d := desc(t.TempDir(), "true")
	d.BeginTime, d.TimeLimit = begin, model.Some[uint32](10)
	j := viewJob(t, c, submit(t, c, d))
	if j.StateReason != reasonBegin || j.EligibleTime != begin || j.StartTime != begin || j.EndTime != begin+600 || j.AccrueTime != 0 {
		t.Errorf("a job with a begin time: %+v", j)
	}

	d = desc(t.TempDir(), "true")
	d.Priority = model.Some[uint32](0)
	id := submit(t, c, d)
	j = viewJob(t, c, id)
	if j.EligibleTime != 0 || j.AccrueTime != 0 || j.StartTime != 0 {
		t.Errorf("a held job: %+v", j)
	}
	c.mu.Lock()
	r := *c.jobs[id].record
	r.Job.EligibleTime -= 100
	c.jobs[id].record = &r
	c.mu.Unlock()
	if err := c.updateJob(ownUser, key("", uint64(id)), &model.JobDesc{Priority: model.Infinite[uint32]()}); err != nil {
		t.Fatal(err)
	}
	if j = awaitState(t, c, id, model.JobComplete); j.EligibleTime < j.SubmitTime {
		t.Errorf("it was released at %d, and submitted at %d", j.EligibleTime, j.SubmitTime)
	}
}

// TestReasonOfCancelledJobs checks that a job that was cancelled while it waited keeps
// the reason for which it waited.
func TestReasonOfCancelledJobs(t *testing.T) {
	c, _ := controller(t, Config{})
	held, later := desc(t.TempDir(), "true"), desc(t.TempDir(), "true")
	held.Priority = model.Some[uint32](0)
	later.BeginTime = model.At(time.Now().Add(time.Hour))
	for want, d := range map[uint32]*model.JobDesc{reasonHeldUser: held, reasonBegin: later} {
		id := submit(t, c, d)
		if err := cancel(c, id); err != nil {
			t.Fatal(err)
		}
		if j := awaitState(t, c, id, model.JobCancelled); j.StateReason != want {
			t.Errorf("reason %d, want %d", j.StateReason, want)
		}
	}
}

// TestFieldsOfRunningJobs checks which texts can't be changed when a job has started.
func TestFieldsOfRunningJobs(t *testing.T) {
	c, _ := controller(t, Config{})
	d := desc(t.TempDir(), "sleep 60")
	d.NTasksPerNode = model.Some[uint16](1)
	id := submit(t, c, d)
	awaitState(t, c, id, model.JobRunning)
	for _, d := range []model.JobDesc{{Account: "a"}, {QOS: "q"}, {WCKey: "w"}} {
		if number, _ := fault.Number(c.updateJob(ownUser, key("", uint64(id)), &d)); number != fault.JobNotPending {
			t.Errorf("%+v: error %d", d, number)
		}
	}
}

// TestDefaults checks fields of a job that its description does not set.
func TestDefaults(t *testing.T) {
	c := &Controller{}
	if j := c.jobFromDesc(&model.JobDesc{CPUsPerTask: model.Some[uint16](3)}, time.Now()); j.Name != "" || j.MinCPUsPerNode != 3 {
		t.Errorf("name %q, at least %d CPUs", j.Name, j.MinCPUsPerNode)
	}
}

// A keeper is an accounting daemon that keeps all records.
type keeper struct {
	mu   sync.Mutex
	jobs []model.Job
}

func (k *keeper) Record(_ context.Context, jobs []model.Job) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs = append(k.jobs, jobs...)
	return nil
}

// TestAccounted checks what the accounting daemon gets of a job when it is submitted,
// when it starts and when it ends.
func TestAccounted(t *testing.T) {
	k := &keeper{}
	c, _ := controller(t, Config{Accounting: k})
	for _, tt := range []struct {
		script   string
		limit    uint32 // in minutes, which are short in tests
		state    model.JobState
		exitCode uint32
	}{
		{"i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3", 9000, model.JobFailed, 3 << 8},
		{"sleep 60", 1, model.JobTimeout, 0},
	} {
		d := desc(t.TempDir(), tt.script)
		d.TimeLimit, d.Name = model.Some(tt.limit), ""
		id := submit(t, c, d)
		if j := awaitState(t, c, id, tt.state); j.DerivedExitCode != 0 || j.StateReason == reasonNone || j.ExitCode == 0 {
			t.Errorf("%q: %+v", tt.script, j)
		}
		var records []model.Job
		await(t, "all records arrive", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			records = slices.DeleteFunc(slices.Clone(k.jobs), func(j model.Job) bool { return j.StepID.JobID != id })
			return len(records) == 3
		})
		for i, state := range []model.JobState{model.JobPending, model.JobRunning, tt.state} {
			j := records[i]
			if j.State.Base() != state || (j.EndTime != 0) != (i == 2) || (j.StartTime != 0) != (i > 0) || j.StateReason != reasonNone || j.Name != "allocation" {
				t.Errorf("%q: record %d: %+v", tt.script, i, j)
			}
		}
		if r := records[2].Run; !r.HasUsage || r.MaxRSS == 0 || r.UserTime+r.SystemTime == 0 || (r.Status == 3<<8) != (tt.exitCode == 3<<8) {
			t.Errorf("%q: run %+v", tt.script, r)
		}
		if code := records[2].ExitCode; code != tt.exitCode {
			t.Errorf("%q: exit code %d", tt.script, code)
		}
	}
}

// TestCanceller checks that the accounting daemon gets the user who cancelled a
// job first, whether the job ran or waited.
func TestCanceller(t *testing.T) {
	k := &keeper{}
	c, _ := controller(t, Config{Accounting: k, SchedUser: admin.UID})
	waiting := desc(t.TempDir(), "true")
	waiting.Priority = model.Some[uint32](0)
	for state, d := range map[model.JobState]*model.JobDesc{model.JobRunning: desc(t.TempDir(), "sleep 60"), model.JobPending: waiting} {
		id := submit(t, c, d)
		awaitState(t, c, id, state)
		for _, r := range []*server.Request{{Identity: admin}, {Identity: server.Identity{UID: c.uid}}} {
			if err := c.kill(r, id, 9, 0, time.Now().Add(startTimeout)); err != nil && errs.KindOf(err) != errs.Conflict {
				t.Fatal(err)
			}
		}
		awaitState(t, c, id, model.JobCancelled)
		await(t, "the record of its end arrives", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			return slices.ContainsFunc(k.jobs, func(j model.Job) bool {
				return j.StepID.JobID == id && j.State.Base() == model.JobCancelled && j.Run.CancelledBy == model.Some(admin.UID)
			})
		})
	}
}

// TestCancellerSurvives checks that accounting gets the user who cancelled a job if
// the controller is restarted before the job has ended.
func TestCancellerSurvives(t *testing.T) {
	dir := t.TempDir()
	c, stop := controller(t, Config{SchedUser: admin.UID})
	id := submit(t, c, desc(dir, `trap "" TERM; touch started; while [ ! -e end ]; do sleep 0.05; done`))
	await(t, "it runs", func() bool { return exists(filepath.Join(dir, "started")) })
	if err := c.kill(&server.Request{Identity: admin}, id, 9, 0, time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	stop()
	k := &keeper{}
	c, _ = controller(t, Config{StateDir: c.cfg.StateDir, SchedUser: admin.UID, Accounting: k})
	if j := awaitState(t, c, id, model.JobCancelled); j.Run.CancelledBy != model.Some(admin.UID) {
		t.Errorf("cancelled by %+v", j.Run.CancelledBy)
	}
	await(t, "the record of its end arrives", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return slices.ContainsFunc(k.jobs, func(j model.Job) bool {
			return j.StepID.JobID == id && j.State.Base() == model.JobCancelled && j.Run.CancelledBy == model.Some(admin.UID)
		})
	})
}

// TestCancellationSurvives checks that a recorded cancellation takes effect if the
// controller was killed before it notified the job's step.
func TestCancellationSurvives(t *testing.T) {
	c, stop := controller(t, Config{})
	id := submit(t, c, desc(t.TempDir(), "sleep 60"))
	awaitState(t, c, id, model.JobRunning)
	if err := c.recordCancel(c.jobs[id], ownUser.UID, time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	stop()
	c, _ = controller(t, Config{StateDir: c.cfg.StateDir})
	awaitState(t, c, id, model.JobCancelled)
}

// TestCancelOfRequeuedJob checks that a cancellation that comes when the job is back in
// the queue leaves no trace in the journal. Otherwise, if the controller crashed then, the
// job would run, and the start after the next would kill it.
func TestCancelOfRequeuedJob(t *testing.T) {
	c, _ := controller(t, Config{})
	d := desc(t.TempDir(), "sleep 60")
	d.BeginTime = model.At(time.Now().Add(time.Hour))
	j := c.jobs[submit(t, c, d)]
	if err := c.recordCancel(j, ownUser.UID, time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.Job.Run.CancelledBy.Set || j.cancelled || j.phase != waiting {
		t.Errorf("cancelled by %+v, %t, phase %d", j.Job.Run.CancelledBy, j.cancelled, j.phase)
	}
}
