package privsep

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/programtest"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// TestWorkerIsConfined checks the confinement of a worker in a gateway that
// root started. It examines the worker's process in /proc, and sends the worker
// requests.
func TestWorkerIsConfined(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{DeathTests: true, Service: identityOf("nobody", "nogroup", "")})
	pid, parent := g.workerPID(), g.cmd.Process.Pid
	want := map[string]string{
		"Uid": "65534 65534 65534 65534", "Gid": "65534 65534 65534 65534", "Groups": "",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1",
		"Name": "schedrestd-work",
	}
	for name, value := range want {
		if got := status(t, pid, name); got != value {
			t.Errorf("worker's %s is %q, want %q", name, got, value)
		}
	}
	for _, name := range []string{"CapPrm", "CapEff"} { // SETUID, SETGID, KILL
		if got := status(t, parent, name); got != "00000000000000e0" {
			t.Errorf("parent's %s is %s", name, got)
		}
	}
	for _, name := range []string{"ipc", "net", "mnt"} {
		if a, b := namespace(t, pid, name), namespace(t, parent, name); a == b {
			t.Errorf("worker and parent share the %s namespace %s", name, a)
		}
	}
	inside, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", pid))
	if err != nil || len(inside) != 3 { // proc, the worker's program and the stage
		t.Errorf("the worker's root has %v, %v", inside, err)
	}
	limits := readProc(t, pid, "limits")
	for _, name := range []string{"Max core file size", "Max file size"} {
		i := strings.Index(limits, name)
		if f := strings.Fields(limits[i+len(name):]); i < 0 || f[0] != "0" || f[1] != "0" {
			t.Errorf("%s is not 0", name)
		}
	}
	// If a process is not dumpable, its files in /proc belong to root.
	for process, pid := range map[string]int{"worker": pid, "parent": parent} {
		var st syscall.Stat_t
		if err := syscall.Stat(fmt.Sprintf("/proc/%d/environ", pid), &st); err != nil || st.Uid != 0 {
			t.Errorf("%s is dumpable: %v, uid %d", process, err, st.Uid)
		}
	}
	if got := g.mustGet("/environ"); strings.Contains(got, "SCHED") || strings.Contains(got, parentEnv) {
		t.Errorf("the starter's environment reached the worker: %s", got)
	}
	if got := g.mustGet("/write"); !strings.Contains(got, "operation not permitted") {
		t.Errorf("writing a file: %s", got)
	}
	if got := descriptors(t, pid); !slices.Contains(got, "3 socket") || len(got) > 8 {
		t.Errorf("worker's descriptors: %q", got)
	}
}

func namespace(t *testing.T, pid int, name string) string {
	t.Helper()
	id, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func readProc(t *testing.T, pid int, name string) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// descriptors lists the open descriptors of pid, such as "3 socket".
func descriptors(t *testing.T, pid int) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range list {
		target, _ := os.Readlink(filepath.Join(dir, e.Name()))
		target, _, _ = strings.Cut(target, ":[")
		open = append(open, e.Name()+" "+target)
	}
	return open
}

// TestUnshareSysVSwitch checks that with disable_unshare_sysv the worker is in
// the IPC namespace of the parent.
func TestUnshareSysVSwitch(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{DeathTests: true, Service: identityOf("nobody", "nogroup", ""),
		Switches: ipc.Switches{DisableUnshareSysV: true, DisableUnshareFiles: true}})
	if a, b := namespace(t, g.workerPID(), "ipc"), namespace(t, g.cmd.Process.Pid, "ipc"); a != b {
		t.Errorf("IPC namespaces differ: %s, %s", a, b)
	}
}

// TestUnprivilegedStart checks that a gateway serves requests even if it was
// started without root. The gateway must log once which parts of the
// confinement are missing.
func TestUnprivilegedStart(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{DeathTests: true})
	pid := g.workerPID()
	for name, want := range map[string]string{"CapEff": "0000000000000000", "NoNewPrivs": "1"} {
		if got := status(t, pid, name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	for _, name := range []string{"Uid", "Gid", "Groups"} {
		if a, b := status(t, pid, name), status(t, g.cmd.Process.Pid, name); a != b {
			t.Errorf("worker's %s is %s, parent's %s", name, a, b)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var unavailable []any
	for _, r := range g.records {
		if l, ok := r["unavailable"]; ok {
			unavailable = append(unavailable, l)
		}
	}
	if len(unavailable) > 1 || len(unavailable) == 0 && plainUser(t) != nil { // plainUser has a supplementary group, and a gateway without root can't drop it
		t.Errorf("what is left out was logged %d times: %v", len(unavailable), unavailable)
	}
}

// TestRootWorkerByWish checks that workers may run as root if the identity
// check is switched off. Even then, a worker must have no capabilities.
func TestRootWorkerByWish(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{DeathTests: true, Switches: ipc.Switches{DisableUserCheck: true}})
	pid := g.workerPID()
	got := []string{status(t, pid, "Uid"), status(t, pid, "CapEff"), status(t, pid, "CapBnd"), status(t, pid, "NoNewPrivs")}
	if diff := cmp.Diff([]string{"0 0 0 0", "0000000000000000", "0000000000000000", "1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStartsFrom0700 checks that the parent can start a program from a
// directory that the new process's user can't enter. The program's mode, which
// depends on the umask of the build, must make no difference.
func TestStartsFrom0700(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, mode := range []os.FileMode{0o755, 0o711, 0o700} {
		t.Run(mode.String(), func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			installed, err := install(home, mode)
			must(t, err)
			program := filepath.Join(home, spawn.WorkerName)
			g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", ""), Binary: installed})
			if got := status(t, g.workerPID(), "Name"); got != "schedrestd-work" {
				t.Errorf("the process is called %q", got)
			}
			// A worker that can read its program is dumpable when it starts.
			info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", g.workerPID()))
			if must(t, err); info.Mode() != unreadable {
				t.Errorf("the worker's program has mode %v", info.Mode())
			}
			// The parent executes the file that it has opened, even if another
			// file has been put in its place.
			if err := os.Rename(program, program+".old"); err != nil {
				t.Fatal(err)
			}
			if err := programtest.Write(program, []byte("#!/bin/false"), 0o755); err != nil {
				t.Fatal(err)
			}
			old := g.workerPID()
			syscall.Kill(old, syscall.SIGKILL)
			g.await("worker ready", func(r map[string]any) bool { return r["worker"] == firstWorker+2 })
			g.mustGet("/pid")
		})
	}
}

// TestStartIsRefused checks that the gateway does not start if its identity
// must not serve, if the worker's program is missing or must not be executed,
// or if an address can't be used.
func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	needRoot(t)
	open := func(path string) {
		must(t, programtest.Copy(binary, path, 0o711))
		must(t, os.Chmod(filepath.Dir(path), 0o777))
	}
	ownedByWorker := func(path string) {
		must(t, programtest.Copy(binary, path, 0o755))
		must(t, os.Chown(path, 65534, 65534))
	}
	junk := func(path string) { must(t, programtest.Write(path, []byte("\x7fELF"), 0o711)) }
	tests := []struct {
		name       string
		as         user
		config     testConfig
		want, hint string
		worker     func(path string) // puts a program at path, or leaves path empty; nil: the proper program stays there
	}{
		{"root without -u", nil, testConfig{}, "would serve as root", "-u", nil},
		{"-u root", nil, testConfig{Service: identityOf("root", "", "")}, "would serve as root", "-u", nil},
		{"-u 0", nil, testConfig{Service: identityOf("0", "nogroup", "")}, "would serve as root", "-u", nil},
		{"-g root", nil, testConfig{Service: identityOf("nobody", "root", "")}, "group 0, which is a group of root", "-g", nil},
		{"SchedUser", nil, testConfig{Service: identityOf("nobody", "", "nobody")}, "would serve as SchedUser nobody", "-u", nil},
		{"SchedUser's group", nil, testConfig{Service: identityOf("31234", "daemon", "daemon")}, "group of SchedUser", "-g", nil},
		{"-u without root", plainUser(t), testConfig{Service: identityOf("nobody", "", "")}, "needs root (", "root", nil},
		{"no program", nil, testConfig{Service: identityOf("nobody", "", "")}, "no such file", "the directory of schedrestd", remove},
		{"program in an open directory", nil, testConfig{Service: identityOf("nobody", "", "")}, "writable by every user", "chmod o-w", open},
		{"program of the one who serves", nil, testConfig{Service: identityOf("nobody", "", "")}, "which serves requests", "chown", ownedByWorker},
		{"program of another machine", nil, testConfig{Service: identityOf("nobody", "", "")}, "exec format error", "schedrestd-worker", junk},
		{"no directory of the socket", nil, testConfig{Service: identityOf("nobody", "", ""), Listen: listens("unix:/nosuch/d/s")}, "socket /nosuch/d/s", "install -d -o 0 /nosuch/d", nil},
		{"port in use", nil, testConfig{Service: identityOf("nobody", "", ""), Listen: listens("127.0.0.1:0", usedAddress(t))}, "address already in use", "another program", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.worker != nil {
				tt.config.Binary = replace(t, ipc.Worker, tt.worker)
			}
			text, hint := launch(t, tt.as, tt.config).failure()
			if !strings.Contains(text, tt.want) || !strings.Contains(hint, tt.hint) {
				t.Errorf("error %q, hint %q; want %q, %q", text, hint, tt.want, tt.hint)
			}
		})
	}
}

// TestWorkerRefuses checks that the gateway does not start if a worker finds
// unexpected process attributes, has no handler, hangs or crashes. The gateway
// must report the reason.
func TestWorkerRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		part  string
		limit time.Duration
		want  string
	}{
		{"has an extra descriptor", patience, `descriptors is`},
		{"can't build its handlers", patience, `no\x1bhandlers`},
		{"sends nothing", hangLimit, "not ready within"},
		{"crash", patience, "exited before it was ready"},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {tt.part}}, StartLimit: tt.limit})
			text, _ := g.failure()
			if !strings.Contains(text, tt.want) {
				t.Errorf("error %q, want %q", text, tt.want)
			}
			if tt.part == "crash" {
				g.await("worker: panic: no worker here", nil)
			}
		})
	}
}

// TestSignalDuringStart checks that a signal stops a gateway that is still
// waiting for a hanging worker to become ready.
func TestSignalDuringStart(t *testing.T) {
	t.Parallel()
	g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"sends nothing"}}, StartLimit: time.Hour})
	g.await("starting workers", nil)
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.await("stopped before it served", nil)
	if status := g.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// usedAddress returns an address that is already in use.
func usedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
