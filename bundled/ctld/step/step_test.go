package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/cgroup"
	"schedrestd/bundled/ctld/process"
)

func TestMain(m *testing.M) {
	// An attacker's variables, such as GODEBUG, must not reach the second stage.
	if os.Args[0] == startName && !slices.Equal(os.Environ(), stageEnv) {
		os.Exit(1)
	}
	Main() // the steps that the tests start run this test binary, too
	if os.Args[0] == "stopper" {
		for {
			_ = syscall.Kill(-1, syscall.SIGSTOP) // stops all other processes of this user
		}
	}
	os.Exit(m.Run())
}

// A fixture has a directory for the jobs' homes and a working directory. The
// jobs' user owns the working directory.
type fixture struct {
	t       *testing.T
	program *Program
	dir     string
	work    string
	user    *User
	log     *os.File
}

const otherUID = 65534 // a user without privileges

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t}
	var err error
	if b.program, err = OpenProgram(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.program.Close() })
	// Other users can't enter the parent of t.TempDir, so the directory is
	// created elsewhere.
	if b.dir, err = os.MkdirTemp("", "step"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(b.dir) })
	os.Chmod(b.dir, 0o755)
	b.work = filepath.Join(b.dir, "work")
	os.Mkdir(b.work, 0o755)
	os.Mkdir(filepath.Join(b.dir, "homes"), 0o700)
	if b.log, err = os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, _ := os.ReadFile(b.log.Name()); len(text) > 0 && t.Failed() {
			t.Logf("log of the steps: %s", text)
		}
	})
	return b
}

// asOther makes the jobs run as another user. That requires root.
func (b *fixture) asOther() *fixture {
	b.t.Helper()
	if os.Getuid() != 0 {
		b.t.Skip("becoming another user needs root")
	}
	b.user = &User{UID: otherUID, GID: otherUID, Groups: []uint32{otherUID}}
	os.Chown(b.work, otherUID, otherUID)
	return b
}

var lastJobID atomic.Uint32

func (b *fixture) spec(script string) *Spec {
	b.t.Helper()
	job := lastJobID.Add(1)
	home := filepath.Join(b.dir, "homes", fmt.Sprint(job))
	if err := Prepare(home); err != nil {
		b.t.Fatal(err)
	}
	return &Spec{
		Job: job, Home: home, User: b.user, Script: Raw("#!/bin/sh\n" + script + "\n"),
		Environment: []Raw{"PATH=/usr/bin:/bin"}, WorkDir: Raw(b.work), Output: "out", KillWait: 300 * time.Millisecond,
	}
}

func (b *fixture) start(spec *Spec) *Step {
	b.t.Helper()
	s, err := b.program.Start(spec, b.log)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Cancel(); s.Close() })
	return s
}

// finish waits for the step and returns its outcome. It clears the outcome's
// fields whose values differ between runs.
func (b *fixture) finish(s *Step, spec *Spec) Outcome {
	b.t.Helper()
	if err := s.Wait(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	o, ok, err := ReadOutcome(spec.Home)
	if err != nil || !ok {
		b.t.Fatalf("outcome %v, %v", ok, err)
	}
	if o.Ended.Before(o.Started) || o.Started.IsZero() {
		b.t.Errorf("from %v to %v", o.Started, o.Ended)
	}
	o.Started, o.Ended, o.UserTime, o.SystemTime, o.MaxRSS = time.Time{}, time.Time{}, 0, 0, 0
	return o
}

func (b *fixture) run(spec *Spec) Outcome {
	b.t.Helper()
	return b.finish(b.start(spec), spec)
}

func (b *fixture) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.work, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// await polls until cond returns true.
func await(t *testing.T, event string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !cond(); {
		if time.Now().After(deadline) {
			t.Fatal("did not happen:", event)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// pid reads the process id that a job wrote to a file in its working directory.
func (b *fixture) pid(name string) int {
	b.t.Helper()
	var pid int
	await(b.t, name+" is written", func() bool {
		text, _ := os.ReadFile(filepath.Join(b.work, name))
		n, _ := fmt.Sscanf(string(text), "%d\n", &pid)
		return n == 1 && strings.HasSuffix(string(text), "\n")
	})
	return pid
}

func alive(pid int) bool {
	st, err := process.ReadStat(pid)
	return err == nil && st.State != 'Z'
}

func TestOutcomes(t *testing.T) {
	b := newFixture(t)
	tests := []struct {
		name, script string
		want         Outcome
	}{
		{"success", "exit 0", Outcome{Format: 1, State: Completed}},
		{"exit code", "exit 7", Outcome{Format: 1, State: Failed, Status: 7 << 8}},
		{"killed by a signal", "kill -SEGV $$", Outcome{Format: 1, State: Failed, Status: 11}},
		{"abandons a child", "sleep 60 & exit 3", Outcome{Format: 1, State: Failed, Status: 3 << 8}},
		{"abandons a child in another session", "setsid sleep 60 & exit 0", Outcome{Format: 1, State: Completed}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, b.run(b.spec(tt.script))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("not to be executed", func(t *testing.T) {
		spec := b.spec("")
		spec.Script = "#!/no/such/interpreter\n"
		o := b.run(spec)
		if o.State != Failed || !strings.Contains(o.Reason, "/no/such/interpreter") {
			t.Errorf("%+v", o)
		}
	})
}

func TestWhatTheJobSees(t *testing.T) {
	b := newFixture(t)
	spec := b.spec(`pwd; echo "$GREETING"; echo "$1"; umask; echo to stderr >&2; cat; echo "$LATIN" | od -An -tx1
		trap | cat; grep -E '^Sig(Ign|Blk)' /proc/self/status; ls -l /proc/self/fd | sed -n 's/.* \([0-9]* -> .*\)/\1/p'`)
	spec.Environment = append(spec.Environment, "GREETING=hello world", "LATIN=\xe9")
	spec.Args = []Raw{"argument"}
	spec.Input = "in"
	os.WriteFile(filepath.Join(b.work, "in"), []byte("from the input\n"), 0o644)
	if o := b.run(spec); o.State != Completed {
		t.Errorf("%+v", o)
	}
	out := fmt.Sprintf("%s/out", b.work)
	want := []string{
		b.work, "hello world", "argument", "0022", "to stderr", "from the input", " e9 0a",
		"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000",
		// The job has only the three standard descriptors, the script, and the
		// descriptor that ls itself opens.
		"0 -> " + b.work + "/in", "1 -> pipe", "100 -> /memfd:script (deleted)", "2 -> " + out, "3 -> /proc",
	}
	got := strings.Split(strings.TrimSpace(b.read("out")), "\n")
	for i, line := range got {
		for _, cut := range []string{"1 -> pipe", "3 -> /proc"} {
			if strings.HasPrefix(line, cut) {
				got[i] = cut
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOutputAppendAndError(t *testing.T) {
	b := newFixture(t)
	first, second := b.spec("echo one"), b.spec("echo two; echo bad >&2")
	second.Append, second.Error = true, "err"
	b.run(first)
	b.run(second)
	if got := b.read("out") + b.read("err"); got != "one\ntwo\nbad\n" {
		t.Errorf("%q", got)
	}
}

// TestOutputDirectories checks that the directories of the output files are created.
func TestOutputDirectories(t *testing.T) {
	b := newFixture(t)
	spec := b.spec("echo out; echo err >&2")
	spec.Output, spec.Error = "a/b/out", "c/err"
	if o := b.run(spec); o.State != Completed || b.read("a/b/out") != "out\n" || b.read("c/err") != "err\n" {
		t.Errorf("outcome %+v", o)
	}
}

func TestJobRunsAsTheUser(t *testing.T) {
	b := newFixture(t).asOther()
	o := b.run(b.spec("id -u; id -g; id -G; grep -E '^(Cap(Prm|Eff)|NoNew)' /proc/self/status"))
	if o.State != Completed {
		t.Fatalf("%+v", o)
	}
	want := "65534\n65534\n65534\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t0\n"
	if diff := cmp.Diff(want, b.read("out")); diff != "" {
		t.Error(diff)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(b.work, "out"), &st); err != nil || st.Uid != otherUID || st.Gid != otherUID {
		t.Errorf("output belongs to %d:%d, %v", st.Uid, st.Gid, err)
	}
}

// TestUserPathsAreOpenedAsUser checks that the job's user, and not root, opens
// all paths that the user names. Otherwise links could lead root to other
// files.
func TestUserPathsAreOpenedAsUser(t *testing.T) {
	b := newFixture(t).asOther()
	secret := filepath.Join(b.dir, "secret")
	os.WriteFile(secret, []byte("root's\n"), 0o600)
	closed := filepath.Join(b.dir, "closed")
	os.Mkdir(closed, 0o700)
	os.Symlink(secret, filepath.Join(b.work, "link"))
	os.Symlink(closed, filepath.Join(b.work, "door"))
	tests := []struct {
		name   string
		change func(*Spec)
		reason string
	}{
		{"output is a link to a file of root's", func(s *Spec) { s.Output = "link" }, "open the output"},
		{"output is a file of root's", func(s *Spec) { s.Output = Raw(secret) }, "open the output"},
		{"error output", func(s *Spec) { s.Error = "link" }, "open the error output"},
		{"input is a file of root's", func(s *Spec) { s.Input = "link" }, "open the input"},
		{"working directory of root's", func(s *Spec) { s.WorkDir = Raw(closed) }, "working directory"},
		{"working directory through a link", func(s *Spec) { s.WorkDir += "/door" }, "working directory"},
		{"output in a directory of root's", func(s *Spec) { s.Output = "door/out" }, "open the output"},
		{"another user's interpreter", func(s *Spec) { s.Script = Raw("#!" + secret + "\n") }, "interpreter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := b.spec("echo overwritten; cat")
			tt.change(spec)
			o := b.run(spec)
			if o.State != Failed || !strings.Contains(o.Reason, tt.reason) || !strings.Contains(o.Reason, "permission denied") {
				t.Errorf("%+v", o)
			}
			if text, _ := os.ReadFile(secret); string(text) != "root's\n" {
				t.Errorf("root's file has %q", text)
			}
		})
	}
	if names, _ := os.ReadDir(closed); len(names) > 0 {
		t.Errorf("a file was created in root's directory: %v", names)
	}
}

func TestInCgroup(t *testing.T) {
	base, err := cgroup.Delegated()
	if err != nil {
		t.Skip("no cgroup: ", err)
	}
	b := newFixture(t)
	spec := b.spec("cat /proc/self/cgroup; setsid sleep 60 & echo $! >child; sleep 60")
	spec.Cgroup = base
	s := b.start(spec)
	child := b.pid("child")
	c, _, _ := ReadClaim(spec.Home)
	if !strings.Contains(b.read("out"), "0::/"+filepath.Base(c.Cgroup)) && !strings.Contains(b.read("out"), "/"+filepath.Base(c.Cgroup)+"\n") {
		t.Errorf("the job is not in %s: %s", c.Cgroup, b.read("out"))
	}
	// Killing the cgroup must end the job's processes, without a search in
	// /proc.
	s.handle.Signal(syscall.SIGKILL)
	s.Wait(t.Context())
	if err := (&cgroup.Group{Path: c.Cgroup}).Kill(); err != nil {
		t.Error(err)
	}
	await(t, "the child dies", func() bool { return !alive(child) })
	KillOrphans(c, uint32(os.Getuid()))
	await(t, "the group is removed", func() bool { os.Remove(c.Cgroup); _, err := os.Stat(c.Cgroup); return err != nil })

	if base.CanLimitMemory {
		spec = b.spec(`x=$(head -c 100000000 /dev/zero | tr "\0" x)`)
		spec.Cgroup, spec.Memory = base, 30<<20
		if o := b.run(spec); o.State != OutOfMemory {
			t.Errorf("%+v", o)
		}
	}
}

// TestRawKeepsBytes checks that a Raw value keeps all bytes when it is encoded
// and decoded. Its encoding must be only slightly longer than base64.
func TestRawKeepsBytes(t *testing.T) {
	for _, want := range []Raw{"", "plain", "caf\xe9", "\x00\xff", `{"b64":""}`, "ü\u2028", "echo \"$HOME\" >out\n",
		Raw(strings.Repeat("\x01", 999)), Raw(strings.Repeat("<&>", 333)), Raw(strings.Repeat(`\"`, 500))} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Raw
		if err := got.UnmarshalJSON(b); err != nil || got != want {
			t.Errorf("%q became %q, %v", want, got, err)
		}
		if len(b) > len(want)*4/3+20 {
			t.Errorf("%.40q takes %d bytes", want, len(b))
		}
	}
}

// TestInheritedDescriptorsAreNotPassedOn checks that the second stage, which
// runs as the user, gets none of the descriptors that the controller inherited.
func TestInheritedDescriptorsAreNotPassedOn(t *testing.T) {
	if os.Getenv("STEP_TEST_PROBE") == "" {
		child := exec.Command("/bin/sh", "-c", `exec 9</etc/passwd; exec "$0" -test.v -test.run='^`+t.Name()+`$'`, os.Args[0])
		child.Env = append(os.Environ(), "STEP_TEST_PROBE=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	b := newFixture(t)
	spec := b.spec("echo $$ >main; sleep 60")
	s := b.start(spec)
	b.pid("main")
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/9", s.Claim.Step.PID))
	if err != nil {
		t.Fatal("the probe did not get here: ", err)
	}
	flags := 0
	if _, after, ok := strings.Cut(string(info), "flags:"); ok {
		fmt.Sscanf(after, "%o", &flags)
	}
	if flags&syscall.O_CLOEXEC == 0 {
		t.Errorf("the user gets descriptor 9 of the step: %s", info)
	}
}

// TestSessionKeyringIsLeft checks that a job can't use the keys of the session
// in which root started the controller.
func TestSessionKeyringIsLeft(t *testing.T) {
	runtime.LockOSThread() // if the test is skipped or fails early, the thread ends, and its keys with it
	if err := leaveKeyring(); err != nil {
		t.Fatal(err)
	}
	id, err := unix.AddKey("user", "planted", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING)
	if err == nil {
		err = unix.KeyctlSetperm(id, 0x3f000000) // all rights for processes that possess the key, whatever their uid
	}
	if err != nil {
		t.Skip("this machine lets nobody keep keys: ", err)
	}
	const command = "grep -c planted /proc/keys || true"
	if out, err := exec.Command("/bin/sh", "-c", command).Output(); err != nil || string(out) != "1\n" {
		t.Skipf("the test's key is not visible even before the step: %q, %v", out, err)
	}
	b := newFixture(t)
	b.run(b.spec(command))
	if got := b.read("out"); got != "0\n" {
		t.Errorf("the job sees root's key: %q", got)
	}
	runtime.UnlockOSThread()
}

// TestHeldPipeDoesNotKeepTheJob checks that the job ends even if a process
// keeps the report pipe of the second stage open.
func TestHeldPipeDoesNotKeepTheJob(t *testing.T) {
	w := &watch{startResult: make(chan error, 1), log: slog.New(slog.DiscardHandler)}
	if err := w.awaitReport(); err != nil {
		t.Error(err)
	}
	w.startResult <- errors.New("why")
	if err := w.awaitReport(); err == nil {
		t.Error("the report did not arrive")
	}
}

// TestNamedPipes checks that the second stage does not block when it opens a
// named pipe that no other process has open.
func TestNamedPipes(t *testing.T) {
	b := newFixture(t)
	for _, name := range []string{"in", "out"} {
		if err := syscall.Mkfifo(filepath.Join(b.work, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := b.spec("true")
	if o := b.run(spec); o.State != Failed || !strings.Contains(o.Reason, "named pipe without a reader") {
		t.Errorf("%+v", o)
	}
	spec = b.spec("cat; echo end")
	spec.Input, spec.Output = "in", "file"
	if o := b.run(spec); o.State != Completed || b.read("file") != "end\n" {
		t.Errorf("%+v", o)
	}
}

// TestForkingChainsEnd checks that a job ends even if its processes fork and
// exit faster than killAll can list them.
func TestForkingChainsEnd(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("nothing here forks fast enough: ", err)
	}
	b := newFixture(t)
	spec := b.spec(`for i in 1 2 3 4 5 6 7 8 9 10; do perl -e 'while (1) { exit if fork }' & done; : >ran; wait; sleep 60`)
	s := b.start(spec)
	await(t, "the chains run", func() bool { _, err := os.Stat(filepath.Join(b.work, "ran")); return err == nil })
	time.Sleep(100 * time.Millisecond)
	s.Cancel()
	if o := b.finish(s, spec); o.State != Cancelled && o.State != Completed {
		t.Errorf("%+v", o)
	}
}

// TestLimitsAreAsTheControllersWere checks that a job has the resource limits
// with which the controller was started. The Go runtime changes some of them in
// the controller.
func TestLimitsAreAsTheControllersWere(t *testing.T) {
	const command = "ulimit -Sn; ulimit -Hn; ulimit -Sc"
	want, err := exec.Command("/bin/sh", "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	b := newFixture(t)
	b.run(b.spec(command))
	if diff := cmp.Diff(string(want), b.read("out")); diff != "" {
		t.Error(diff)
	}
}
