package stage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/sysctl"
	"schedrestd/internal/programtest"
)

// user is an ordinary uid that has no name.
const user = 31240

// patience limits the time that a test waits. After this time the test fails.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Args[0] == "target" {
		status, _ := os.ReadFile("/proc/self/status")
		if nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
			status = fmt.Appendf(status, "Nice:\t%d\n", noNice-nice)
		}
		fmt.Printf("%s%s%s", strings.Join(os.Args[1:], " "), "\n"+strings.Join(os.Environ(), " ")+"\n", status)
		own, _ := os.Readlink(Program)
		if three, _ := os.Readlink("/proc/self/fd/3"); three == own {
			fmt.Println("descriptor 3 is the program")
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: starts a program as another user")
	}
}

// start starts a stage for target. Like the services, it runs as root. The
// stage inherits file as descriptor 3.
func start(t *testing.T, target Target, file *os.File) *exec.Cmd {
	t.Helper()
	argv, env := target.Command()
	cmd := exec.Command(Program)
	cmd.Args, cmd.Env, cmd.Dir = argv, env, "/"
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// openSelf opens the file of the running program, so that the program can be
// executed through the descriptor.
func openSelf(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.Open(Program, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), Program)
}

func TestTheTargetHasTheIdentityAndNothingElse(t *testing.T) {
	needRoot(t)
	file := openSelf(t)
	defer file.Close()
	cmd := start(t, Target{UID: user, GID: user + 1, Groups: []uint32{user + 2, user + 3}, DeathSignal: syscall.SIGTERM,
		Path: File(3), Argv: []string{"target", "one", ""}, Env: []string{"A=b"}}, file)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%s: %s", cmd.ProcessState, cmd.Stderr)
	}
	output := cmd.Stdout.(*bytes.Buffer).String()
	got := strings.SplitN(output, "\n", 3)[:2]
	for _, field := range []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapAmb"} {
		_, rest, _ := strings.Cut(output, "\n"+field+":")
		value, _, _ := strings.Cut(rest, "\n")
		got = append(got, strings.Join(strings.Fields(value), " "))
	}
	none := "0000000000000000"
	want := []string{"one ", "A=b", "31240 31240 31240 31240", "31241 31241 31241 31241", "31242 31243", none, none, none, none}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(output, "descriptor 3") {
		t.Error("the target inherited the descriptor of its program")
	}
}

// TestNice checks that a target gets none of its starter's priority, and keeps a
// positive nice value.
func TestNice(t *testing.T) {
	needRoot(t)
	for starter, want := range map[int]string{-5: "0", 0: "0", 5: "5"} {
		var cmd *exec.Cmd
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // this thread ends with its goroutine
			err := unix.Setpriority(unix.PRIO_PROCESS, 0, starter)
			if err == nil {
				cmd = start(t, Target{UID: user, GID: user, Path: Program, Argv: []string{"target"}}, nil)
				_ = cmd.Wait()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Skipf("set the nice value %d: %v", starter, err)
		}
		_, nice, _ := strings.Cut(cmd.Stdout.(*bytes.Buffer).String(), "\nNice:\t")
		if nice = strings.TrimSpace(nice); nice != want {
			t.Errorf("the starter's nice value is %d, the target's %q, want %s: %s", starter, nice, want, cmd.Stderr)
		}
	}
}

// startStuck starts a target that already has its new identity but waits in the
// kernel before its first instruction, as if its user had stopped it. Closing
// the returned file lets the target continue.
func startStuck(t *testing.T) (cmd *exec.Cmd, file *os.File) {
	t.Helper()
	dir, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	_ = os.Chmod(dir, 0o755)
	path := filepath.Join(dir, "target")
	if err = programtest.Copy(Program, path, 0o755); err == nil {
		file, err = os.Open(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	// The lease makes exec wait. To execute the file, the kernel has to open
	// it. This conflicts with the lease, so the kernel blocks exec until the
	// lease ends.
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("this file system has no leases: %v", err)
	}
	cmd = start(t, Target{UID: user, GID: user, Path: path, Argv: []string{"target"}}, nil)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if bytes.Contains(status, []byte(fmt.Sprintf("\nUid:\t%d", user))) {
			return cmd, file
		}
		if time.Now().After(end) {
			t.Fatalf("the stage does not change its uid: %s", cmd.Stderr)
		}
	}
}

// TestAStuckTargetDoesNotHoldUpItsStarter checks that start returns although
// the target is stuck. If start executed the target directly, without a stage,
// it would wait for the target.
func TestAStuckTargetDoesNotHoldUpItsStarter(t *testing.T) {
	needRoot(t)
	cmd, file := startStuck(t)
	file.Close()
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%s: %s", cmd.ProcessState, cmd.Stderr)
	}
}

// TestDumpable checks that the starter is not dumpable, and that the user can't
// trace the stage. Both must hold even if the kernel makes processes dumpable
// when they change their uid.
func TestDumpable(t *testing.T) {
	needRoot(t)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	for _, setting := range []string{"1", "2"} {
		t.Run(setting, func(t *testing.T) {
			sysctl.Set(t, "fs.suid_dumpable", setting)
			cmd, file := startStuck(t)
			defer file.Close()
			if is, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); is != 0 || err != nil {
				t.Errorf("the starter has become dumpable: %d, %v", is, err)
			}
			trace := start(t, Target{UID: user, GID: user, Path: "/bin/cat", Argv: []string{"cat", fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)}}, nil)
			if err := trace.Wait(); err == nil || !strings.Contains(fmt.Sprint(trace.Stderr), "ermission denied") {
				t.Errorf("the user can read the stage's memory: %v %s", err, trace.Stderr)
			}
		})
	}
}

func TestFailedStarts(t *testing.T) {
	needRoot(t)
	tests := []struct {
		name   string
		change func(*Target)
		status int
		says   string
	}{
		{"uid that means unchanged", func(t *Target) { t.UID = 1<<32 - 1 }, ExitIdentity, "reserved"},
		{"group that means unchanged", func(t *Target) { t.Groups = []uint32{1<<32 - 1} }, ExitIdentity, "reserved"},
		{"relative path", func(t *Target) { t.Path = "bin/sh" }, ExitIdentity, "malformed"},
		{"no path", func(t *Target) { t.Path = "" }, ExitIdentity, "malformed"},
		{"no program", func(t *Target) { t.Path = "/no/such/program" }, ExitTarget, "execute /no/such/program: no such file"},
		{"not open", func(t *Target) { t.Path = File(9) }, ExitTarget, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := Target{UID: user, GID: user, Path: "/bin/true", Argv: []string{"true"}}
			tt.change(&target)
			cmd := start(t, target, nil)
			_ = cmd.Wait()
			if text := fmt.Sprint(cmd.Stderr); cmd.ProcessState.ExitCode() != tt.status || !strings.Contains(text, tt.says) {
				t.Errorf("%s: %s", cmd.ProcessState, text)
			}
		})
	}
}

func TestAUserInManyGroups(t *testing.T) {
	needRoot(t)
	file := openSelf(t)
	defer file.Close()
	var groups []uint32
	for i := range uint32(65_536) { // the maximum that the kernel allows
		groups = append(groups, 2_000_000_000+i)
	}
	cmd := start(t, Target{UID: user, GID: user, Groups: groups, Path: File(3), Argv: []string{"target"}}, file)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%s: %s", cmd.ProcessState, cmd.Stderr)
	}
	_, rest, _ := strings.Cut(fmt.Sprint(cmd.Stdout), "\nGroups:")
	line, _, _ := strings.Cut(rest, "\n")
	if n := len(strings.Fields(line)); n != len(groups) {
		t.Errorf("%d groups", n)
	}
}

// TestAUserGainsNothing checks that an ordinary user who starts a stage gets no
// privileges from it.
func TestAUserGainsNothing(t *testing.T) {
	needRoot(t)
	file := openSelf(t)
	defer file.Close()
	argv, _ := Target{UID: 0, GID: 0, Path: "/bin/true", Argv: []string{"true"}}.Command()
	cmd := start(t, Target{UID: user, GID: user, Path: File(3), Argv: argv}, file)
	_ = cmd.Wait()
	if text := fmt.Sprint(cmd.Stderr); cmd.ProcessState.ExitCode() != ExitIdentity || !strings.Contains(text, "not permitted") {
		t.Errorf("%s: %s", cmd.ProcessState, text)
	}
}

// TestSetUserIDIsRefused checks that the stage refuses to run if its program
// has the set-user-ID bit. Without this check, any user could become root.
func TestSetUserIDIsRefused(t *testing.T) {
	needRoot(t)
	dir, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "setuid")
	if err := programtest.Copy(Program, path, 0o755); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Chmod(dir, 0o755), os.Chmod(path, 0o755|os.ModeSetuid)
	argv, _ := Target{UID: 0, GID: 0, Path: "/usr/bin/id", Argv: []string{"id"}}.Command()
	cmd := start(t, Target{UID: user, GID: user, Path: path, Argv: argv}, nil)
	_ = cmd.Wait()
	output := fmt.Sprint(cmd.Stdout, cmd.Stderr)
	if strings.Contains(output, "not permitted") {
		t.Skip("set-user-ID bits have no effect in this directory")
	}
	if cmd.ProcessState.ExitCode() != ExitIdentity || !strings.Contains(output, "set-user-ID") {
		t.Errorf("%s: %s", cmd.ProcessState, output)
	}
}

func FuzzParse(f *testing.F) {
	argv, _ := Target{UID: 1, GID: 2, Groups: []uint32{3, 4}, DeathSignal: 9, Path: "/bin/true", Argv: []string{"true", "x"}, Env: []string{"A=b"}}.Command()
	f.Add(strings.Join(argv, "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		argv := strings.Split(text, "\n")
		target, err := parse(argv)
		if err != nil {
			return
		}
		canonical, _ := target.Command()
		if diff := cmp.Diff(argv, canonical); diff != "" {
			t.Error(diff)
		}
	})
}
