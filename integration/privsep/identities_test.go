package privsep

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"schedrestd/gateway/dispatcher"
	programs "schedrestd/privsep/program"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/demo/thread"
	"schedrestd/gateway/plan"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// serveBecomeUser starts a gateway that serves each user with their own
// identity, and returns its socket.
func serveBecomeUser(t *testing.T, c testConfig) (*gateway, string) {
	t.Helper()
	needRoot(t)
	path := sharedDir(t) + "/s"
	c.Listen = listens("unix:" + path)
	c.Switches.BecomeUser = true
	c.Argv = argv(c.Argv).or(argv{ipc.Resolver: {"resolves any name"}})
	c.Setup.Local = true
	return serve(t, nil, c), path
}

// accountsOnly configures a gateway that rejects uids that belong to no user,
// as a real gateway does.
var accountsOnly = testConfig{Argv: argv{ipc.Resolver: {"good"}}}

// ask sends one request on c, and returns the status and the body of the
// answer.
func ask(c net.Conn, path string) (int, string, error) {
	c.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		return 0, "", err
	}
	return answer(c)
}

// answer reads one answer.
func answer(c net.Conn) (int, string, error) {
	r, err := http.ReadResponse(newReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, string(body), err
}

// askAs connects as a user and sends one request. It returns the connection and
// the answer.
func askAs(t *testing.T, socket string, uid, gid int, path string) (net.Conn, int, string) {
	t.Helper()
	c, err := thread.DialAs(uint32(uid), uint32(gid), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	status, body, err := ask(c, path)
	if err != nil {
		t.Fatalf("uid %d: %v", uid, err)
	}
	return c, status, body
}

// TestEachUserHisProcess checks that connections share a process only if their
// users have the same uid and gid. The worker must have the ids of its user,
// and no capabilities.
func TestEachUserHisProcess(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{DeathTests: true})
	_, _, body := askAs(t, socket, 31001, 31101, "/pid")
	one := pidOf(t, body)
	_, _, body = askAs(t, socket, 31002, 31102, "/pid")
	two := pidOf(t, body)
	_, _, body = askAs(t, socket, 31001, 31103, "/pid") // the gid belongs to the identity
	three := pidOf(t, body)
	if one == two || one == three || two == three {
		t.Fatalf("users share a process: %d, %d, %d", one, two, three)
	}
	_, _, body = askAs(t, socket, 31001, 31101, "/peer")
	var p auth.Peer
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.UID != 31001 || p.GID != 31101 || !p.Verified {
		t.Errorf("peer: %+v, %v", p, err)
	}
	if _, _, body = askAs(t, socket, 31001, 31101, "/pid"); pidOf(t, body) != one {
		t.Error("the worker is not used again")
	}
	for pid, ids := range map[int][2]string{one: {"31001", "31101"}, two: {"31002", "31102"}, three: {"31001", "31103"}} {
		four := func(id string) string { return strings.Join([]string{id, id, id, id}, " ") }
		for name, want := range map[string]string{"Uid": four(ids[0]), "Gid": four(ids[1]), "Groups": "",
			"CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1"} {
			if got := status(t, pid, name); got != want {
				t.Errorf("%s of worker %d is %q, want %q", name, pid, got, want)
			}
		}
	}
	for _, name := range []string{"CapPrm", "CapEff"} { // SETUID, SETGID, KILL: as with -u
		if got := status(t, g.cmd.Process.Pid, name); got != "00000000000000e0" {
			t.Errorf("parent's %s is %s", name, got)
		}
	}
	if n := len(children(t, g.cmd.Process.Pid)); n != 3+refusalWorkers {
		t.Errorf("%d processes for three identities", n)
	}
}

// refusalWorkers is the number of workers that do nothing but answer refused
// connections. Every other worker serves one user or one connection.
const refusalWorkers = 1

// children returns the pids of the running workers and keepers that the process
// pid has started.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	return childrenWith(t, pid, func(line string) bool { // a process that is being started has another one
		return strings.HasPrefix(line, spawn.WorkerName+"\x00") && !strings.HasSuffix(line, ipc.NamespaceInitMode+"\x00") ||
			strings.HasPrefix(line, programs.Name(ipc.Keeper)+"\x00")
	})
}

// childrenWith returns the pids of those children of a process whose command
// lines satisfy match, except exited children. In a command line a NUL follows
// each argument.
func childrenWith(t *testing.T, pid int, match func(line string) bool) (list []int) {
	t.Helper()
	all, err := process.All()
	must(t, err)
	for _, st := range all {
		if st.Parent != pid || st.State == 'Z' {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", st.PID))
		if match(string(line)) {
			list = append(list, st.PID)
		}
	}
	return list
}

// TestManyUsers connects ten times as each of a hundred users. This exceeds
// both the limit on identities and the limit on connections. Each connection
// must be answered by its user's worker, and the parent must use little memory.
func TestManyUsers(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{})
	var wg sync.WaitGroup
	for user := range 100 {
		for range 10 {
			wg.Go(func() {
				// A busy machine starts workers slowly. Connections without a
				// slot are answered with 503 or closed, and their clients try
				// again.
				var (
					status int
					body   string
					err    error
				)
				for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					status, body, err = askOnce(uint32(32000+user), socket)
					if err == nil && status != http.StatusServiceUnavailable {
						break
					}
				}
				if err != nil || status != http.StatusOK || !strings.Contains(body, fmt.Sprintf(`"UID":%d,`, 32000+user)) {
					t.Errorf("user %d: %d %s %v", user, status, body, err)
				}
			})
		}
	}
	wg.Wait()
	if n := len(children(t, g.cmd.Process.Pid)); n > plan.DefaultIdentities+refusalWorkers {
		t.Errorf("%d workers", n)
	}
	// The real parent must use less than 20 MB in total. About 7 MB of that are
	// pages of the program file. The test binary has many more such pages,
	// because it also contains a client and a server. So the test checks only
	// RssAnon, which excludes them.
	text := status(t, g.cmd.Process.Pid, "RssAnon")
	kib, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil || kib > 12<<10 {
		t.Errorf("the parent takes %s", text)
	}
}

// askOnce connects as uid, asks which user the worker sees, and closes the
// connection.
func askOnce(uid uint32, socket string) (status int, body string, err error) {
	c, err := thread.DialAs(uid, 33000, socket)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	return ask(c, "/peer")
}

// TestLeastRecentlyUsedGoes checks that the gateway makes room for a new worker
// by ending the worker whose user connected least recently. It must not end a
// worker with a connection in use.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	t.Parallel()
	// The busy connection leaves one slot free. So the gateway can serve the
	// next user only after it has noticed that the previous user's connection
	// is closed.
	g, socket := serveBecomeUser(t, testConfig{Identities: 3, Connections: 2})
	busy, _, body := askAs(t, socket, 31001, 31101, "/pid") // this user connects first, but will have a request in progress
	one := pidOf(t, body)
	fmt.Fprintf(busy, "GET /wait?ms=3600000 HTTP/1.1\r\nHost: x\r\n\r\n")
	g.await("worker: a request waits", nil)
	idlePIDs := []int{0, 0}
	for i := range idlePIDs {
		c, _, body := askAs(t, socket, 31002+i, 31101, "/pid")
		idlePIDs[i] = pidOf(t, body)
		c.Close()
	}
	c, _, _ := askAs(t, socket, 31002, 31101, "/pid") // so that 31003 is the user who connected least recently
	c.Close()
	askAs(t, socket, 31004, 31101, "/pid")
	if list := children(t, g.cmd.Process.Pid); len(list) != 3+refusalWorkers || !slices.Contains(list, one) || !slices.Contains(list, idlePIDs[0]) || slices.Contains(list, idlePIDs[1]) {
		t.Errorf("workers %v; %d is busy, %d was used last, %d before it", list, one, idlePIDs[0], idlePIDs[1])
	}
}

// TestIdleIsReclaimed checks a gateway with the maximum number of workers, each with
// a connection. When another user connects, the gateway must close an idle
// connection. It must not close a connection in use.
func TestIdleIsReclaimed(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{Identities: 3})
	busy, _, body := askAs(t, socket, 31001, 31101, "/pid")
	one := pidOf(t, body)
	fmt.Fprintf(busy, "GET /wait?ms=3600000 HTTP/1.1\r\nHost: x\r\n\r\n")
	g.await("worker: a request waits", nil)
	for i := range 4 { // there is room for two of them
		if _, status, body := askAs(t, socket, 31002+i, 31101, "/pid"); status != http.StatusOK {
			t.Errorf("user %d: %d %s", 31002+i, status, body)
		}
	}
	if list := children(t, g.cmd.Process.Pid); len(list) != 3+refusalWorkers || !slices.Contains(list, one) {
		t.Errorf("workers %v, %d is busy", list, one)
	}
}

// TestRest checks that a worker without a connection exits after a while, and
// that a worker with a connection does not.
func TestRest(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{IdleLimit: 300 * time.Millisecond})}})
	open, _, body := askAs(t, socket, 31001, 31101, "/pid")
	stays := pidOf(t, body)
	c, _, body := askAs(t, socket, 31002, 31101, "/pid")
	goes := pidOf(t, body)
	c.Close()
	g.await("worker exited", func(r map[string]any) bool { return r["pid"] == float64(goes) })
	if _, body, err := ask(open, "/pid"); err != nil || pidOf(t, body) != stays {
		t.Errorf("the one with a connection: %s %v", body, err)
	}
	if _, _, body = askAs(t, socket, 31002, 31101, "/pid"); pidOf(t, body) == goes {
		t.Error("the same process again")
	}
}

// TestStrangers checks that no worker serves root, SchedUser, a client with gid
// 0, or a client whose uid or gid is 65534. The kernel reports 65534 for ids
// that are unknown in this user namespace. With disable_user_check, root and
// SchedUser must be served.
func TestStrangers(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{Service: identityOf("", "", "31050")})
	for _, tt := range []struct {
		uid, gid, want int
	}{
		{31001, 31101, 200}, {0, 31101, 403}, {31050, 31101, 403}, {31001, 0, 403}, {65534, 31101, 403}, {31001, 65534, 403},
	} {
		if _, status, body := askAs(t, socket, tt.uid, tt.gid, "/pid"); status != tt.want {
			t.Errorf("uid %d, gid %d: %d %s", tt.uid, tt.gid, status, body)
		}
	}
	if n := len(children(t, g.cmd.Process.Pid)); n != 1+refusalWorkers {
		t.Errorf("%d workers", n)
	}
	_, socket = serveBecomeUser(t, testConfig{Service: identityOf("", "", "31050"), Switches: ipc.Switches{DisableUserCheck: true}})
	for _, uid := range []int{0, 31050} {
		if _, status, body := askAs(t, socket, uid, 31101, "/pid"); status != http.StatusOK {
			t.Errorf("uid %d without the check: %d %s", uid, status, body)
		}
	}
}

// TestSubordinate checks that a uid that belongs to no user gets no worker. If
// such uids got workers, users could exceed their share of the workers by
// connecting with their subordinate uids.
func TestSubordinate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]testConfig{"a worker each": accountsOnly, "a worker for each connection": {Argv: accountsOnly.Argv, Switches: ipc.Switches{WorkerPerConnection: true}}} {
		t.Run(name, func(t *testing.T) {
			g, socket := serveBecomeUser(t, c)
			for range 2 { // the second time, the gateway already knows the uid
				for uid, want := range map[int]int{100_000: 403, 31001: 403, 2: 200} { // uid 2 is bin on Debian, and daemon on Red Hat
					if _, status, body := askAs(t, socket, uid, 31101, "/pid"); status != want {
						t.Errorf("uid %d: %d %s", uid, status, body)
					}
				}
			}
			g.await("connection refused", func(r map[string]any) bool { return r["because"] == "its uid belongs to no user" })
		})
	}
}

// TestManyGroups checks a user who connects with several gids, each of which
// needs its own worker. The user must get only a share of the workers. All
// other users must be served by the other workers.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	const ownShare = 4 // one user may have at most a quarter of the workers
	_, socket := serveBecomeUser(t, testConfig{Identities: 2 * ownShare, Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{WaitLimit: patience})}})
	for gid := range 2 {
		c, err := thread.DialAs(31001, uint32(31101+gid), socket)
		must(t, err)
		defer c.Close()
		fmt.Fprintf(c, "GET /wait?ms=3600000 HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	one, err := thread.DialAs(31001, 31103, socket)
	must(t, err)
	defer one.Close()
	fmt.Fprintf(one, "GET /pid HTTP/1.1\r\nHost: x\r\n\r\n")
	for i := range 3 * ownShare {
		if _, status, body := askAs(t, socket, 31002+i, 31101, "/pid"); status != http.StatusOK {
			t.Errorf("user %d: %d %s", 31002+i, status, body)
		}
	}
	stillOpen(t, one, "a third room of one user")
}

// TestStubbornWorker checks a captured worker that reports its connection as
// idle, but does not close it when asked. The dispatcher must then ask the
// workers of other users to close idle connections. If no other user has a
// worker, the dispatcher must end the captured worker.
func TestStubbornWorker(t *testing.T) {
	t.Parallel()
	for rooms := range 2 {
		t.Run(fmt.Sprint(rooms, " others"), func(t *testing.T) {
			g, socket := serveBecomeUser(t, testConfig{Argv: argv{ipc.Worker: {"one keeps its idle connection"}}, Identities: 1 + rooms, Silence: time.Hour})
			captured, err := thread.DialAs(31001, 31101, socket)
			must(t, err)
			defer captured.Close()
			g.await("worker ready", func(r map[string]any) bool { return r["uid"] == 31001.0 })
			for i := range 1 + rooms {
				if _, status, body := askAs(t, socket, 31002+i, 31101, "/pid"); status != http.StatusOK {
					t.Errorf("the next one: %d %s", status, body)
				}
			}
			if rooms == 0 {
				g.await("worker terminated", func(r map[string]any) bool { return r["uid"] == 31001.0 })
			} else if g.count("worker terminated") > 0 {
				t.Error("it was ended needlessly: another one was idle")
			}
		})
	}
}

// TestProcessLimit checks that a user who has reached their limit on processes
// gets 503, and that other users are served.
func TestProcessLimit(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{})
	for range 40 {
		cmd := exec.Command("/bin/sleep", "3600")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 31001, Gid: 31101, NoSetGroups: true}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	limit := unix.Rlimit{Cur: 35, Max: 35}
	if err := unix.Prlimit(g.cmd.Process.Pid, unix.RLIMIT_NPROC, &limit, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, status, body := askAs(t, socket, 31001, 31101, "/pid"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"retryable":true`) {
			t.Errorf("the one over the limit: %d %s", status, body)
		}
		if _, status, body := askAs(t, socket, 31002, 31101, "/pid"); status != http.StatusOK {
			t.Errorf("another one: %d %s", status, body)
		}
	}
}

// TestKilledByItsUser checks that users who kill their worker harm only
// themselves.
func TestKilledByItsUser(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{})
	_, _, body := askAs(t, socket, 31002, 31101, "/pid")
	otherPID := pidOf(t, body)
	for n := range 3 {
		_, _, body := askAs(t, socket, 31001, 31101, "/pid")
		pid := pidOf(t, body)
		syscall.Kill(pid, syscall.SIGKILL)
		r := g.await("worker exited unexpectedly", func(r map[string]any) bool { return r["pid"] == float64(pid) })
		if r["workers_lost_so_far"] != float64(n+1) {
			t.Errorf("death %d is logged as %v", n+1, r)
		}
	}
	if _, _, body := askAs(t, socket, 31002, 31101, "/pid"); pidOf(t, body) != otherPID {
		t.Error("another user's worker is another one")
	}
}

// TestStoppedByItsUser checks that users who stop their worker delay only their
// own answers, and hold no more than their share of the slots. Meanwhile
// another user must get answers. When the stopped worker continues, it must
// send the delayed answers.
func TestStoppedByItsUser(t *testing.T) {
	t.Parallel()
	_, socket := serveBecomeUser(t, testConfig{Connections: 8}) // one user can have 4 of them
	_, _, body := askAs(t, socket, 31002, 31101, "/pid")
	otherPID := pidOf(t, body)
	_, _, body = askAs(t, socket, 31001, 31101, "/pid")
	pid := pidOf(t, body)
	kill := func(signal string) {
		cmd := exec.Command("/bin/kill", signal, strconv.Itoa(pid))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 31001, Gid: 31101, NoSetGroups: true}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", signal, err, out)
		}
	}
	kill("-STOP")
	var waiting []net.Conn
	for range 8 {
		c, err := thread.DialAs(31001, 31101, socket)
		must(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		_, err = io.WriteString(c, "GET /pid HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		must(t, err)
		waiting = append(waiting, c)
	}
	for range 50 {
		c, _, body := askAs(t, socket, 31002, 31101, "/pid")
		if pidOf(t, body) != otherPID {
			t.Error("another user's worker is another one")
		}
		c.Close()
	}
	if state := status(t, pid, "State"); !strings.HasPrefix(state, "T") {
		t.Fatalf("the worker was not stopped all the while: %s", state)
	}
	kill("-CONT")
	served := 0
	for i, c := range waiting {
		status, body, err := answer(c)
		switch {
		case err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable: // some of these connections could not wait
			t.Errorf("the stopped user's connection %d: %d %q %v", i, status, body, err)
		case status == http.StatusOK && pidOf(t, body) == pid:
			served++
		}
	}
	if served < 3 {
		t.Errorf("%d of the stopped user's connections are served", served)
	}
}

// TestBecomeUserIsRefused checks that the gateway does not start with
// become_user if it was started without root, or if another setting is
// incompatible. The error must give the reason.
func TestBecomeUserIsRefused(t *testing.T) {
	t.Parallel()
	socket := "unix:" + sharedDir(t) + "/s"
	local := ipc.Setup{Local: true}
	tests := []struct {
		name       string
		as         user
		config     testConfig
		want, hint string
	}{
		{"no root", &syscall.Credential{Uid: 31234, Gid: 31235}, testConfig{Setup: local}, "needs root", ""},
		{"-u", nil, testConfig{Setup: local, Service: identityOf("nobody", "", "")}, "neither -u", ""},
		{"-g", nil, testConfig{Setup: local, Service: identityOf("", "nogroup", "")}, "neither -u nor -g", ""},
		{"tokens", nil, testConfig{Setup: ipc.Setup{Local: true, JWT: true}}, "rest_auth/local alone", ""},
		{"no local", nil, testConfig{}, "rest_auth/local alone", ""},
		{"TCP", nil, testConfig{Setup: local, Listen: listens(socket, "127.0.0.1:0")}, "UNIX sockets", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			needRoot(t)
			tt.config.Switches.BecomeUser = true
			if tt.config.Listen == nil {
				tt.config.Listen = listens(socket)
			}
			text, hint := launch(t, tt.as, tt.config).failure()
			if !strings.Contains(text, "become_user") || !strings.Contains(text, tt.want) || !strings.Contains(hint, tt.hint) {
				t.Errorf("error %q, hint %q; want %q, %q", text, hint, tt.want, tt.hint)
			}
		})
	}
}

// TestWorkerForEachConnection checks that each connection gets its own process.
// This process answers all requests on the connection, and exits when the
// connection ends. With become_user it runs as the client's user.
func TestWorkerForEachConnection(t *testing.T) {
	t.Parallel()
	var seen []int
	visit := func(g *gateway, dial func() (net.Conn, error)) {
		var list []net.Conn
		for range 3 {
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			list = append(list, c)
			var pids []string
			for range 2 {
				status, body, err := ask(c, "/pid")
				if err != nil || status != http.StatusOK {
					t.Fatalf("%d %s %v", status, body, err)
				}
				pids = append(pids, body)
			}
			pid := pidOf(t, pids[0])
			if pids[0] != pids[1] || slices.Contains(seen, pid) {
				t.Errorf("answered by %v after %v", pids, seen)
			}
			seen = append(seen, pid)
		}
		for _, c := range list {
			c.Close()
		}
		await(t, "workers end with their connections", func() bool { return len(children(t, g.cmd.Process.Pid)) == refusalWorkers })
	}
	g := serve(t, plainUser(t), testConfig{Switches: ipc.Switches{WorkerPerConnection: true}})
	visit(g, func() (net.Conn, error) { return net.Dial("tcp", g.addr) })
	t.Run("become_user", func(t *testing.T) {
		g, socket := serveBecomeUser(t, testConfig{Switches: ipc.Switches{WorkerPerConnection: true}})
		visit(g, func() (net.Conn, error) { return thread.DialAs(31001, 31101, socket) })
		c, _, body := askAs(t, socket, 31002, 31102, "/pid")
		if got := status(t, pidOf(t, body), "Uid"); got != "31002 31002 31002 31002" {
			t.Errorf("its uid is %s", got)
		}
		c.Close()
	})
}
