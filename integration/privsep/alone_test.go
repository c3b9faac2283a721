package privsep

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/privsep/spawn"
)

// TestNamespacesAlone checks that the namespaces alone isolate a worker. It
// starts an intruder in the worker's namespaces, as the worker's user. The
// intruder has neither Landlock nor the system call filter, because these would
// hide a fault in the namespaces. It must see no other process, and must reach
// no UNIX socket outside the namespaces.
func TestNamespacesAlone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	owner := &syscall.Credential{Uid: 31277, Gid: 31277}
	for name, as := range map[string]user{"as root": nil, "without root": owner} {
		t.Run(name, func(t *testing.T) {
			c := testConfig{Service: identityOf("31277", "31277", "")}
			if as != nil {
				c = testConfig{}
			}
			g := serve(t, as, c)
			on := fmt.Sprint(g.await("confinement of the workers", nil)["on"])
			if !strings.Contains(on, "root of their own") || !strings.Contains(on, "PID namespace") {
				t.Skipf("this start has no such namespaces: %s", on)
			}
			dir := sharedDir(t)
			must(t, os.Chmod(dir, 0o755))
			socket := filepath.Join(dir, "s")
			l, err := net.Listen("unix", socket)
			must(t, err)
			defer l.Close()
			must(t, os.Chmod(socket, 0o777))
			outside := exec.Command("/bin/sleep", "1000") // has the intruder's uid and is dumpable, so that the intruder may read it
			outside.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGKILL}
			must(t, thread.Start(outside))
			defer func() { _ = outside.Process.Kill(); _ = outside.Wait() }()
			for place, output := range map[string]string{
				"beside it": intrude(t, g.workerPID(), []string{"ipc", "net", "pid", "mnt"}, owner, socket),
				"outside":   intrude(t, outside.Process.Pid, nil, owner, socket), // outside the namespaces the intruder succeeds
			} {
				alone := place == "beside it"
				// The kernel lets the user who created a user namespace trace
				// the processes inside it. If the gateway was started without
				// root, the intruder runs as that user and sees the worker,
				// which is process 1 of the PID namespace.
				if got := strings.Contains(output, "sees []\n") || as != nil && strings.Contains(output, "sees [1]\n"); got != alone {
					t.Errorf("%s: %s", place, output)
				}
				if got := !strings.Contains(output, "connected to"); got != alone {
					t.Errorf("%s: %s", place, output)
				}
			}
		})
	}
}

// intrude starts an intruder in the given namespaces of process pid, and
// returns the intruder's output.
func intrude(t *testing.T, pid int, namespaces []string, as user, socket string) string {
	t.Helper()
	program, err := os.Open(binary)
	must(t, err)
	defer program.Close()
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	var child int
	must(t, thread.OnNewThread(func() error {
		defer w.Close()
		err := unix.Unshare(unix.CLONE_FS)
		var open []int
		for _, name := range namespaces {
			fd, failed := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if failed != nil {
				err = failed
			}
			open = append(open, fd)
		}
		for _, fd := range open {
			if err == nil {
				err = unix.Setns(fd, 0)
			}
			unix.Close(fd)
		}
		if err == nil {
			fd, _ := spawn.DupAbove(program, []uintptr{0, 1, 2})
			null := uintptr(fd)
			child, err = syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{spawn.WorkerName, "intruder", socket},
				&syscall.ProcAttr{Dir: "/", Files: []uintptr{null, w.Fd(), w.Fd()}, Sys: &syscall.SysProcAttr{Credential: as}})
			unix.Close(fd)
		}
		return err
	}))
	output := new(strings.Builder)
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		output.Write(buf[:n])
		if err != nil {
			var end syscall.WaitStatus
			_, err = syscall.Wait4(child, &end, 0, nil)
			return fmt.Sprint(output, "exit ", end, " ", err)
		}
	}
}

// playIntruder prints the processes that it finds in /proc. It also tries to
// connect to the socket through the root directory of each process, in
// /proc/PID/root.
func playIntruder(socket string) int {
	list, err := os.ReadDir("/proc")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var others []string
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			others = append(others, e.Name())
		}
	}
	fmt.Println("sees", others)
	for pid := range 40_000 { // also hidden processes: an attacker can guess their pids
		others = append(others, strconv.Itoa(pid))
	}
	slices.Sort(others)
	for _, pid := range append(slices.Compact(others), "self") {
		path := "/proc/" + pid + "/root" + socket
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			fmt.Println("connected to", path)
			break
		}
	}
	return 0
}
