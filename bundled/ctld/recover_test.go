package ctld

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/server"
)

// stateVariable is the name of an environment variable that contains the path
// of a state directory. When it is set, this test binary runs as a controller
// with that directory.
const stateVariable = "CTLD_TEST_STATE"

// controllerMain runs a controller until it is killed.
func controllerMain() {
	state := os.Getenv(stateVariable)
	if state == "" {
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := Open(context.Background(), Config{StateDir: state, Cluster: "test", KillWait: testKillWait, Log: log, minute: 100 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Remove(filepath.Join(state, "socket")) // left by a killed controller
	ln, err := net.Listen("unix", filepath.Join(state, "socket"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &server.Server{Handlers: c.Handlers(), Log: log, SpoolDir: state}
	go s.Serve(ln)
	c.Run(context.Background())
	os.Exit(1)
}

// A site runs a controller in a separate process, which tests can kill. It also
// contains a client of that controller.
type site struct {
	t      *testing.T
	state  string
	client *client.Client
	log    *os.File
	cmd    *exec.Cmd
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := sockettest.MkdirTemp("ctld")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, state: filepath.Join(dir, "state")}
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	s.client = client.New(client.Config{
		Controllers: []client.Address{{Name: "test", Network: "unix", Address: filepath.Join(s.state, "socket")}},
		Timeout:     20 * time.Second,
	})
	t.Cleanup(func() {
		s.kill()
		endSteps(t, s.state)
		if t.Failed() {
			t.Logf("log of the controllers:\n%s", read(t, s.log.Name()))
		}
		os.RemoveAll(dir)
	})
	return s
}

func (s *site) start(env ...string) {
	s.t.Helper()
	s.cmd = exec.Command("/proc/self/exe")
	s.cmd.Env = append(append(os.Environ(), stateVariable+"="+s.state), env...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// kill sends SIGKILL to the controller. The controller's steps receive no
// signal.
func (s *site) kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// hasEnded reports whether the controller has ended by itself.
func (s *site) hasEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, s.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err != nil || info.Signo != 0
}

// submit repeats a submission until the controller answers. A submission
// without an answer may have been accepted, but the test does not count it.
func (s *site) submit(d *model.JobDesc) (uint32, error) {
	for {
		answer, err := s.client.Submit(s.t.Context(), model.Credential{}, d)
		if err == nil {
			return answer.StepID.JobID, nil
		}
		if k := errs.KindOf(err); k != errs.Unavailable {
			return 0, err
		}
		if s.t.Context().Err() != nil {
			return 0, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *site) accepted(d *model.JobDesc) uint32 {
	s.t.Helper()
	id, err := s.submit(d)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *site) job(id uint32) model.Job {
	s.t.Helper()
	for {
		var job model.Job
		_, err := s.client.Job(s.t.Context(), model.Credential{}, id, model.Query{}, func(j *model.Job) error { job = *j; return nil })
		if err == nil {
			return job
		}
		if k := errs.KindOf(err); k == errs.NotFound || s.t.Context().Err() != nil {
			s.t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *site) await(id uint32, want model.JobState) model.Job {
	s.t.Helper()
	var j model.Job
	await(s.t, fmt.Sprintf("job %d gets to state %d", id, want), func() bool {
		j = s.job(id)
		return j.State.Base() == want && j.State&model.JobConfiguring == 0 || j.State.Ended()
	})
	if j.State.Base() != want {
		s.t.Errorf("job %d is in state %d (%s), want %d", id, j.State, j.StateDescription, want)
	}
	return j
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// TestRestartAfterCrash checks that a restarted controller correctly reports
// what happened to jobs while no controller was running: they ended, exceeded
// their time limit, or continued.
func TestRestartAfterCrash(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	s.start()
	// The machine may have only one CPU, so the cases run one after the other,
	// each with a crash of its own.
	cases := []struct {
		name, script string
		limit        uint32
		want         model.JobState
		status       uint32
	}{
		{"ends", "touch started; while [ ! -e dead ]; do sleep 0.02; done; touch ended; exit 4", 0, model.JobFailed, 4 << 8},
		{"is over its time", "setsid sleep 60 & echo $! >child; touch started; sleep 60; touch never", 5, model.JobTimeout, 15},
		{"runs on", "touch started; while [ ! -e back ]; do sleep 0.02; done", 0, model.JobComplete, 0},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			work := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", "-"))
			os.Mkdir(work, 0o755)
			d := desc(work, tt.script)
			var id uint32
			started := func() bool { return exists(filepath.Join(work, "started")) }
			for limit := tt.limit; !started(); limit *= 2 { // on a busy machine the job may be ended before its script has started
				if limit > 0 {
					d.TimeLimit = model.Some(limit)
				}
				id = s.accepted(d)
				await(t, "it starts", func() bool { return started() || limit > 0 && s.job(id).State.Ended() })
			}
			s.kill()
			os.WriteFile(filepath.Join(work, "dead"), nil, 0o644)
			home := filepath.Join(s.state, "steps", fmt.Sprint(id))
			if tt.name != "runs on" {
				await(t, "its outcome", func() bool { return exists(filepath.Join(home, "outcome")) })
			}
			s.start()
			if tt.name == "runs on" {
				if j := s.await(id, model.JobRunning); j.State != model.JobRunning {
					t.Errorf("state %d", j.State)
				}
				os.WriteFile(filepath.Join(work, "back"), nil, 0o644)
			}
			if j := s.await(id, tt.want); j.ExitCode != tt.status {
				t.Errorf("status %#x, want %#x", j.ExitCode, tt.status)
			}
			if exists(filepath.Join(work, "never")) {
				t.Error("the job continued after its time limit")
			}
		})
	}
}

// TestLostJobs checks that a job is reported as lost if its step exited without
// recording an outcome, and that the job is not run again.
func TestLostJobs(t *testing.T) {
	tests := []struct {
		name string
		lose func(t *testing.T, home string, c step.Claim)
	}{
		{"step was killed", func(t *testing.T, _ string, c step.Claim) { killStep(t, c) }},
		{"the machine was booted since", func(t *testing.T, home string, c step.Claim) {
			killStep(t, c)
			c.Step.BootID = "11111111-2222-3333-4444-555555555555"
			b, _ := json.Marshal(c)
			os.WriteFile(filepath.Join(home, "claim"), b, 0o600)
		}},
		{"its number belongs to another process now", func(t *testing.T, home string, c step.Claim) {
			killStep(t, c)
			self, err := process.Self() // stands for a process that now has the step's process id
			if err != nil {
				t.Fatal(err)
			}
			c.Step.PID = self.PID
			b, _ := json.Marshal(c)
			os.WriteFile(filepath.Join(home, "claim"), b, 0o600)
		}},
	}
	for _, alive := range []bool{false, true} {
		for _, tt := range tests {
			if alive && tt.name != "step was killed" {
				continue
			}
			t.Run(fmt.Sprintf("%s, controller alive %v", tt.name, alive), func(t *testing.T) {
				s := newSite(t)
				work := t.TempDir()
				s.start()
				id := s.accepted(desc(work, "echo run >>runs; while [ -e runs ]; do sleep 0.1; done"))
				await(t, "it starts", func() bool { b, _ := os.ReadFile(filepath.Join(work, "runs")); return len(b) > 0 })
				if !alive {
					s.kill()
				}
				home := filepath.Join(s.state, "steps", fmt.Sprint(id))
				c, _, err := step.ReadClaim(home)
				if err != nil {
					t.Fatal(err)
				}
				tt.lose(t, home, c)
				if !alive {
					s.start()
				}
				s.await(id, model.JobNodeFail)
				next := s.accepted(desc(work, "true"))
				s.await(next, model.JobComplete)
				if got := read(t, filepath.Join(work, "runs")); got != "run\n" {
					t.Errorf("runs: %q", got)
				}
			})
		}
	}
}

func killStep(t *testing.T, c step.Claim) {
	t.Helper()
	h, err := c.Step.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Signal(syscall.SIGKILL)
	h.Wait(t.Context())
}

// storm submits jobs from many clients. Meanwhile it calls trouble, which kills
// the controller again and again until finished() reports that all jobs were
// accepted and have run. Then storm checks that each job ran exactly once.
func storm(t *testing.T, jobs int, trouble func(s *site, finished func() bool)) {
	s := newSite(t)
	work := t.TempDir()
	s.start()
	var mu sync.Mutex
	var ids []uint32
	finished := func() bool {
		mu.Lock()
		defer mu.Unlock()
		b, _ := os.ReadFile(filepath.Join(work, "ran"))
		return len(ids) == jobs && strings.Count(string(b), "\n") >= jobs || t.Context().Err() != nil
	}
	todo := make(chan struct{}, jobs)
	for range jobs {
		todo <- struct{}{}
	}
	close(todo)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range todo {
				for {
					id, err := s.submit(desc(work, "echo $SCHED_JOB_ID >>ran"))
					if err == nil {
						mu.Lock()
						ids = append(ids, id)
						mu.Unlock()
						break
					}
					if s.t.Context().Err() != nil {
						return
					}
				}
			}
		})
	}
	trouble(s, finished)
	clients.Wait()
	for _, id := range ids {
		s.await(id, model.JobComplete)
	}
	runs := map[string]int{}
	for _, line := range strings.Fields(read(t, filepath.Join(work, "ran"))) {
		runs[line]++
	}
	for _, id := range ids {
		if n := runs[fmt.Sprint(id)]; n != 1 {
			t.Errorf("job %d was accepted and ran %d times", id, n)
		}
	}
	for id, n := range runs {
		if n > 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
	}
	if len(ids) != jobs {
		t.Errorf("%d jobs were accepted, want %d", len(ids), jobs)
	}
}

func TestKilledByTheClock(t *testing.T) {
	storm(t, 60, func(s *site, finished func() bool) {
		deaths := 0
		for pause := 20 * time.Millisecond; !finished(); pause += 5 * time.Millisecond { // each controller runs longer than the last, so that the test also passes on slow machines
			time.Sleep(pause)
			s.kill()
			s.start()
			deaths++
		}
		t.Logf("killed %d times", deaths)
	})
}

func TestStateIsRefused(t *testing.T) {
	cfg := func(dir string) Config { return Config{StateDir: dir, Log: quiet} }
	refused := func(name, dir, words string) {
		t.Helper()
		c, err := Open(t.Context(), cfg(dir))
		if err == nil {
			c.Close()
			t.Errorf("%s: taken", name)
		} else if !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("relative", "state", "absolute")
	open := filepath.Join(t.TempDir(), "open")
	os.Mkdir(open, 0o700)
	os.Chmod(open, 0o777)
	refused("others may write", open, "other users can write")
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(open, link)
	refused("link", link, "state directory")

	dir := filepath.Join(t.TempDir(), "state")
	c, err := Open(t.Context(), cfg(dir))
	if err != nil {
		t.Fatal(err)
	}
	refused("in use", dir, "another controller")
	c.Close()
	for _, name := range []string{"journal", "lock", "step.log"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, st.Mode(), err)
		}
	}
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	j.Commit(journal.Entry{Key: keyFormat, Value: []byte("99")})
	j.Close()
	if _, err := Open(t.Context(), cfg(dir)); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("newer records: %v", err)
	}
}

// A recorder is an accounting daemon that a test can make unavailable.
type recorder struct {
	mu          sync.Mutex
	unavailable bool
	last        map[uint32]model.JobState
	received    int
}

func (d *recorder) Record(_ context.Context, jobs []model.Job) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unavailable {
		return errors.New("away")
	}
	for _, j := range jobs {
		d.last[j.StepID.JobID] = j.State
		d.received++
	}
	return nil
}

// TestSpool checks that the accounting daemon receives the records of jobs that
// ran while the daemon was unavailable, even if the controller was restarted in
// the meantime.
func TestSpool(t *testing.T) {
	d := &recorder{unavailable: true, last: map[uint32]model.JobState{}}
	c, stop := controller(t, Config{Accounting: d})
	a := submit(t, c, desc(t.TempDir(), "true"))
	b := submit(t, c, desc(t.TempDir(), "exit 1"))
	awaitState(t, c, a, model.JobComplete)
	awaitState(t, c, b, model.JobFailed)
	stop()
	d.unavailable = false
	c, stop = controller(t, Config{StateDir: c.cfg.StateDir, Accounting: d})
	await(t, "all records arrive", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.last[a].Base() == model.JobComplete && d.last[b].Base() == model.JobFailed
	})
	await(t, "they are dropped", func() bool { return len(c.spool.batch(1)) == 0 })
	received := d.received
	stop()
	c, _ = controller(t, Config{StateDir: c.cfg.StateDir, Accounting: d})
	e := submit(t, c, desc(t.TempDir(), "true"))
	await(t, "the next job arrives", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.last[e].Base() == model.JobComplete })
	if d.received != received+3 { // a record of the submission, one of the start and one of the end
		t.Errorf("%d records more, want 3", d.received-received)
	}
}
