package ctld

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

func TestMain(m *testing.M) {
	step.Main() // in a step process that a test started, Main runs the step and exits
	controllerMain()
	os.Exit(m.Run()) // this process is neither a step nor a controller that a test started
}

// ownUser is the identity of a client that connects to the UNIX socket and runs
// as the same user as this process.
var ownUser = server.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), FromKernel: true}

// otherUser is another user, without any privileges.
var otherUser = server.Identity{UID: 65534, GID: 65534, FromKernel: true}

const testKillWait = 300 * time.Millisecond

// controller opens a Controller in this process and runs it until the test ends
// or calls stop.
func controller(t *testing.T, cfg Config) (c *Controller, stop func()) {
	t.Helper()
	if cfg.StateDir == "" {
		cfg.StateDir = filepath.Join(sockettest.Dir(t), "state")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(testLog{t}, nil))
	}
	cfg.KillWait, cfg.Cluster, cfg.minute = testKillWait, "test", 100*time.Millisecond
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-done
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	t.Cleanup(func() { endSteps(t, cfg.StateDir) })
	return c, stop
}

// endSteps kills all steps that a test left running below a state directory.
func endSteps(t *testing.T, state string) {
	homes, _ := filepath.Glob(filepath.Join(state, "steps", "*"))
	for _, home := range homes {
		if c, ok, err := step.ReadClaim(home); ok && err == nil {
			if s, err := step.Adopt(c); err == nil {
				s.Cancel()
				s.Wait(context.Background())
				s.Close()
			}
		}
	}
}

// testLog writes log lines to the test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Logf("%s", strings.TrimSuffix(string(b), "\n"))
	}
	return len(b), nil
}

// quiet is a logger that discards everything, for tests that log thousands of
// lines.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// desc returns the description of a job with one task that runs script in dir.
func desc(dir, script string) *model.JobDesc {
	return &model.JobDesc{
		Name: "test", Script: "#!/bin/sh\n" + script + "\n", Environment: []string{"PATH=/usr/bin:/bin"}, WorkDir: model.Text(dir),
	}
}

func submit(t *testing.T, c *Controller, d *model.JobDesc) uint32 {
	t.Helper()
	answer, err := c.Submit(ownUser, d)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StepID.JobID
}

// viewJob returns the job with the given number as the job's owner sees it.
func viewJob(t *testing.T, c *Controller, id uint32) model.Job {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	if j == nil {
		t.Fatalf("there is no job %d", id)
	}
	return j.view(time.Now())
}

// cancel ends a job.
func cancel(c *Controller, id uint32) error {
	return c.cancel(id, ownUser.UID, time.Now().Add(startTimeout))
}

// await polls until cond returns true.
func await(t *testing.T, event string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !cond(); {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: ", event)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func awaitState(t *testing.T, c *Controller, id uint32, want model.JobState) model.Job {
	t.Helper()
	var j model.Job
	await(t, fmt.Sprintf("job %d gets to state %d", id, want), func() bool {
		j = viewJob(t, c, id)
		if j.State.Ended() && j.State.Base() != want && j.State&model.JobCompleting == 0 {
			t.Fatalf("job %d ended in state %d (%s), want %d", id, j.State, j.StateDescription, want)
		}
		return j.State.Base() == want && j.State&(model.JobConfiguring|model.JobCompleting) == 0
	})
	return j
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestJobRuns(t *testing.T) {
	c, _ := controller(t, Config{Node: "here"})
	dir := t.TempDir()
	d := desc(dir, `echo "$SCHED_JOB_ID $SLURM_JOB_ID $SLURM_NTASKS $SCHED_CPUS_ON_NODE $SLURM_JOB_NODELIST $SCHED_CLUSTER_NAME $GREETING"
		echo "$SCHED_JOB_NAME|$SLURM_SUBMIT_DIR|$SLURM_MEM_PER_CPU|$HOME"; env | grep -c JWT; exit 3`)
	d.Environment = append(d.Environment, "GREETING=hello", "SCHED_JOB_ID=forged", "SCHED_JWT=secret", "SLURM_JWT=secret")
	d.MinMemory = model.Some(16 | model.MemPerCPU)
	d.MailType = model.Some[uint16](1)
	answer, err := c.Submit(ownUser, d)
	if err != nil {
		t.Fatal(err)
	}
	want := "SCHED_JWT and SLURM_JWT removed from the job's environment: jobs must not hold tokens; mail_type was recorded, but this controller sends no mail"
	if answer.UserMessage != want {
		t.Errorf("the user gets the message %q", answer.UserMessage)
	}
	id := answer.StepID.JobID
	j := awaitState(t, c, id, model.JobFailed)
	if j.ExitCode != 3<<8 || j.StateReason != reasonExitCode || j.Nodes != "here" || j.EndTime < j.StartTime || j.StartTime < j.SubmitTime {
		t.Errorf("%+v", j)
	}
	home, _ := System{}.LookupUID(ownUser.UID)
	want = fmt.Sprintf("%d %d 1 1 here test hello\ntest|%s|16|%s\n0\n", id, id, dir, home.Home)
	if diff := cmp.Diff(want, read(t, filepath.Join(dir, fmt.Sprintf("sched-%d.out", id)))); diff != "" {
		t.Error(diff)
	}
	if entries, _ := os.ReadDir(filepath.Join(c.cfg.StateDir, "steps")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestRefusedSubmissions(t *testing.T) {
	c, _ := controller(t, Config{Partitions: []model.Partition{
		{Name: "short", StateUp: partitionUp, Flags: partitionDefault, MaxTime: model.Some[uint32](10)},
		{Name: "down", MaxTime: model.Infinite[uint32]()},
	}})
	fields := map[string]bool{}
	for _, p := range api.JobDesc.Shape(schema.View{Version: api.V43}).Fields {
		fields[p.Name] = true
	}
	tests := []struct {
		name   string
		client server.Identity
		change func(*model.JobDesc)
		want   int    // Slurm's error number
		words  string // must appear in the error message
	}{
		{"no script", ownUser, func(d *model.JobDesc) { d.Script = "" }, fault.NoScript, "script: missing"},
		{"no interpreter", ownUser, func(d *model.JobDesc) { d.Script = "echo" }, fault.NoScript, "script: the first line must name an interpreter"},
		{"DOS script", ownUser, func(d *model.JobDesc) { d.Script = "#!/bin/sh\r\n" }, fault.NoScript, "script: has DOS"},
		{"binary script", ownUser, func(d *model.JobDesc) { d.Script += "\x00" }, fault.NoScript, "script: contains a NUL"},
		{"huge script", ownUser, func(d *model.JobDesc) { d.Script += strings.Repeat("#", maxScript) }, fault.PathTooLong, "script: longer than"},
		{"no environment", ownUser, func(d *model.JobDesc) { d.Environment = nil }, fault.NoEnvironment, "environment: missing"},
		{"bad environment", ownUser, func(d *model.JobDesc) { d.Environment = []string{"=x"} }, fault.NoEnvironment,
			`environment: "=x" is not NAME=value`},
		{"no directory", ownUser, func(d *model.JobDesc) { d.WorkDir = "" }, fault.NoWorkDir, "current_working_directory: must be an absolute path"},
		{"relative directory", ownUser, func(d *model.JobDesc) { d.WorkDir = "tmp" }, fault.NoWorkDir,
			"current_working_directory: must be an absolute path"},
		{"NUL in a path", ownUser, func(d *model.JobDesc) { d.StdOut = "a\x00b" }, fault.PathTooLong, "standard_output: contains a NUL"},
		{"an output that becomes too long", ownUser, func(d *model.JobDesc) {
			d.Name, d.StdOut = model.Text(strings.Repeat("x", maxName)), model.Text(strings.Repeat("%x", maxPath/2))
		}, fault.PathTooLong, "standard_output: longer than 4096 bytes after its patterns are replaced"},
		{"an error output that becomes too long", ownUser, func(d *model.JobDesc) { d.StdErr = model.Text(strings.Repeat("%10j", maxPath/4)) },
			fault.PathTooLong, "standard_error: longer than"},
		{"an administrator's comment", server.Identity{UID: 4242}, func(d *model.JobDesc) { d.AdminComment = "approved" },
			fault.AccessDenied, "admin_comment: only root and the scheduler's user may set it"},
		{"no tasks", ownUser, func(d *model.JobDesc) { d.NumTasks = model.Some[uint32](0) }, fault.BadTaskCount, "tasks: 0 is out of range, 1 to "},
		{"no cpus", ownUser, func(d *model.JobDesc) { d.CPUsPerTask = model.Some[uint16](0) }, fault.InvalidCPUCount,
			"cpus_per_task: must be at least 1"},
		{"many tasks", ownUser, func(d *model.JobDesc) { d.NumTasks = model.Some[uint32](60000) }, fault.NodeConfig, "tasks: needs 60000 CPUs"},
		{"many cpus", ownUser, func(d *model.JobDesc) { d.MinCPUs = model.Some[uint32](60000) }, fault.NodeConfig, "minimum_cpus: needs 60000 CPUs"},
		{"long comment", ownUser, func(d *model.JobDesc) { d.Comment = model.Text(strings.Repeat("x", maxComment+1)) },
			fault.PathTooLong, "comment: longer than 4096 bytes"},
		{"long account", ownUser, func(d *model.JobDesc) { d.Account = model.Text(strings.Repeat("x", maxName+1)) },
			fault.PathTooLong, "account: longer than 1024 bytes"},
		{"long argument", ownUser, func(d *model.JobDesc) { d.Argv = []string{"x", strings.Repeat("x", maxPath+1)} },
			fault.PathTooLong, "argv: longer than 4096 bytes"},
		{"too many cpus", ownUser, func(d *model.JobDesc) {
			d.NumTasks, d.CPUsPerTask = model.Some[uint32](60000), model.Some[uint16](60000)
		}, fault.NodeConfig, "cpus_per_task: needs 3600000000 CPUs"},
		{"too much memory", ownUser, func(d *model.JobDesc) { d.MinMemory = model.Some[uint64](1 << 39) },
			fault.NodeConfig, "memory_per_node: needs 549755813888 MiB of memory"},
		{"absurd memory", ownUser, func(d *model.JobDesc) { d.MinMemory = model.Some(1<<62 | model.MemPerCPU) },
			fault.InvalidTaskMemory, "memory_per_cpu: "},
		{"over the partition's limit", ownUser, func(d *model.JobDesc) { d.TimeLimit = model.Some[uint32](11) },
			fault.InvalidTimeLimit, "10 minutes"},
		{"no limit where there is one", ownUser, func(d *model.JobDesc) { d.TimeLimit = model.Infinite[uint32]() },
			fault.InvalidTimeLimit, "10 minutes"},
		{"unknown partition", ownUser, func(d *model.JobDesc) { d.Partition = "none" }, fault.InvalidPartition, `"none"`},
		{"partition is down", ownUser, func(d *model.JobDesc) { d.Partition = "down" }, 2070, "down"},
		{"array", ownUser, func(d *model.JobDesc) { d.Array = "1-3" }, fault.NotSupported, "array: this controller does not support job arrays"},
		{"dependency", ownUser, func(d *model.JobDesc) { d.Dependency = "afterok:1" }, fault.NotSupported, "dependency: "},
		{"two nodes", ownUser, func(d *model.JobDesc) { d.MinNodes = model.Some[uint32](2) }, fault.NotSupported, "minimum_nodes: "},
		{"tasks for two nodes", ownUser, func(d *model.JobDesc) { d.NumTasks, d.NTasksPerNode = model.Some[uint32](2), model.Some[uint16](1) },
			fault.NotSupported, "tasks_per_node: this controller does not support more than one node"},
		{"many tasks on a node", ownUser, func(d *model.JobDesc) { d.NTasksPerNode = model.Some[uint16](60000) }, fault.NodeConfig,
			"tasks_per_node: needs 60000 CPUs"},
		{"deadline", ownUser, func(d *model.JobDesc) { d.Deadline = model.At(time.Now().Add(time.Hour)) }, fault.NotSupported, "deadline: "},
		{"unknown node", ownUser, func(d *model.JobDesc) { d.ReqNodes = "n[1-2]" }, fault.InvalidNodeName, `required_nodes: there is no node "n1"`},
		{"a minimum above the limit", ownUser, func(d *model.JobDesc) { d.TimeLimit, d.TimeMin = model.Some[uint32](5), model.Some[uint32](6) },
			fault.InvalidTimeMin, "time_minimum: longer than the time limit, 5 minutes"},
		{"another user's job", otherUser, func(d *model.JobDesc) { d.UserID = model.Some[uint32](0) }, fault.NoUserID,
			"user_id: you may not submit jobs as user 0"},
		{"unknown user", server.Identity{}, func(d *model.JobDesc) { d.UserID = model.Some[uint32](3999999999) }, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := desc("/tmp", "true")
			tt.change(d)
			_, err := c.Submit(tt.client, d)
			e, ok := errors.AsType[*errs.Error](err)
			if !ok || tt.want != 0 && e.Number != tt.want || !strings.Contains(e.Message, tt.words) {
				t.Errorf("error %#v", err)
			}
			if field, _, _ := strings.Cut(e.Message, ": "); !fields[field] {
				t.Errorf("%q names no field of the API", e.Message)
			}
		})
	}
	if len(c.jobs) > 0 {
		t.Errorf("%d jobs were accepted", len(c.jobs))
	}
}

func TestRunAs(t *testing.T) {
	some := model.Some[uint32]
	tests := []struct {
		name     string
		self     uint32 // the controller's own user
		client   server.Identity
		uid, gid model.Opt[uint32] // of the request
		want     string            // "uid:gid"; "" is a refusal
	}{
		{"himself", 0, server.Identity{UID: 1000, GID: 1000, FromKernel: true}, model.Opt[uint32]{}, model.Opt[uint32]{}, "1000:1000"},
		{"with a token", 0, server.Identity{UID: 1000, GID: 1000}, some(1000), model.Opt[uint32]{}, "1000:1000"},
		{"in another of the user's groups", 0, server.Identity{UID: 1000, GID: 1000}, some(1000), some(50), "1000:50"},
		{"after newgrp", 0, server.Identity{UID: 1000, GID: 50, FromKernel: true}, model.Opt[uint32]{}, model.Opt[uint32]{}, "1000:50"},
		{"lent group", 0, server.Identity{UID: 1000, GID: 8, FromKernel: true}, model.Opt[uint32]{}, model.Opt[uint32]{}, "1000:1000"},
		{"group of root's", 0, server.Identity{UID: 1000, GID: 1000}, model.Opt[uint32]{}, some(0), ""},
		{"another user", 0, server.Identity{UID: 1000, GID: 1000}, some(1001), model.Opt[uint32]{}, ""},
		{"as root", 0, server.Identity{UID: 1000, GID: 1000}, some(0), model.Opt[uint32]{}, ""},
		{"root for a user", 0, server.Identity{UID: 0}, some(1000), model.Opt[uint32]{}, "1000:1000"},
		{"root for a user, in root's group", 0, server.Identity{UID: 0, FromKernel: true}, some(1000), some(0), ""},
		{"the scheduler's user for a user", 0, server.Identity{UID: 1002}, some(1001), model.Opt[uint32]{}, "1001:1001"},
		{"unknown user", 0, server.Identity{UID: 5}, model.Opt[uint32]{}, model.Opt[uint32]{}, ""},
		{"the user's own controller", 1000, server.Identity{UID: 1000, GID: 50}, model.Opt[uint32]{}, some(50), "1000:1000"},
		{"another's controller", 1001, server.Identity{UID: 1000, GID: 1000}, model.Opt[uint32]{}, model.Opt[uint32]{}, ""},
		{"another's controller, asked by root", 1001, server.Identity{}, model.Opt[uint32]{}, model.Opt[uint32]{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Controller{uid: tt.self, cfg: Config{Users: known{}, SchedUser: 1002}}
			user, gid, err := c.runAs(tt.client, &model.JobDesc{UserID: tt.uid, GroupID: tt.gid})
			if got := fmt.Sprintf("%d:%d", user.UID, gid); (err != nil) != (tt.want == "") || err == nil && got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	c, _ := controller(t, Config{CPUs: 1})
	runningID := submit(t, c, desc(t.TempDir(), "setsid sleep 60 & sleep 60"))
	pendingID := submit(t, c, desc(t.TempDir(), "sleep 60"))
	heldDesc := desc(t.TempDir(), "sleep 60")
	heldDesc.Priority = model.Some[uint32](0)
	heldID := submit(t, c, heldDesc)
	deferredDesc := desc(t.TempDir(), "sleep 60")
	deferredDesc.BeginTime = model.At(time.Now().Add(time.Hour))
	deferredID := submit(t, c, deferredDesc)
	awaitState(t, c, runningID, model.JobRunning)
	for id, want := range map[uint32]uint32{pendingID: reasonResources, heldID: reasonHeldUser, deferredID: reasonBegin} {
		if j := viewJob(t, c, id); j.State != model.JobPending || j.StateReason != want {
			t.Errorf("job %d: state %d, reason %d, want %d", id, j.State, j.StateReason, want)
		}
	}
	if n := c.node(); n.AllocCPUs != 1 || n.State != model.NodeAllocated {
		t.Errorf("%d cpus allocated, state %d", n.AllocCPUs, n.State)
	}
	for _, id := range []uint32{pendingID, heldID, deferredID, runningID} {
		if err := c.checkKill(otherUser, id); errs.KindOf(err) != errs.NotFound {
			t.Errorf("another user may kill job %d: %v", id, err)
		}
		if err := cancel(c, id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []uint32{pendingID, heldID, deferredID, runningID} {
		awaitState(t, c, id, model.JobCancelled)
		if err := c.checkKill(ownUser, id); errs.KindOf(err) != errs.Conflict {
			t.Errorf("kill of an ended job: %v", err)
		}
	}
	if n := c.node(); n.AllocCPUs != 0 || n.State != model.NodeIdle {
		t.Errorf("%d cpus allocated, state %d", n.AllocCPUs, n.State)
	}
}

func TestEndReasons(t *testing.T) {
	c, _ := controller(t, Config{})
	overLimit := desc(t.TempDir(), "setsid sleep 60 & sleep 60")
	overLimit.TimeLimit = model.Some[uint32](2)
	missingDir := desc(filepath.Join(t.TempDir(), "missing"), "true")
	signalled := desc(t.TempDir(), "kill -USR1 $$")
	tests := []struct {
		name   string
		desc   *model.JobDesc
		state  model.JobState
		reason uint32
		words  string
	}{
		{"time limit", overLimit, model.JobTimeout, reasonTimeLimit, ""},
		{"working directory is missing", missingDir, model.JobFailed, reasonLaunch, "working directory"},
		{"signal", signalled, model.JobFailed, reasonSignal, ""},
		{"success", desc(t.TempDir(), "true"), model.JobComplete, reasonNone, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := awaitState(t, c, submit(t, c, tt.desc), tt.state)
			if j.StateReason != tt.reason || !strings.Contains(j.StateDescription, tt.words) {
				t.Errorf("reason %d, %q", j.StateReason, j.StateDescription)
			}
		})
	}
}

func TestOtherUsersJobs(t *testing.T) {
	if ownUser.UID != 0 {
		t.Skip("running another user's job needs root")
	}
	c, _ := controller(t, Config{})
	dir, err := os.MkdirTemp("", "ctld")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chown(dir, int(otherUser.UID), int(otherUser.GID))
	answer, err := c.Submit(otherUser, desc(dir, "id -u"))
	if err != nil {
		t.Fatal(err)
	}
	id := answer.StepID.JobID
	awaitState(t, c, id, model.JobComplete)
	out := filepath.Join(dir, fmt.Sprintf("sched-%d.out", id))
	st, err := os.Stat(out)
	if err != nil || read(t, out) != "65534\n" || fmt.Sprint(st.Sys()) == "" {
		t.Errorf("%q, %v", read(t, out), err)
	}
	c.mu.Lock()
	r := c.jobs[id].record
	if c.canSee(server.Identity{UID: 1}, r) || !c.canSee(otherUser, r) || !c.canSee(server.Identity{}, r) {
		t.Error("a user who may see the job")
	}
	c.mu.Unlock()
}

// The type renamed looks up the users of this machine. Once the name field is
// set, LookupUID returns that name for the user who runs the tests.
type renamed struct {
	System
	name atomic.Pointer[string]
}

func (r *renamed) LookupUID(uid uint32) (nss.User, error) {
	u, err := r.System.LookupUID(uid)
	if name := r.name.Load(); name != nil && uid == ownUser.UID {
		u.Name = *name
	}
	return u, err
}

// TestJobOfARenamedUserFails checks that a waiting job fails when its uid is
// reassigned to a user with another name.
func TestJobOfARenamedUserFails(t *testing.T) {
	users := new(renamed)
	c, _ := controller(t, Config{CPUs: 1, Users: users})
	runningID := submit(t, c, desc(t.TempDir(), "sleep 60"))
	d := desc(t.TempDir(), "touch started")
	pendingID := submit(t, c, d)
	oldName, newName := viewJob(t, c, pendingID).UserName, "another"
	users.name.Store(&newName)
	if err := cancel(c, runningID); err != nil {
		t.Error(err)
	}
	awaitState(t, c, pendingID, model.JobFailed)
	want := fmt.Sprintf("uid %d no longer belongs to user %s", ownUser.UID, oldName)
	if got := viewJob(t, c, pendingID).StateDescription; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(d.WorkDir.String(), "started")); err == nil {
		t.Error("the job has run")
	}
}

func TestBeginTimeIsBounded(t *testing.T) {
	c, _ := controller(t, Config{})
	for days, ok := range map[int]bool{365: true, 367: false} {
		d := desc(t.TempDir(), "true")
		d.BeginTime = model.At(time.Now().AddDate(0, 0, days))
		if _, err := c.Submit(ownUser, d); (err == nil) != ok || !ok && !strings.Contains(err.Error(), "begin_time: more than 366 days ahead") {
			t.Errorf("%d days: %v", days, err)
		}
	}
}

func TestFinishedJobsAreForgotten(t *testing.T) {
	c, stop := controller(t, Config{MaxJobs: 5})
	var last uint32
	for range 8 {
		last = submit(t, c, desc(t.TempDir(), "true"))
		awaitState(t, c, last, model.JobComplete)
	}
	if last != 8 || len(c.jobs) > 5 {
		t.Errorf("last job %d, %d are kept", last, len(c.jobs))
	}
	c.cfg.Retention = -time.Hour
	c.forget()
	if len(c.jobs) > 0 {
		t.Errorf("%d jobs are kept", len(c.jobs))
	}
	stats, err := newClient(t, c, codec.Newest).Stats(t.Context(), model.Credential{})
	if err != nil || stats.JobsSubmitted != 8 || stats.JobsStarted != 8 || stats.JobsCompleted != 8 || stats.JobsPending != 0 {
		t.Errorf("statistics %+v, %v", stats, err)
	}
	stop()
	c, _ = controller(t, Config{StateDir: c.cfg.StateDir})
	if id := submit(t, c, desc(t.TempDir(), "true")); id != 9 {
		t.Errorf("the next job is %d: a number was used twice", id)
	}
	full, _ := controller(t, Config{MaxJobs: 1})
	held := desc("/tmp", "true")
	held.Priority = model.Some[uint32](0)
	submit(t, full, held)
	if _, err := full.Submit(ownUser, held); errs.KindOf(err) != errs.TooMany {
		t.Errorf("error %v, want too many", err)
	}
}

func TestExpand(t *testing.T) {
	c := &Controller{cfg: Config{Node: "here"}}
	j := &model.Job{StepID: model.StepID{JobID: 42}, UserName: "u", Name: "n%j", WorkDir: "/d", RestartCnt: 3}
	for pattern, want := range map[string]string{
		"sched-%j.out": "/d/sched-42.out", "/%5j": "/00042", "%99999999999j": "/d/0000000042", "%A-%u-%x-%N": "/d/42-u-n%j-here",
		"100%%": "/d/100%", "%q %7": "/d/%q %7", "%2n%t-%r-%s%S": "/d/000-3-batch", "%b": "/d/4", `\%j`: "/d/%j",
	} {
		if got := c.expand(pattern, j); got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
}
