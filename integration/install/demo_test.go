package install

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"schedrestd/bundled/ctld/process"
	"schedrestd/integration/harness"
	"schedrestd/integration/page"
	"schedrestd/internal/programtest"
	"schedrestd/internal/socket/sockettest"
)

// TestDemoOnce runs the whole demo with one command, as the user of this
// process. If this is root, it also runs the demo as an ordinary user. The
// ordinary user has no entry in any user database, and the binaries are in a
// directory that other users can't enter.
func TestDemoOnce(t *testing.T) {
	users := map[string]*syscall.Credential{"this user": nil}
	if os.Geteuid() == 0 {
		users["an ordinary user"] = &syscall.Credential{Uid: 61234, Gid: 61234, Groups: []uint32{}}
	}
	users["this user, with TLS"] = nil
	for name, credential := range users {
		t.Run(name, func(t *testing.T) {
			args := []string{"--once"}
			if strings.HasSuffix(name, "TLS") {
				args = append(args, "--tls")
			}
			d := demoCommand(t, credential, args...)
			out, err := d.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{"is up", "IDLE", "submit  job 1", "COMPLETED, exit code 0", "| Hello from job 1", "| part 3 of 3"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if os.Geteuid() == 0 && credential == nil == strings.Contains(string(out), "disable_user_check") {
				t.Errorf("text about disable_user_check:\n%s", out)
			}
			checkNothingLeft(t, d)
		})
	}
}

// TestDemoSudo runs the demo as root, as if a user had started it with sudo.
// The demo must submit the job as that user.
func TestDemoSudo(t *testing.T) {
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	d := demoCommand(t, nil, "--once")
	d.Env = append(d.Env, "SUDO_USER="+u.Name)
	out, err := d.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "I am "+u.Name) || !strings.Contains(string(out), "owned by "+u.Name) {
		t.Errorf("the job is not %s's:\n%s", u.Name, out)
	}
	checkNothingLeft(t, d)
}

// TestDemoStops checks that the demo shows a job, and that the commands that it
// prints work when a user pastes them into a shell. It also checks that Ctrl-C,
// SIGTERM and SIGKILL end all processes of the demo, including a running job.
func TestDemoStops(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl, to run what the demo prints")
	}
	tests := []struct {
		name string
		stop func(d *demo) // ends it
		kill bool          // the signal kills the demo, so the demo can't choose its exit status
	}{
		{name: "Ctrl-C", stop: func(d *demo) { d.signal(syscall.SIGINT) }},
		{name: "SIGTERM", stop: func(d *demo) { d.signal(syscall.SIGTERM) }},
		{name: "twice", stop: func(d *demo) { d.signal(syscall.SIGINT); d.signal(syscall.SIGINT) }, kill: true},
		{name: "kill -9 of the process that was started", stop: func(d *demo) { d.signal(syscall.SIGKILL) }, kill: true},
		{name: "kill -9 of its stage", stop: func(d *demo) { syscall.Kill(d.supervisorPID(), syscall.SIGKILL) }, kill: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each waits for a job that ignores SIGTERM
			d := demoCommand(t, nil)
			d.start()
			commands := d.lines("curl ")
			if len(commands) != 3 {
				t.Fatalf("%d lines to paste", len(commands))
			}
			if shown := d.lines("  | Hello from job 1"); len(shown) != 1 {
				t.Errorf("printed %q", d.out)
			}
			for i, want := range []string{`"pings"`, `"nodes"`, `"job_id":2`} {
				sh := exec.Command("sh", "-c", commands[i])
				sh.Env = []string{"PATH=" + filepath.Dir(curl) + ":/usr/bin:/bin"}
				out, err := sh.Output()
				if err != nil || !bytes.Contains(out, []byte(want)) || !bytes.Contains(out, []byte(`"errors":[]`)) {
					t.Errorf("%s: %v\n%s", commands[i], err, out)
				}
			}
			terminal := d.terminal(t)
			if out, err := terminal.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("job 3 COMPLETED")) || !regexp.MustCompile(`(?m)^3 .* COMPLETED `).Match(out) {
				t.Errorf("%s: %v\n%s", terminal.Args, err, out)
			}
			// A job that ignores SIGTERM.
			sleep := harness.UniqueSleep()
			body := fmt.Sprintf(`{"job":{"script":"#!/bin/sh\ntrap '' TERM\nsetsid sleep %s &\nwait","environment":["PATH=/usr/bin:/bin"],"current_working_directory":"/","standard_output":"/dev/null"}}`, sleep)
			submit := strings.Fields(commands[2])
			args := []string{"-s", "-H", submit[2], "-H", "Content-Type: application/json", "-d", body, submit[len(submit)-1]}
			if out, err := exec.Command(curl, args...).Output(); err != nil || !bytes.Contains(out, []byte(`"job_id":4`)) {
				t.Fatalf("submit: %v %s", err, out)
			}
			harness.Eventually(t, "the job runs", func() bool { return harness.CountSleeps(t, sleep) == 1 })

			test.stop(d)
			err := d.Wait()
			if !test.kill && err != nil {
				t.Errorf("exit status: %v\n%s", err, d.errors.String())
			}
			harness.Eventually(t, "the job has ended", func() bool { return harness.CountSleeps(t, sleep) == 0 })
			checkNothingLeft(t, d)
		})
	}
}

// TestDemoOutput runs the files in testdata/demo, which contain commands about the
// output of jobs, with the demo of an ordinary user. Then it runs the blocks about
// output in the guide for clients.
func TestDemoOutput(t *testing.T) {
	u := harness.OrdinaryUser(t)
	var credential *syscall.Credential
	if os.Geteuid() == 0 {
		credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{}}
	}
	d := demoCommand(t, credential)
	d.start()
	environment, _, _ := strings.Cut(strings.TrimPrefix(d.lines(". ")[0], ". "), " ")
	dir := filepath.Dir(environment)
	read := exec.Command("sh", "-ec", ". "+environment+"; echo $SCHED_URL $SCHED_JWT")
	out, err := read.Output()
	harness.Must(t, err)
	server := strings.Fields(string(out))
	t.Run("commands", func(t *testing.T) {
		testscript.Run(t, testscript.Params{Dir: "testdata/demo", Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", harness.Bin+":"+env.Getenv("PATH"))
			env.Setenv("SCHED_URL", server[0])
			env.Setenv("SCHED_JWT", server[1])
			env.Setenv("WORK", filepath.Join(dir, "job"))
			env.Setenv("CONF", filepath.Join(dir, "etc", "sched.conf"))
			return nil
		}})
	})
	t.Run("guide", func(t *testing.T) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("python3 is not installed")
		}
		blocks, err := page.Blocks(filepath.Join(harness.Root, "docs/CLIENTS.md"))
		harness.Must(t, err)
		steps := "cp " + dir + "/token token; URL=" + server[0] + "/sched/v0.0.43; id=1\n"
		for _, b := range blocks {
			if b.Heading == "Find the output of a job" {
				steps += script("docs/CLIENTS.md", b)
			}
		}
		sh := exec.Command("sh", "-ec", strings.ReplaceAll(steps, "http://127.0.0.1:6820", server[0]))
		sh.Dir, sh.Env = t.TempDir(), append(os.Environ(), "SCHED_JWT="+server[1])
		out, err := sh.CombinedOutput()
		if n := strings.Count(string(out), "part 3 of 3\n"); err != nil || n != 6 {
			t.Errorf("%v, %d times the last line\n%s", err, n, out)
		}
	})
	d.signal(syscall.SIGINT)
	d.Wait()
	checkNothingLeft(t, d)
}

// TestDemoDaemonDies checks that if a daemon exits, the demo names the daemon
// and ends all other processes.
func TestDemoDaemonDies(t *testing.T) {
	d := demoCommand(t, nil)
	d.start()
	for _, pid := range d.processes() {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "scheddbd\n" {
			harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	if err := d.Wait(); err == nil {
		t.Error("exit status 0")
	}
	if got := d.errors.String(); !strings.Contains(got, "error: scheddbd has ended") {
		t.Errorf("printed %s", got)
	}
	checkNothingLeft(t, d)
}

// TestDemoBusyPort checks what the demo prints if its port is in use: two
// commands that the user can paste, each of which finds a free port.
func TestDemoBusyPort(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer busy.Close()
	d := demoCommand(t, nil, "--listen", busy.Addr().String())
	out, err := d.CombinedOutput()
	hint := regexp.MustCompile(`\nhint: .*: (make demo LISTEN=\S+), or (schedctl demo --listen \S+)\n`).FindStringSubmatch(string(out))
	if err == nil || !strings.Contains(string(out), "is in use") || hint == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkNothingLeft(t, d)
	for _, command := range hint[1:] {
		t.Run(command, func(t *testing.T) {
			d := demoCommand(t, nil)
			d.Path, d.Args = "/bin/sh", []string{"sh", "-c", "exec " + command}
			d.Dir, d.Env = harness.Root, append(os.Environ(), "TMPDIR="+d.tmp, "PATH="+harness.Bin+":"+os.Getenv("PATH"))
			d.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			d.start()
			harness.Must(t, syscall.Kill(-d.Process.Pid, syscall.SIGINT)) // like Ctrl-C
			if d.Wait(); !strings.Contains(strings.Join(d.out, "\n"), "http://127.0.0.1:") {
				t.Errorf("printed %q", d.out)
			}
			checkNothingLeft(t, d)
		})
	}
}

// demo is a "schedctl demo" command that has its own temporary directory.
type demo struct {
	*exec.Cmd
	t      *testing.T
	tmp    string
	out    []string
	errors bytes.Buffer
}

func demoCommand(t *testing.T, credential *syscall.Credential, args ...string) *demo {
	t.Helper()
	home, err := sockettest.MkdirTemp("home-")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	program := filepath.Join(harness.Bin, "schedctl")
	if credential != nil {
		program = copyPrograms(t, home, credential)
	}
	if !slices.Contains(args, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	d := &demo{Cmd: exec.Command(program, append([]string{"demo"}, args...)...), t: t, tmp: filepath.Join(home, "tmp")}
	harness.Must(t, os.MkdirAll(d.tmp, 0o700))
	harness.Must(t, os.Chmod(home, 0o755))
	harness.Must(t, os.Chmod(d.tmp, 0o755))
	if credential != nil {
		harness.Must(t, os.Chown(d.tmp, int(credential.Uid), int(credential.Gid)))
		harness.Must(t, os.Chmod(home, 0o700))
	}
	d.Dir = "/"
	d.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + d.tmp}
	d.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	return d
}

// copyPrograms copies the binaries to a home directory that only its owner can
// enter.
func copyPrograms(t *testing.T, home string, owner *syscall.Credential) (schedctl string) {
	t.Helper()
	dir := filepath.Join(home, "bin")
	harness.Must(t, os.Mkdir(dir, 0o700))
	programs, err := filepath.Glob(filepath.Join(harness.Bin, "sched*"))
	harness.Must(t, err)
	for _, path := range programs {
		program := filepath.Join(dir, filepath.Base(path))
		harness.Must(t, programtest.Copy(path, program, 0o700))
		harness.Must(t, os.Chown(program, int(owner.Uid), int(owner.Gid)))
	}
	harness.Must(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	harness.Must(t, os.Chown(home, int(owner.Uid), int(owner.Gid)))
	return filepath.Join(dir, "schedctl")
}

// start starts the demo and waits until the demo has printed how to stop it.
func (d *demo) start() {
	d.t.Helper()
	out, err := d.StdoutPipe()
	harness.Must(d.t, err)
	d.Stderr = &d.errors
	harness.Must(d.t, d.Start())
	d.t.Cleanup(func() { d.Process.Signal(syscall.SIGTERM) })
	for in := bufio.NewScanner(out); in.Scan(); {
		d.out = append(d.out, in.Text())
		if strings.HasPrefix(in.Text(), "Ctrl-C") {
			go io.Copy(io.Discard, out)
			return
		}
	}
	d.Wait()
	d.t.Fatalf("the demo did not start:\n%s\n%s", strings.Join(d.out, "\n"), d.errors.String())
}

func (d *demo) signal(s syscall.Signal) { harness.Must(d.t, d.Process.Signal(s)) }

// lines returns the lines that begin with prefix.
func (d *demo) lines(prefix string) []string {
	return slices.DeleteFunc(slices.Clone(d.out), func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

// terminal returns a shell that runs the lines for schedctl that the demo has
// printed.
func (d *demo) terminal(t *testing.T) *exec.Cmd {
	t.Helper()
	lines := slices.Concat(d.lines(". "), d.lines("schedctl nodes"), d.lines("printf "), d.lines("schedctl jobs"))
	if len(lines) != 4 {
		t.Errorf("%d lines for schedctl: %q", len(lines), lines)
	}
	sh := exec.Command("sh", "-ec", strings.Join(lines, "\n"))
	sh.Env, sh.Dir = []string{"PATH=/usr/bin:/bin"}, t.TempDir()
	return sh
}

// supervisorPID returns the process id of the parent of the demo's daemons.
func (d *demo) supervisorPID() int {
	list, err := process.Descendants(d.Process.Pid)
	harness.Must(d.t, err)
	for _, st := range list {
		if st.Parent == d.Process.Pid {
			return st.PID
		}
	}
	d.t.Fatal("no stage")
	return 0
}

// processes returns the processes that have the demo's directory in their
// arguments or environment.
func (d *demo) processes() []int {
	d.t.Helper()
	all, err := process.All()
	harness.Must(d.t, err)
	var pids []int
	for _, st := range all {
		dir := "/proc/" + strconv.Itoa(st.PID)
		arguments, _ := os.ReadFile(dir + "/cmdline")
		environment, _ := os.ReadFile(dir + "/environ")
		if st.State != 'Z' && (bytes.Contains(arguments, []byte(d.tmp)) || bytes.Contains(environment, []byte(d.tmp))) {
			pids = append(pids, st.PID)
		}
	}
	return pids
}

// checkNothingLeft waits until all processes of the demo have exited, and
// checks that no files are left.
func checkNothingLeft(t *testing.T, d *demo) {
	t.Helper()
	harness.Eventually(t, "no process of the demo is left", func() bool { return len(d.processes()) == 0 })
	harness.Eventually(t, "no file of the demo is left", func() bool {
		list, err := os.ReadDir(d.tmp)
		harness.Must(t, err)
		return len(list) == 0
	})
}
