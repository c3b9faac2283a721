package ctld

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// TestFaultsOfTheMachine checks that no job is lost if no job can be started
// for a moment. A job that ends during the fault must keep its outcome, and
// each waiting job must run exactly once after the fault.
func TestFaultsOfTheMachine(t *testing.T) {
	for _, tt := range []struct {
		name string
		// begin makes starts fail for a running controller, and returns a
		// function that ends the fault. It skips the test if it can't.
		begin func(t *testing.T, s *site) (end func())
	}{
		{"no descriptors", noDescriptors},
		{"no inodes", noInodes},
		{"no processes", noProcesses},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if tt.name == "no inodes" {
				mountSmall(t, s.state)
			}
			s.start()
			work := t.TempDir()
			running := s.accepted(desc(work, "touch started; while [ ! -e go ]; do sleep 0.02; done"))
			await(t, "a job runs", func() bool { return exists(work + "/started") })
			begin := time.Now().Add(2 * time.Second)
			var waiting []uint32
			for range 20 {
				d := desc(work, "echo $SCHED_JOB_ID >>ran")
				d.BeginTime = model.At(begin)
				waiting = append(waiting, s.accepted(d))
			}
			end := tt.begin(t, s)
			os.WriteFile(work+"/go", nil, 0o644)
			time.Sleep(time.Until(begin.Add(2 * time.Second))) // enough for many attempts
			end()
			if s.hasEnded() { // without threads, the Go runtime ends a program
				s.kill()
				s.start()
			}
			s.await(running, model.JobComplete)
			for _, id := range waiting {
				s.await(id, model.JobComplete)
			}
			runs := strings.Fields(read(t, work+"/ran"))
			for _, id := range waiting {
				if n := occurrences(runs, fmt.Sprint(id)); n != 1 {
					t.Errorf("job %d ran %d times", id, n)
				}
			}
		})
	}
}

func occurrences(list []string, want string) (n int) {
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

// noDescriptors lets the controller open no more files.
func noDescriptors(t *testing.T, s *site) (end func()) {
	pid := s.cmd.Process.Pid
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = 3
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil); err != nil {
			t.Error(err)
		}
	}
}

// mountSmall mounts a file system with few inodes at dir.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	mountTmpfs(t, dir, "size=16m,nr_inodes=100,mode=0700")
}

// mountTmpfs mounts a tmpfs at dir until the test ends.
func mountTmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	os.MkdirAll(dir, 0o700)
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skip("mount tmpfs:", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// noInodes uses up the inodes of the state directory's file system.
func noInodes(t *testing.T, s *site) (end func()) {
	var files []string
	for n := 0; ; n++ {
		path := filepath.Join(s.state, "ballast"+strconv.Itoa(n))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			break
		}
		files = append(files, path)
	}
	return func() {
		for _, path := range files {
			os.Remove(path)
		}
	}
}

// noProcesses lets the controller create no more processes and threads. A limit
// of setrlimit(2) would not apply to root.
func noProcesses(t *testing.T, s *site) (end func()) {
	group := fmt.Sprintf("/sys/fs/cgroup/pids/ctld-test-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no cgroup that limits processes:", err)
	}
	t.Cleanup(func() {
		s.kill()
		endSteps(t, s.state)
		await(t, "the cgroup is empty", func() bool { return os.Remove(group) == nil })
	})
	write := func(name, value string) {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	write("cgroup.procs", strconv.Itoa(s.cmd.Process.Pid))
	// The controller needs some threads of its own. A step has five or more.
	used, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(group, "pids.current"))))
	if err != nil {
		t.Fatal(err)
	}
	write("pids.max", strconv.Itoa(used+3))
	return func() { write("pids.max", "max") }
}

// failing looks up the users of this machine. While err is set, it fails.
type failing struct {
	System
	mayFail chan error // contains the error; empty: look-ups succeed
}

func (f *failing) LookupUID(uid uint32) (nss.User, error) {
	select {
	case err := <-f.mayFail:
		f.mayFail <- err
		return nss.User{}, err
	default:
		return f.System.LookupUID(uid)
	}
}

// TestLookupFails checks that waiting jobs do not end while users can't be
// looked up, and that such a job says why it waits. A directory service that is
// down may also report that the user does not exist.
func TestLookupFails(t *testing.T) {
	for _, kind := range []errs.Kind{errs.Unavailable, errs.NotFound} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			users := &failing{mayFail: make(chan error, 1)}
			c, _ := controller(t, Config{Users: users, Log: quiet})
			var ids []uint32
			held := desc(t.TempDir(), "true")
			held.Priority = model.Some[uint32](0)
			for range 10 {
				ids = append(ids, submit(t, c, held))
			}
			users.mayFail <- errs.New(kind, "directory service down")
			for _, id := range ids {
				if err := c.updateJob(ownUser, fmt.Sprint(id), &model.JobDesc{Priority: model.Some[uint32](100)}); err != nil {
					t.Fatal(err)
				}
			}
			await(t, "a start fails", func() bool {
				j := viewJob(t, c, ids[0])
				return j.State == model.JobPending && j.StateReason == reasonLaunch && strings.Contains(j.StateDescription, "looked up")
			})
			time.Sleep(time.Second) // enough for many attempts
			<-users.mayFail
			for _, id := range ids {
				if j := awaitState(t, c, id, model.JobComplete); j.StateDescription != "" {
					t.Errorf("job %d: %q", id, j.StateDescription)
				}
			}
		})
	}
}

// TestNoSpaceForOutput checks that a job waits if its output can't be created
// because the file system is full, and that it can be cancelled.
func TestNoSpaceForOutput(t *testing.T) {
	work := t.TempDir()
	mountTmpfs(t, work, "nr_inodes=2")
	ballast := filepath.Join(work, "ballast")
	os.WriteFile(ballast, nil, 0o600)
	c, stop := controller(t, Config{Log: quiet})
	id, cancelledID := submit(t, c, desc(work, "echo ran")), submit(t, c, desc(work, "echo ran"))
	waits := func(id uint32) func() bool {
		return func() bool {
			j := viewJob(t, c, id)
			return j.State == model.JobPending && j.StateReason == reasonLaunch && j.RestartCnt > 1 &&
				strings.HasSuffix(j.StateDescription, "no space left on device")
		}
	}
	await(t, "the job waits", waits(id))
	await(t, "the other job waits", waits(cancelledID))
	await(t, "it is cancelled", func() bool { return cancel(c, cancelledID) == nil })
	awaitState(t, c, cancelledID, model.JobCancelled)
	stop()
	c, _ = controller(t, Config{Log: quiet, StateDir: c.cfg.StateDir})
	os.Remove(ballast)
	if j := awaitState(t, c, id, model.JobComplete); j.StateDescription != "" {
		t.Errorf("%q", j.StateDescription)
	}
	if got := read(t, filepath.Join(work, fmt.Sprintf("sched-%d.out", id))); got != "ran\n" {
		t.Errorf("output %q", got)
	}
}

// TestUserGone checks that a job does not wait forever for a user who no longer
// exists.
func TestUserGone(t *testing.T) {
	c := &Controller{cfg: Config{minute: time.Minute}}
	j := &job{record: new(record)}
	gone := fmt.Errorf("%w: %w", errLookup, errs.New(errs.NotFound, "no user"))
	down := fmt.Errorf("%w: %w", errLookup, errs.New(errs.Unavailable, "down"))
	start := time.Now()
	for _, tt := range []struct {
		after time.Duration
		err   error
		ends  bool
	}{
		{0, gone, false}, {23 * time.Hour, gone, false}, {23 * time.Hour, down, false},
		{24 * time.Hour, gone, false}, {47 * time.Hour, gone, false}, {48 * time.Hour, gone, true},
	} {
		if reason := c.neverStartsLocked(j, tt.err, start.Add(tt.after)); (reason != "") != tt.ends {
			t.Errorf("after %s: %q", tt.after, reason)
		}
	}
}

// TestBreaker checks which jobs are started while starts are paused.
func TestBreaker(t *testing.T) {
	const alice, bob = 1, 2
	t0 := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }
	fail := func(b breakers, key, id uint32, began, now int) bool {
		return b.failed(key, id, at(began), at(now), time.Second, 4*time.Second)
	}
	b := breakers{}
	if !b.permit(alice, 1, at(0)) || !b.permit(alice, 2, at(0)) || !b.permit(bob, 3, at(0)) {
		t.Fatal("starts are paused from the beginning")
	}
	if !fail(b, noUser, 1, 0, 1) || fail(b, noUser, 2, 0, 1) {
		t.Error("the pause begins not once")
	}
	if b.succeeded(bob, 3, at(0), at(2)); len(b) != 1 {
		t.Error("a start that began before the pause has ended it")
	}
	for _, step := range []struct {
		now     int
		uid, id uint32
		want    bool
	}{{1, alice, 1, false}, {2, bob, 4, true}, {2, alice, 5, false}, {9, alice, 5, false}} {
		if got := b.permit(step.uid, step.id, at(step.now)); got != step.want {
			t.Errorf("at %d: job %d: %v", step.now, step.id, got)
		}
	}
	fail(b, noUser, 4, 2, 10) // the second pause takes 2 s
	if next := b.next(at(10)); !next.Equal(at(12)) || b.permit(alice, 1, at(11)) || !b.permit(alice, 1, at(12)) {
		t.Errorf("the pause ends at %s", next)
	}
	fail(b, alice, 1, 12, 13) // the cause was the user
	if b.permit(alice, 2, at(20)) != true || b.permit(bob, 4, at(20)) {
		t.Error("two tests at the same time")
	}
	if paused := b.succeeded(alice, 2, at(20), at(21)); paused != 20*time.Second || len(b) != 0 {
		t.Errorf("paused for %s, %v", paused, b)
	}
	fail(b, alice, 1, 30, 31)
	if b.permit(alice, 1, at(31)) || !b.permit(bob, 4, at(31)) {
		t.Error("one user's failure must not stop the others")
	}
}

// TestUnreadableOutcome checks that a job is not lost if its outcome can't be
// read for a moment, and that it is lost if the outcome is damaged.
func TestUnreadableOutcome(t *testing.T) {
	for content, want := range map[string]model.JobState{"": model.JobComplete, "{": model.JobNodeFail} {
		t.Run(fmt.Sprintf("%q", content), func(t *testing.T) {
			c, _ := controller(t, Config{Log: quiet})
			id := submit(t, c, desc(t.TempDir(), "while [ ! -e go ]; do sleep 0.02; done"))
			awaitState(t, c, id, model.JobRunning)
			c.mu.Lock()
			j := c.jobs[id]
			c.mu.Unlock()
			path := filepath.Join(j.home, "outcome")
			if content != "" {
				os.WriteFile(path, []byte(content), 0o600)
			} else { // a link to itself can't be read
				os.Symlink("outcome", path)
			}
			claim, _, err := step.ReadClaim(j.home)
			if err != nil {
				t.Fatal(err)
			}
			killStep(t, claim)
			if content == "" {
				time.Sleep(100 * time.Millisecond)
				now := time.Now()
				b := fmt.Sprintf(`{"state":"COMPLETED","started":%q,"ended":%q}`, now.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
				os.WriteFile(path+".new", []byte(b), 0o600)
				os.Rename(path+".new", path)
			}
			awaitState(t, c, id, want)
		})
	}
}

// TestStartOnAFullDisk checks that a controller starts, serves and stops while
// its disk is full, even if a job has ended or was lost since. The end of the
// job is recorded when there is space again.
func TestStartOnAFullDisk(t *testing.T) {
	for name, want := range map[string]model.JobState{"ended": model.JobComplete, "lost": model.JobNodeFail} {
		t.Run(name, func(t *testing.T) {
			state, work := t.TempDir(), t.TempDir()
			mountTmpfs(t, state, "size=1m,mode=0700")
			c, stop := controller(t, Config{StateDir: state})
			d := desc(work, "touch started; while [ ! -e go ]; do sleep 0.02; done")
			d.Comment, d.Extra = model.Text(strings.Repeat("x", maxComment)), model.Text(strings.Repeat("x", maxComment))
			id := submit(t, c, d)
			await(t, "the job runs", func() bool { return exists(work + "/started") })
			c.mu.Lock()
			home := c.jobs[id].home
			c.mu.Unlock()
			stop()
			claim, _, err := step.ReadClaim(home)
			if err != nil {
				t.Fatal(err)
			}
			if want == model.JobNodeFail {
				killStep(t, claim)
			} else {
				os.WriteFile(work+"/go", nil, 0o644)
			}
			if _, err := unix.Wait4(claim.Step.PID, nil, 0, nil); err != nil { // the next controller must not find a zombie
				t.Fatal(err)
			}
			ballast := filepath.Join(state, "ballast")
			if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
				t.Fatal("the disk is not full")
			}
			// The job's record needs more space than there is now, but some
			// smaller writes succeed.
			if st, err := os.Stat(ballast); err != nil || os.Truncate(ballast, st.Size()-4096) != nil {
				t.Fatal(err)
			}

			opened := make(chan struct{})
			go func() {
				defer close(opened)
				c, stop = controller(t, Config{StateDir: state, Log: quiet})
			}()
			select {
			case <-opened:
			case <-time.After(30 * time.Second):
				os.Remove(ballast)
				t.Fatal("the controller does not start")
			}
			if j := viewJob(t, c, id); j.State.Base() != model.JobRunning {
				t.Errorf("state %d", j.State)
			}
			if _, err := c.Submit(ownUser, d); errs.KindOf(err) != errs.Unavailable {
				t.Errorf("a submission: %v", err)
			}
			stop() // while the end can't be recorded
			os.Remove(ballast)
			c, _ = controller(t, Config{StateDir: state, Log: quiet})
			awaitState(t, c, id, want)
		})
	}
}

// TestStartIsInterrupted checks that a start ends when the controller receives a
// signal to stop.
func TestStartIsInterrupted(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	_, stop := controller(t, Config{StateDir: state})
	stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Config{StateDir: state, Log: quiet}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestClockSetBack checks that clients learn of changes after the clock was set
// back, and that a job does not end before it has started.
func TestClockSetBack(t *testing.T) {
	now := time.Now()
	before, after := model.At(now.Add(time.Hour)), model.At(now)
	c := &Controller{jobs: map[uint32]*job{}, startedAt: now.Add(-time.Minute)}
	got := c.updateTimeLocked(now.Add(time.Hour)) // of an answer before the clock is set back
	c.markChangedLocked(now)
	if _, v := c.snapshot(); v.isCurrent(got) || v.time < got {
		t.Errorf("a client with the version of %d does not learn of the change: %+v", got, v)
	}
	restarted := &Controller{jobs: map[uint32]*job{}, changedAt: after - 60}
	if _, v := restarted.snapshot(); v.isCurrent(before) || !v.isCurrent(after) {
		t.Errorf("after a restart: %+v", v)
	}

	running, _ := controller(t, Config{})
	id := submit(t, running, desc(t.TempDir(), "sleep 60"))
	awaitState(t, running, id, model.JobRunning)
	running.mu.Lock()
	home := running.jobs[id].home
	running.mu.Unlock()
	claim, _, err := step.ReadClaim(home)
	if err != nil {
		t.Fatal(err)
	}
	outcome := fmt.Sprintf(`{"state":"COMPLETED","started":%q,"ended":%q}`,
		now.Add(time.Hour).Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	os.WriteFile(filepath.Join(home, "outcome"), []byte(outcome), 0o600)
	killStep(t, claim)
	if m := awaitState(t, running, id, model.JobComplete); m.StartTime != before || m.EndTime < m.StartTime {
		t.Errorf("from %d to %d", m.StartTime, m.EndTime)
	}
}

// TestJournalFillsItsDisk checks that a controller whose journal fills the disk
// refuses submissions early enough: it must still record the ends of all jobs,
// and then accept submissions again.
func TestJournalFillsItsDisk(t *testing.T) {
	state := t.TempDir()
	mountTmpfs(t, state, "size=4m,mode=0700")
	c, _ := controller(t, Config{StateDir: state, Log: quiet})
	var ids []uint32
	for _, size := range []int{100 << 10, 10 << 10, 100} { // as many as fit, the large ones first
		d := desc("/tmp", "true #"+strings.Repeat("x", size))
		d.Priority = model.Some[uint32](0)
		for {
			answer, err := c.Submit(ownUser, d)
			if errs.KindOf(err) == errs.Unavailable {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, answer.StepID.JobID)
		}
	}
	if len(ids) < 10 {
		t.Errorf("only %d jobs", len(ids))
	}
	for _, id := range ids {
		if err := cancel(c, id); err != nil {
			t.Fatal(err)
		}
	}
	d := desc(t.TempDir(), "true #"+strings.Repeat("x", 100<<10))
	awaitState(t, c, submit(t, c, d), model.JobComplete)
}

// TestCancelOnAFullDisk cancels a waiting job while no byte can be written. The
// client must get an error, because a restart would lose the cancellation, and
// must not wait without limit. The job ends when there is space again.
func TestCancelOnAFullDisk(t *testing.T) {
	state := t.TempDir()
	mountTmpfs(t, state, "size=4m,mode=0700")
	c, _ := controller(t, Config{StateDir: state, Log: quiet})
	d := desc("/tmp", "true")
	d.Priority = model.Some[uint32](0)
	id := submit(t, c, d)
	ballast := filepath.Join(state, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	answer := make(chan error, 1)
	go func() { answer <- c.cancel(id, ownUser.UID, time.Now().Add(100*time.Millisecond)) }()
	select {
	case err := <-answer:
		if errs.KindOf(err) != errs.Timeout {
			t.Errorf("it was answered with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it is not answered")
	}
	os.Remove(ballast)
	awaitState(t, c, id, model.JobCancelled)
}

// TestUncertainCommit checks that a client gets no refusal if its request
// refused if the request may be in the journal.
func TestUncertainCommit(t *testing.T) {
	for code, err := range map[string]error{
		"":                  errors.New("no space"),
		errs.OutcomeUnknown: fmt.Errorf("%w: no disk", journal.ErrUncertain),
	} {
		e, ok := errors.AsType[*errs.Error](commitError(err, "not recorded"))
		if !ok || e.Code != code || e.Kind != errs.Unavailable {
			t.Errorf("%v: %#v", err, e)
		}
	}
}
