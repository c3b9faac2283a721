package privsep

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/bundled/demo/thread"
	auditing "schedrestd/gateway/auditor"
	"schedrestd/gateway/dispatcher"
	"schedrestd/gateway/fetcher/confined"
	"schedrestd/gateway/output"
	"schedrestd/gateway/proof"
	program "schedrestd/gateway/worker"
	"schedrestd/integration/privsep/parent"
	"schedrestd/internal/programtest"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	programs "schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
	"schedrestd/security/sandbox/sandboxtest"
)

// The test binary runs the tests. It also acts as each process that the parent
// starts. The program's name and arguments select the process. The parent is a
// process of its own, because it drops privileges that it can't regain. Its
// program is built from parent/program. If that is not possible, the test binary
// acts as the parent, too.

// binary is a copy of the test binary that every user can execute.
// parentProgram is the program that acts as the parent, in the same directory.
var binary, parentProgram string

// testConfig contains the parent's settings that tests change.
type testConfig = parent.Config

// parentEnv is the name of the environment variable that contains these
// settings.
const parentEnv = parent.Env

func TestMain(m *testing.M) {
	switch {
	case os.Args[0] == spawn.WorkerName && os.Args[len(os.Args)-1] == ipc.NamespaceInitMode:
		arg, _ := program.NamespaceInitArg(os.Args)
		os.Exit(program.NamespaceInit(arg))
	case os.Args[0] == spawn.WorkerName && proof.Requested(os.Args):
		os.Exit(playProof())
	case os.Args[0] == spawn.WorkerName:
		os.Exit(playWorker(os.Args[1]))
	case os.Args[0] == programs.Name(ipc.Resolver):
		os.Exit(playResolver(os.Args[1]))
	case os.Args[0] == programs.Name(ipc.Dispatcher):
		os.Exit(playDispatcher(os.Args[1:]))
	case os.Args[0] == programs.Name(ipc.Auditor):
		os.Exit(auditing.Main())
	case os.Args[0] == programs.Name(ipc.Exporter):
		os.Exit(playExporter(os.Args[1:]))
	case os.Args[0] == programs.Name(ipc.Credential):
		os.Exit(playCredential(os.Args[1:]))
	case os.Args[0] == programs.Name(ipc.Output):
		os.Exit(output.Main())
	case os.Args[0] == programs.Name(ipc.Keeper):
		os.Exit(playKeeper(os.Args[1]))
	case confined.Requested(os.Args):
		os.Exit(playFetcher(os.Args[1]))
	case os.Getenv(parentEnv) != "":
		os.Exit(parent.Main())
	}
	if sandboxtest.Cgo && security.Sandboxed {
		fmt.Fprintln(os.Stderr, "error: these tests need a program without cgo, because it can confine all of its threads")
		fmt.Fprintln(os.Stderr, "hint: export CGO_ENABLED=0, or run make test")
		os.Exit(1)
	}
	dir, err := sockettest.MkdirTemp("privsep")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		binary = filepath.Join(dir, binaryName)
		parentProgram, err = install(dir, unreadable)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// playDispatcher runs a dispatcher that logs JSON. If there is one argument, it
// contains the dispatcher's limits (see dispatcherArgs). If there are two,
// playDispatcher runs a compromised dispatcher instead.
func playDispatcher(args []string) int {
	if len(args) == 3 {
		return playStarting(args[1], args[2])
	}
	if len(args) > 1 {
		return playCompromised(args[1])
	}
	limits := dispatcher.Defaults
	if len(args) > 0 {
		if err := json.Unmarshal([]byte(args[0]), &limits); err != nil {
			panic(err)
		}
	}
	level := new(slog.LevelVar)
	return dispatcher.Run(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})), level, limits)
}

// argv contains the arguments for the processes of each role. These arguments
// select how a process behaves in a test.
type argv map[ipc.Role][]string

// The map good contains arguments with which all processes follow the protocol.
var good = argv{ipc.Worker: {"good"}, ipc.Keeper: {"good"}, ipc.Resolver: {"good"}}

// or returns a copy of a. For each role that a lacks, the copy has the
// arguments from others.
func (a argv) or(others argv) argv {
	all := maps.Clone(others)
	maps.Copy(all, a)
	return all
}

// arguments returns the arguments for the processes of a gateway with the
// configuration c.
func arguments(c testConfig) argv {
	all := argv(c.Argv).or(good)
	if !c.DeathTests {
		all[ipc.Worker] = append(slices.Clone(all[ipc.Worker]), noDeathTests)
	}
	return all
}

// dispatcherArgs returns arguments for a dispatcher with the given limits. A
// limit of 0 means the default.
func dispatcherArgs(l dispatcher.Limits) []string {
	all := map[string]any{}
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			all[v.Type().Field(i).Name] = f.Interface()
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return []string{string(text)}
}

// firstWorker is the number of the first worker when the resolver is the only
// service.
const firstWorker = 2.0

// unreadable is the mode of installed programs: other users can execute but not
// read them. A parent copies programs with other modes to memory, which would
// cost 44 MB for each service in each test.
const unreadable = 0o711

// binaryName and parentName are the names of the test binary and of the
// parent's program in a directory of programs.
const binaryName, parentName = "privsep.test", "parent"

// install copies the test binary into dir. It adds copies with the given mode
// under the names of the programs that a parent starts, and the parent's
// program. It returns the path of the latter.
func install(dir string, mode os.FileMode) (string, error) {
	path, worker, parent := filepath.Join(dir, binaryName), filepath.Join(dir, programs.Name(ipc.Worker)), filepath.Join(dir, parentName)
	err := errors.Join(programtest.Copy("/proc/self/exe", path, 0o755), programtest.Copy(path, worker, mode))
	for _, role := range started {
		if err == nil && role != ipc.Worker {
			err = os.Link(worker, filepath.Join(dir, programs.Name(role)))
		}
	}
	switch {
	case err != nil:
	case parentProgram != "":
		err = programtest.Copy(parentProgram, parent, 0o755)
	case !buildParent(parent):
		err = os.Link(path, parent)
	}
	return parent, err
}

// buildParent builds the parent's program, and reports whether it has done so.
// A machine without Go can't build it. With cgo the test binary may have been
// built with the race detector, and the parent must be, too.
func buildParent(path string) bool {
	if sandboxtest.Cgo {
		return false
	}
	build := exec.Command("go", "build", "-ldflags=-w", "-o", path, "./parent/program")
	if !security.Sandboxed {
		build.Args = slices.Insert(build.Args, 2, "-tags=nosandbox")
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build.Run() == nil && os.Chmod(path, 0o755) == nil
}

// started lists the roles whose programs a parent starts.
var started = []ipc.Role{ipc.Worker, ipc.Keeper, ipc.Resolver, ipc.Auditor, ipc.Exporter, ipc.Dispatcher, ipc.Output, ipc.Credential}

// replace puts links to the programs into a new directory, except to the
// program for role. It calls change with the missing program's path, so that
// change can put another program there. It returns the path of the parent's
// program.
func replace(t *testing.T, role ipc.Role, change func(path string)) string {
	t.Helper()
	dir, from := sharedDir(t), filepath.Dir(binary)
	path := filepath.Join(dir, parentName)
	must(t, os.Link(parentProgram, path))
	for _, other := range started {
		if name := programs.Name(other); other == role {
			change(filepath.Join(dir, name))
		} else {
			must(t, os.Link(filepath.Join(from, name), filepath.Join(dir, name)))
		}
	}
	return path
}

// remove leaves the program's path empty.
func remove(string) {}

// reloadFile returns the path of the file that the parents of a test reread.
// All subtests of a test share this file.
func reloadFile(t *testing.T) string {
	test, _, _ := strings.Cut(t.Name(), "/")
	return filepath.Join(filepath.Dir(binary), test+".reload")
}

// gateway is a running parent with its workers.
type gateway struct {
	t     *testing.T
	cmd   *exec.Cmd
	addr  string // address of the first TCP listener
	exit  chan error
	ended chan struct{} // closed when no further log line can come

	mu      sync.Mutex
	served  bool // a test has awaited that it serves
	records []map[string]any
	more    chan struct{} // gets a token with each record
}

// user is the user that a parent runs as. A nil user stands for the user who
// runs the tests.
type user = *syscall.Credential

// contained is the root user of a user namespace with 65536 ids, as in a
// container.
var contained user = new(syscall.Credential)

// plainUser returns an ordinary user whose uid has no name.
func plainUser(t *testing.T) user {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: 31234, Gid: 31235, Groups: []uint32{31236}}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: starts the parent as root")
	}
	if sandboxtest.Cgo {
		t.Skip("this test binary was built with cgo: the parent can't drop capabilities")
	}
}

// needSandbox skips the test if the test binary was built without the sandbox.
// In such a build, the test would really carry out the forbidden operation.
// Builds for the race detector have no sandbox: they need cgo, and with cgo the
// sandbox can't reach all threads.
func needSandbox(t *testing.T) {
	t.Helper()
	if !security.Sandboxed {
		t.Skip("this test binary has no sandbox (-tags nosandbox)")
	}
}

var testLimits = work.Limits{ReadHeader: patience, ReadBody: patience, Idle: patience, Stall: patience, Call: patience, Accounting: patience, Connect: patience,
	Drain: patience, Header: 32 << 10, Body: 1 << 20, Answers: 1 << 20}

// packed returns s in the form that the parent gets. If s has no limits, packed
// sets testLimits.
func packed(s work.Setup) ipc.Setup {
	if s.Limits == (work.Limits{}) {
		s.Limits = testLimits
	}
	p, err := s.Pack()
	if err != nil {
		panic(err)
	}
	return p
}

// launch starts a parent, but does not wait until it serves.
func launch(t *testing.T, as user, c testConfig) *gateway {
	t.Helper()
	return launchAt(t, as, c, nil)
}

// launchAt works like launch. If client is not nil, it becomes the parent's
// standard input and output.
func launchAt(t *testing.T, as user, c testConfig, client *os.File) *gateway {
	t.Helper()
	c.Argv = arguments(c)
	if c.Setup.Settings == nil {
		c.Setup.Settings = packed(work.Setup{}).Settings
	}
	if c.Listen == nil {
		c.Listen = listens("127.0.0.1:0")
	}
	if as != nil || os.Geteuid() != 0 {
		c.Switches.DisableUserCheck = true // the user who runs the tests may be in a forbidden group
	}
	if c.SocketMode == 0 {
		c.SocketMode = 0o666
	}
	if client != nil {
		c.Mode = ipc.ModeInetd
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, exit: make(chan error, 1), ended: make(chan struct{}), more: make(chan struct{}, 100_000)}
	g.cmd = exec.Command(cmp.Or(c.Binary, parentProgram))
	g.cmd.Dir = "/"
	g.cmd.Env = []string{parentEnv + "=" + string(text), "GODEBUG=containermaxprocs=0", "SCHED_JWT=must-not-reach-a-worker", parent.ReloadEnv + "=" + reloadFile(t)}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
	if as == contained {
		ids := []syscall.SysProcIDMap{{Size: 1 << 16}}
		g.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Pdeathsig: syscall.SIGKILL}
	}
	if client != nil {
		g.cmd.Stdin, g.cmd.Stdout = client, client
	}
	out, err := g.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := thread.Start(g.cmd); err != nil {
		t.Fatal(err)
	}
	go g.read(out)
	t.Cleanup(g.stop)
	return g
}

// serve starts a parent and waits until it serves.
func serve(t *testing.T, as user, c testConfig) *gateway {
	t.Helper()
	g := launch(t, as, c)
	r := g.await("serving", nil)
	for _, l := range r["listen"].([]any) {
		if s := l.(string); !strings.HasPrefix(s, "unix:") && g.addr == "" {
			g.addr = s
		}
	}
	return g
}

func (g *gateway) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r := map[string]any{}
		if line := relayed(lines.Text()); line != nil {
			r = line
		} else if json.Unmarshal(lines.Bytes(), &r) != nil {
			r["msg"], r["raw"] = "not a record", lines.Text()
		}
		if r["hint"] == "" && r["msg"] != "failed" {
			g.t.Errorf("a line with a hint that says nothing: %v", r)
		}
		if r["msg"] == "worker: "+workerStartedMsg {
			workerPIDs.Store(r["token"], int(r["worker_pid"].(float64)))
		}
		g.mu.Lock()
		g.records = append(g.records, r)
		g.mu.Unlock()
		select {
		case g.more <- struct{}{}:
		default:
		}
	}
	close(g.ended)
	g.exit <- g.cmd.Wait()
}

// stop kills the parent. The workers end with it.
func (g *gateway) stop() {
	_ = g.cmd.Process.Kill()
	if g.t.Failed() {
		g.mu.Lock()
		defer g.mu.Unlock()
		var text strings.Builder
		for _, r := range g.records[max(0, len(g.records)-20):] {
			fmt.Fprintf(&text, "\n\t%s %s", r["level"], r["msg"])
			for _, key := range []string{"worker", "role", "because", "error", "status"} {
				if v, ok := r[key]; ok {
					fmt.Fprintf(&text, " %s=%v", key, v)
				}
			}
		}
		g.t.Log("the last log lines:", text.String())
	}
}

// hangLimit is the time limit for processes that hang in a test. It also
// applies to the healthy processes of the same gateway, so it is long enough
// for them even on a busy machine.
const hangLimit = 5 * time.Second

// patience is the time limit for what is not tested.
const patience = 2 * time.Minute

// longest returns how long a test waits for an event before it fails. In an emulated
// machine, where all takes many times as long, the tests are run with -short.
func longest() time.Duration {
	if testing.Short() {
		return 5 * patience
	}
	return patience
}

// await waits for a log record that has the message msg and satisfies match.
// The record may have been logged before the call.
func (g *gateway) await(msg string, match func(map[string]any) bool) map[string]any {
	g.t.Helper()
	deadline := time.After(longest())
	seen, ended := 0, false
	for {
		g.mu.Lock()
		list, served := g.records[seen:], g.served
		seen = len(g.records)
		g.mu.Unlock()
		for _, r := range list {
			if r["msg"] == msg && (match == nil || match(r)) {
				g.mu.Lock()
				g.served = g.served || msg == "serving"
				g.mu.Unlock()
				return r
			}
			switch r["msg"] {
			case "failed":
				g.t.Fatalf("the parent failed before it logged %q: %v", msg, r)
			case "serving":
				if msg == "failed" && !served {
					g.t.Fatal("the gateway serves, but must not start")
				}
			}
		}
		if ended {
			g.t.Fatalf("the parent exited before it logged %q", msg)
		}
		select {
		case <-g.more:
		case <-g.ended:
			ended = true
		case <-deadline:
			g.t.Fatalf("the parent never logged %q", msg)
		}
	}
}

// awaitMany waits until n log records have the given message.
func (g *gateway) awaitMany(msg string, n int) {
	g.t.Helper()
	g.await(msg, func(map[string]any) bool { n--; return n == 0 })
}

// lastPID returns the pid in the last record with the given message.
func (g *gateway) lastPID(msg string) (pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		if r["msg"] == msg {
			pid = int(r["pid"].(float64))
		}
	}
	return pid
}

// count returns how many records with the given message have been logged.
func (g *gateway) count(msg string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		if r["msg"] == msg {
			n++
		}
	}
	return n
}

// awaitReason waits for a log record with the message msg and an attribute
// "because" that contains text.
func (g *gateway) awaitReason(msg, text string) map[string]any {
	g.t.Helper()
	return g.await(msg, func(r map[string]any) bool { return strings.Contains(fmt.Sprint(r["because"]), text) })
}

// failure waits until the parent fails, and returns the parent's error and
// hint.
func (g *gateway) failure() (text, hint string) {
	g.t.Helper()
	r := g.await("failed", nil)
	if status := g.wait(); status != 1 {
		g.t.Errorf("exit status %d, want 1", status)
	}
	return fmt.Sprint(r["error"]), fmt.Sprint(r["hint"])
}

// wait waits for the parent to exit and returns its exit status.
func (g *gateway) wait() int {
	g.t.Helper()
	select {
	case err := <-g.exit:
		g.exit <- err
		return g.cmd.ProcessState.ExitCode()
	case <-time.After(longest()):
		g.t.Fatal("the parent does not exit")
	}
	return -1
}

// workerPID returns the pid of the worker that answers.
func (g *gateway) workerPID() int {
	g.t.Helper()
	return pidOf(g.t, g.mustGet("/pid"))
}

// dispatcherPID returns the pid of the first dispatcher.
func (g *gateway) dispatcherPID() int {
	g.t.Helper()
	return int(g.await("dispatcher ready", nil)["pid"].(float64))
}

// workerPIDs maps the token of each worker (see workerStartedMsg) to its pid.
var workerPIDs sync.Map

// pidOf returns the pid of the worker that answered a request for /pid with the
// given token.
func pidOf(t *testing.T, token string) int {
	t.Helper()
	var pid any
	await(t, "a log has a worker with the token "+token, func() (ok bool) { pid, ok = workerPIDs.Load(token); return ok })
	return pid.(int)
}

// status returns a field of /proc/PID/status.
func status(t *testing.T, pid int, name string) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	t.Fatalf("no %s in the status of %d", name, pid)
	return ""
}

// newReader returns a reader with the smallest possible buffer. So it reads at
// most a few bytes of the next answer in advance.
func newReader(c io.Reader) *bufio.Reader { return bufio.NewReaderSize(c, 16) }
