package privsep

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"schedrestd/gateway/dispatcher"
	"schedrestd/internal/limit"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/internal/printable"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	programs "schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
	workerself "schedrestd/security/self"
)

// overuse makes a compromised worker use too much of the resource that the
// request names.
func overuse(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.FormValue("n"))
	switch r.FormValue("of") {
	case "threads":
		fmt.Fprint(w, startThreads(n), " threads")
	case "log":
		line := []byte(strings.Repeat("\xff", printable.MaxLength-8) + "\n")
		for range n {
			_, _ = os.Stderr.Write(line)
		}
	}
}

// playStubborn acts as a compromised worker that answers its clients and Pings,
// but does not exit when asked. The argument can change what the first worker
// does:
//   - With "first reports closed at once" it keeps each connection, but
//     immediately reports with the message ConnectionDone that the connection
//     has ended.
//   - With "first never reports closed" it never sends ConnectionDone.
func playStubborn(part string) int {
	c, err := ipc.Open(ipc.WorkerFD, ipc.Worker, ipc.Managers)
	if err != nil {
		return 9
	}
	for range 2 {
		if _, err := c.Receive(); err != nil {
			return 9
		}
	}
	if c.Send(new(ipc.Ready)) != nil || c.Send(&ipc.KeysResult{OK: true}) != nil {
		return 9
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return 0
		}
		switch msg := m.Message.(type) {
		case *ipc.Ping:
			c.Send(&ipc.Pong{Number: msg.Number})
		case *ipc.Connection:
			c.Send(&work.ConnectionTaken{ID: msg.ID})
			f := os.NewFile(uintptr(m.FDs[0]), "client")
			if part == "does not exit" {
				reply(f)
				f.Close()
			} else {
				go reply(f)
			}
			if !strings.HasSuffix(part, "never reports closed") {
				c.Send(&work.ConnectionDone{ID: msg.ID})
			}
		}
	}
}

// reply answers one request.
func reply(client *os.File) {
	_, _ = client.Read(make([]byte, 4096))
	fmt.Fprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nstubborn")
}

// startThreads starts n threads, which never end. If the kernel refuses a
// thread, Go's runtime ends the process.
func startThreads(n int) int {
	var started sync.WaitGroup
	for range n {
		started.Add(1)
		go func() {
			runtime.LockOSThread()
			started.Done()
			select {}
		}()
	}
	started.Wait()
	return n
}

// TestNoThreadLeft checks a parent and a dispatcher that have reached the
// kernel's limit on processes and threads. They must continue to serve many
// clients with the threads that they have, and the parent must log why it can't
// start a worker. When the limit is raised, it must start one.
func TestNoThreadLeft(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{})
	parent := g.cmd.Process.Pid
	dispatcher := childrenNamed(t, parent, programs.Name(ipc.Dispatcher))[0]
	first := g.workerPID()
	before := limitTasksOf(t, plainUser(t), parent, 1)
	limitTasksOf(t, plainUser(t), dispatcher, 1)
	must(t, syscall.Kill(first, syscall.SIGKILL))
	r := g.await("worker not started", nil)
	if hint := fmt.Sprint(r["hint"]); !strings.Contains(fmt.Sprint(r["error"]), "a limit of processes and threads is reached") || !strings.Contains(hint, "TasksMax=") {
		t.Errorf("%v, hint %q", r["error"], hint)
	}
	threads := func() string { return fmt.Sprint(threadsOf(parent), threadsOf(dispatcher)) }
	count := threads()
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range 50 {
				g.mustGet("/log?text=x")
			}
		})
	}
	for range 50 {
		must(t, syscall.Kill(parent, syscall.SIGUSR1))
		must(t, syscall.Kill(parent, syscall.SIGHUP))
		time.Sleep(10 * time.Millisecond)
	}
	clients.Wait()
	g.awaitMany("counters", 1)
	if now := threads(); now != count {
		t.Errorf("the parent and the dispatcher had %s threads, and have %s", count, now)
	}
	limitTasksOf(t, plainUser(t), parent, before)
	g.await("worker ready", func(r map[string]any) bool { return r["worker"].(float64) > 2 })
}

// threadsOf returns the number of threads of a process, or 0 if it has exited.
func threadsOf(pid int) int {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return len(list)
}

// limitTasksOf sets RLIMIT_NPROC of process pid to limit, and returns the
// previous limit. While its user has at least limit processes and threads, the
// process can't start another one. The caller passes the process's user (as),
// because limitTasksOf sets the limit with that user's ids.
func limitTasksOf(t *testing.T, as user, pid int, limit uint64) (previous uint64) {
	t.Helper()
	must(t, thread.OnNewThread(func() error {
		if as != nil { // the kernel compares the caller's real ids with those of the process
			for call, id := range map[uintptr]uint32{unix.SYS_SETRESGID: as.Gid, unix.SYS_SETRESUID: as.Uid} {
				if _, _, e := unix.RawSyscall(call, uintptr(id), ^uintptr(0), ^uintptr(0)); e != 0 {
					return e
				}
			}
		}
		var old unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &old); err != nil {
			return err
		}
		previous = old.Cur
		return unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit, Max: old.Max}, nil)
	}))
	return previous
}

// TestThreadsOfAWorker checks that a captured worker can't start more threads
// than its share, and that the other workers still serve their clients.
func TestThreadsOfAWorker(t *testing.T) {
	t.Parallel()
	t.Run("without root", func(t *testing.T) { threadsOfAWorker(t, plainUser(t), testConfig{}, spawn.MaxUserTasks) })
	t.Run("as root", func(t *testing.T) {
		needRoot(t)
		c := testConfig{Service: identityOf("31298", "31298", ""), Threads: 2}
		bound := spawn.MaxUserTasks
		if security.KernelSince(6, 14) {
			bound = int(c.Config().PIDs) + workerself.ReservedPIDs
		}
		machine, _ := os.ReadFile("/proc/sys/kernel/pid_max")
		threadsOfAWorker(t, nil, c, bound)
		if after, _ := os.ReadFile("/proc/sys/kernel/pid_max"); string(after) != string(machine) {
			t.Errorf("the machine's bound was %s and is %s", machine, after)
		}
	})
}

func threadsOfAWorker(t *testing.T, as user, c testConfig, bound int) {
	g := serve(t, as, c)
	pid, client := g.worker()
	defer client.CloseIdleConnections()
	counting, highest := make(chan struct{}), make(chan int, 1)
	go func() { // counts the kernel's threads, because Go's own count includes threads that it is about to create
		most := 0
		for {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, count, found := strings.Cut(string(text), "\nThreads:\t")
			if err != nil || !found {
				highest <- most
				return
			}
			count, _, _ = strings.Cut(count, "\n")
			n, _ := strconv.Atoi(count)
			if most == 0 {
				close(counting)
			}
			most = max(most, n, 1)
			time.Sleep(time.Millisecond) // the failing worker writes a trace of all its threads, which takes longer
		}
	}()
	<-counting
	if text, err := get(client, "/greed?of=threads&n="+strconv.Itoa(2*spawn.MaxUserTasks)); err == nil {
		t.Fatalf("it got %s", text)
	}
	g.await("worker exited unexpectedly", func(r map[string]any) bool { return r["pid"] == float64(pid) })
	g.awaitAny(func(r map[string]any) bool {
		return strings.Contains(fmt.Sprint(r["msg"]), "failed to create new OS thread")
	})
	threads := <-highest
	t.Logf("it had %d threads, of at most %d", threads, bound)
	if threads == 0 || threads > bound {
		t.Errorf("it had %d threads, want at most %d", threads, bound)
	}
	g.mustGet("/pid")
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", g.cmd.Process.Pid)); err != nil {
		t.Error(err)
	}
}

// TestVisitEnds checks that the gateway also ends a bad worker in inetd mode:
// one that hangs, or one that does not exit after it has served its client.
// Such a worker could keep the gateway from exiting. The gateway would then
// permanently count against inetd's limit on instances.
func TestVisitEnds(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"does not exit":        "reported that its client is served, and did not exit in time",
		"never reports closed": "its client has gone, and did not exit in time",
		"stopped":              "has not read its channel",
	} {
		t.Run(part, func(t *testing.T) {
			c := testConfig{Argv: argv{ipc.Worker: {part}}, Silence: hangLimit}
			limits := testLimits
			limits.Drain = time.Second
			c.Setup = packed(work.Setup{Limits: limits})
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			must(t, err)
			client, server := os.NewFile(uintptr(pair[0]), "client"), os.NewFile(uintptr(pair[1]), "ours")
			g := launchAt(t, plainUser(t), c, server)
			server.Close()
			if part != "stopped" {
				fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				_, err = client.Read(make([]byte, 9))
				must(t, err)
			}
			if part == "never reports closed" {
				client.Close()
			} else {
				defer client.Close()
			}
			g.wait()
			if text, _ := g.failure(); !strings.Contains(text, want) {
				t.Errorf("%q, want %q", text, want)
			}
		})
	}
}

// TestStaysForOthers checks that a worker that does not exit can't keep another
// user from getting a worker.
func TestStaysForOthers(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{Argv: argv{ipc.Worker: {"does not exit"}}, Identities: 2})
	for user := range 5 {
		if c, status, body := askAs(t, socket, 31001+user, 31101, "/"); status != http.StatusOK {
			t.Errorf("user %d is answered %d: %s", user, status, body)
		} else {
			c.Close()
		}
	}
	g.awaitReason("worker terminated", "was asked to exit")
}

// TestKeepsAll checks a worker that keeps its connections, but reports with the
// message ConnectionDone that they have ended. This worker must not get all
// new connections.
func TestKeepsAll(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(sharedDir(t), "mark")
	if as := plainUser(t); as != nil {
		must(t, os.Chown(filepath.Dir(mark), int(as.Uid), int(as.Gid)))
	}
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"first reports closed at once", mark}}, Workers: 2})
	const clients = 90
	drawn := 0
	for range clients {
		c, err := net.Dial("tcp", g.addr)
		must(t, err)
		defer c.Close()
		_, body, err := ask(c, "/pid")
		must(t, err)
		if body == "stubborn" {
			drawn++
		}
	}
	if drawn > clients*3/4 || drawn < clients/3 {
		t.Errorf("it drew %d of %d clients", drawn, clients)
	}
}

// TestLogWeighed checks that the limit on log lines also covers the total
// length of the lines. A worker that replaces another one must get only the rest
// of that worker's limit.
func TestLogWeighed(t *testing.T) {
	t.Parallel()
	const burst = 1000
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{LogBurst: burst, LogRate: 1})}, Workers: 1})
	start := time.Now()
	for life := range 2 {
		pid := int(g.await("worker ready", func(r map[string]any) bool { return r["worker"] == firstWorker+float64(life) })["pid"].(float64))
		g.mustGet("/greed?of=log&n=1000")
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		g.await("worker: too many log lines", func(r map[string]any) bool { return r["worker_pid"] == float64(pid) })
		g.await("worker exited unexpectedly", func(r map[string]any) bool { return r["pid"] == float64(pid) })
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	lines, bytes := 0, 0
	for _, r := range g.records {
		if text := fmt.Sprint(r["msg"]); strings.HasPrefix(text, "worker: ") {
			lines++
			_, counted, _ := strings.Cut(r["raw"].(string), " ") // the time is not counted
			bytes += len(counted)
		}
	}
	if maxBytes := limit.LogLineSize * (burst + int(time.Since(start).Seconds()) + 1); bytes > maxBytes || bytes < maxBytes/3 {
		t.Errorf("%d lines of %d bytes: at most %d", lines, bytes, maxBytes)
	}
}
