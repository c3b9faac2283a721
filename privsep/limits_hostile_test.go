package privsep

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// greed is a captured worker's way to take more than it should; it is told by its name how.
func greed(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.FormValue("n"))
	switch r.FormValue("of") {
	case "threads":
		fmt.Fprint(w, takeThreads(n), " threads")
	}
}

// takeThreads makes n threads, and keeps them. The runtime ends the process when it gets none.
func takeThreads(n int) int {
	var there sync.WaitGroup
	for range n {
		there.Add(1)
		go func() {
			runtime.LockOSThread()
			there.Done()
			select {}
		}()
	}
	there.Wait()
	return n
}

// TestNoThreadLeft: a parent for which the kernel has neither thread nor process serves on, says why it starts no worker, and
// starts it when there is room again.
func TestNoThreadLeft(t *testing.T) {
	g := serve(t, plain(t), Config{})
	parent := g.cmd.Process.Pid
	first := g.workerPID()
	before := limitTasksOf(t, plain(t), parent, 1)
	must(t, syscall.Kill(first, syscall.SIGKILL))
	r := g.await("a worker can't be started", nil)
	if hint := fmt.Sprint(r["hint"]); !strings.Contains(fmt.Sprint(r["error"]), "a limit of processes and threads is reached") || !strings.Contains(hint, "TasksMax=") {
		t.Errorf("it says %v, hint %q", r["error"], hint)
	}
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range 20 {
				g.mustGet("/log?text=x")
			}
		})
	}
	for range 5 {
		must(t, syscall.Kill(parent, syscall.SIGUSR1))
		must(t, syscall.Kill(parent, syscall.SIGHUP))
		time.Sleep(10 * time.Millisecond)
	}
	clients.Wait()
	g.awaitMany("counters", 1)
	limitTasksOf(t, plain(t), parent, before)
	g.await("worker is ready", func(r map[string]any) bool { return r["worker"].(float64) > 2 })
}

// limitTasksOf sets how many processes and threads the user of pid may have when it starts one more, as who runs it. It gives the limit of before.
func limitTasksOf(t *testing.T, as user, pid int, most uint64) (before uint64) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with what it became
		if as != nil {
			unix.RawSyscall(unix.SYS_SETRESGID, uintptr(as.Gid), uintptr(as.Gid), uintptr(as.Gid))
			unix.RawSyscall(unix.SYS_SETRESUID, uintptr(as.Uid), uintptr(as.Uid), uintptr(as.Uid))
		}
		var old unix.Rlimit
		err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &old)
		if err == nil {
			before = old.Cur
			err = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: old.Max}, nil)
		}
		done <- err
	}()
	must(t, <-done)
	return before
}

// TestThreadsOfAWorker: a captured worker gets its own share of threads and no more, and others are served.
func TestThreadsOfAWorker(t *testing.T) {
	const many = 2 * mostOfUser
	t.Run("without root", func(t *testing.T) { threadsOfAWorker(t, plain(t), Config{}, many) })
	t.Run("as root", func(t *testing.T) {
		needRoot(t)
		threadsOfAWorker(t, nil, Config{User: "31298", Group: "31298"}, many)
	})
}

func threadsOfAWorker(t *testing.T, as user, c Config, many int) {
	g := serve(t, as, c)
	pid, client := g.worker()
	defer client.CloseIdleConnections()
	if text, err := get(client, "/greed?of=threads&n="+strconv.Itoa(many)); err == nil {
		t.Fatalf("it got %s", text)
	}
	g.await("worker died", func(r map[string]any) bool { return r["pid"] == float64(pid) })
	g.mustGet("/pid")
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", g.cmd.Process.Pid)); err != nil {
		t.Error(err)
	}
}
