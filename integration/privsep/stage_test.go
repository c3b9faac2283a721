package privsep

import (
	numbers "encoding/binary"
	"net/http"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/sysctl"
	"schedrestd/bundled/demo/thread"
	"schedrestd/internal/programtest"
	"schedrestd/ipc"
)

// execBlocker makes the kernel delay the execution of one file. A test can use
// it to pause a new process just before the process executes its program. At
// this point, a user could stop the process.
type execBlocker struct {
	t  *testing.T
	fd int
}

func newExecBlocker(t *testing.T, path string) *execBlocker {
	t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_EXEC_PERM, unix.AT_FDCWD, path)
	}
	if err != nil {
		t.Skipf("executions can't be held up here: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) }) // a delayed execution continues
	return &execBlocker{t, fd}
}

// awaitExec waits until the kernel delays an execution. It returns a function
// that lets this execution continue.
func (g *execBlocker) awaitExec() (release func()) {
	g.t.Helper()
	poll := []unix.PollFd{{Fd: int32(g.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, int(patience.Milliseconds())); n != 1 {
		g.t.Fatalf("nothing is executed: %v", err)
	}
	var event [unix.FAN_EVENT_METADATA_LEN]byte
	if _, err := unix.Read(g.fd, event[:]); err != nil {
		g.t.Fatal(err)
	}
	file := numbers.NativeEndian.Uint32(event[16:])
	unix.Close(int(file))
	return func() {
		answer := numbers.NativeEndian.AppendUint32(nil, file)
		if _, err := unix.Write(g.fd, numbers.NativeEndian.AppendUint32(answer, unix.FAN_ALLOW)); err != nil {
			g.t.Error(err)
		}
	}
}

// TestStuckStartHoldsUpNobodyElse checks that no other user has to wait if a
// user stops a new worker after the worker has got that user's identity, but
// before it executes its program.
func TestStuckStartHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	needRoot(t)
	var path string
	installed := replace(t, ipc.Worker, func(worker string) {
		path = worker
		must(t, programtest.Copy(binary, path, 0o711))
	})
	_, socket := serveBecomeUser(t, testConfig{Binary: installed})
	_, _, body := askAs(t, socket, 31002, 31101, "/pid")
	otherPID := pidOf(t, body)

	gate := newExecBlocker(t, path)
	c, err := thread.DialAs(31001, 31101, socket)
	must(t, err)
	defer c.Close()
	answered := make(chan int)
	go func() {
		status, _, _ := ask(c, "/pid")
		answered <- status
	}()
	release := gate.awaitExec()
	for range 3 {
		if _, status, body := askAs(t, socket, 31002, 31101, "/pid"); status != http.StatusOK || pidOf(t, body) != otherPID {
			t.Errorf("another user: %d %s", status, body)
		}
	}
	select {
	case status := <-answered:
		t.Errorf("the worker was not held up: %d", status)
	default:
	}
	release()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the user whose worker was held up: %d", status)
	}
}

// TestParentStaysUndumpable checks that the parent is not dumpable after it has
// started a worker. If fs.suid_dumpable is not 0, a process that changes its
// ids becomes dumpable, and so does every process that shares its memory.
func TestParentStaysUndumpable(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, value := range []string{"1", "2"} {
		t.Run(value, func(t *testing.T) {
			sysctl.Set(t, "fs.suid_dumpable", value)
			g, socket := serveBecomeUser(t, testConfig{})
			askAs(t, socket, 31001, 31101, "/pid")
			must(t, g.cmd.Process.Signal(syscall.SIGUSR2))
			if r := g.await("dumpable", nil); r["is"] != 0.0 {
				t.Errorf("the parent is dumpable after a worker's start: %v", r)
			}
		})
	}
}

// TestRootOfContainer checks a gateway that was started by the root of a user
// namespace with 65536 ids. The gateway must give each service an id that
// exists in that namespace.
func TestRootOfContainer(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, contained, testConfig{DeathTests: true, Service: identityOf("nobody", "nogroup", ""), Audit: ipc.Audit{Path: ipc.AuditStderr}})
	g.mustGet("/pid")
}
