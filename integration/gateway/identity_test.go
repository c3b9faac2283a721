package gateway

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// startAsRoot starts a gateway as root with supplementary groups, as after a
// login.
func startAsRoot(l *harness.Lab, t *testing.T, env []string, args ...string) *harness.Gateway {
	t.Helper()
	p := l.Restd
	p.Args = append([]string{"-f", l.Conf()}, args...)
	p.Credential = &syscall.Credential{Groups: []uint32{0, 4, 7, 44}}
	return l.StartGatewayPart(t, p, env)
}

// processIDs returns the uid, the gid and the supplementary groups of a
// process.
func processIDs(t *testing.T, pid int) string {
	t.Helper()
	s := harness.StatusOf(t, pid)
	return fmt.Sprint(strings.Fields(s["Uid"]), strings.Fields(s["Gid"]), strings.Fields(s["Groups"]))
}

func fourTimes(n uint32) []uint32 { return []uint32{n, n, n, n} }

// TestUserAndGroup checks that workers run as the user that -u names and the
// group that -g names, without supplementary groups. Without -g, they must run
// with the user's own group.
func TestUserAndGroup(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	l := harness.NewDaemons(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-u", u.Name}, fmt.Sprint(fourTimes(u.UID), fourTimes(u.GID), "[]")},
		{[]string{"-u", u.Name, "-g", "61234"}, fmt.Sprint(fourTimes(u.UID), fourTimes(61234), "[]")},
		{[]string{"-u", "61234", "-g", strconv.Itoa(int(u.GID))}, fmt.Sprint(fourTimes(61234), fourTimes(u.GID), "[]")},
	} {
		g := startAsRoot(l, t, nil, append(tt.args, "127.0.0.1:0")...)
		pids := g.Workers()
		if len(pids) == 0 {
			t.Fatal("no worker")
		}
		for _, pid := range pids {
			if got := processIDs(t, pid); strings.ReplaceAll(got, " []", "[]") != strings.ReplaceAll(tt.want, " []", "[]") {
				t.Errorf("%q: a worker has %s, want %s", tt.args, got, tt.want)
			}
		}
	}
}

// TestUserCheck checks that forbidden service users are refused, with a hint,
// and that disable_user_check permits them.
func TestUserCheck(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	var ownConf string // path of a configuration with another SchedUser
	l := harness.NewDaemons(t, func(l *harness.Lab) {
		ownConf = filepath.Join(l.Dir, "etc", "own.conf")
	})
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	changed := regexp.MustCompile(`(?m)^SchedUser=.*$`).ReplaceAllString(string(text), "SchedUser="+u.Name)
	changed = regexp.MustCompile(`(?m)^AuthAltParameters=.*$`).ReplaceAllString(changed, "")
	harness.Must(t, os.WriteFile(ownConf, []byte(changed), 0o644))
	const listen = "127.0.0.1:0"
	gid := strconv.Itoa(int(u.GID))
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"root, nothing said", []string{"-f", l.Conf(), listen}, "would serve as root"},
		{"root by name", []string{"-f", l.Conf(), "-u", "root", listen}, "would serve as root"},
		{"root's group", []string{"-f", l.Conf(), "-u", u.Name, "-g", "root", listen}, "a group of root"},
		{"SchedUser", []string{"-f", ownConf, "-u", u.Name, "-g", "61234", listen}, "would serve as SchedUser"},
		{"SchedUser's group", []string{"-f", ownConf, "-u", "61234", "-g", gid, listen}, "a group of SchedUser"},
		{"no such user", []string{"-f", l.Conf(), "-u", "nobody-has-this-name", listen}, "nobody-has-this-name"},
		{"no such group", []string{"-f", l.Conf(), "-u", u.Name, "-g", "nobody-has-this-name", listen}, "nobody-has-this-name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if log := l.FailsToStart(t, nil, nil, tt.args...); !strings.Contains(log, tt.want) || !strings.Contains(log, "hint: ") {
				t.Errorf("logged:\n%s", log)
			}
		})
	}
	for _, name := range []string{"SCHEDRESTD_SECURITY", "SLURMRESTD_SECURITY"} {
		t.Run(name, func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			g := l.StartGateway(t, []string{name + "=disable_user_check"}, "-f", l.Conf(), address)
			g.CheckServes(address)
			for _, pid := range g.Workers() {
				if s := harness.StatusOf(t, pid); !strings.HasPrefix(s["Uid"], "0\t") || strings.Trim(s["CapEff"], "0") != "" {
					t.Errorf("Uid %s, CapEff %s", s["Uid"], s["CapEff"])
				}
			}
		})
	}
}

// TestUnshare checks that workers have their own IPC namespace, unless
// disable_unshare_sysv is set. They must also have their own table of
// descriptors from the start, unless disable_unshare_files is set.
func TestUnshare(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t)
	for _, tt := range []struct {
		env      []string
		ownIPC   bool     // workers have their own IPC namespace
		unshares []string // what each process unshares for itself
	}{
		{nil, true, []string{"CLONE_FILES", "CLONE_SYSVSEM"}},
		{[]string{"SCHEDRESTD_SECURITY=disable_unshare_files"}, true, []string{"CLONE_SYSVSEM"}},
		{[]string{"SLURMRESTD_SECURITY=disable_unshare_sysv"}, false, []string{"CLONE_FILES"}},
		{[]string{"SCHEDRESTD_SECURITY=disable_unshare_sysv,disable_unshare_files"}, false, nil},
	} {
		t.Run(fmt.Sprint(tt.env), func(t *testing.T) {
			g := l.StartGateway(t, tt.env, "127.0.0.1:0")
			parent, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/ipc", g.PID()))
			harness.Must(t, err)
			for _, pid := range g.Workers() {
				worker, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/ipc", pid))
				harness.Must(t, err)
				if (worker != parent) != tt.ownIPC {
					t.Errorf("worker %s, parent %s", worker, parent)
				}
			}
			strace, err := exec.LookPath("strace")
			if err != nil {
				t.Skip("needs strace, to see what is unshared before a worker's program runs")
			}
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := l.InetdCommand()
			cmd.Args = append([]string{strace, "-f", "--seccomp-bpf", "-qq", "-e", "trace=unshare", "-o", trace, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = strace
			cmd.Env = append(cmd.Env, tt.env...)
			cmd.Stdin = strings.NewReader("GET http://localhost/healthz HTTP/1.1\n\n")
			if out, log, status := harness.RunCommand(t, cmd); status != 0 || !strings.Contains(out, "200 OK") {
				t.Skipf("strace does not work on this machine: exit status %d, %s\n%s", status, out, log)
			}
			text, err := os.ReadFile(trace)
			harness.Must(t, err)
			var got []string
			for _, m := range regexp.MustCompile(`unshare\(([A-Z_|]+)\)`).FindAllStringSubmatch(string(text), -1) {
				if !slices.Contains([]string{"CLONE_NEWIPC", "CLONE_NEWNET", "CLONE_NEWNS"}, m[1]) { // the gateway uses these flags only once, for all processes
					got = append(got, strings.Split(m[1], "|")...)
				}
			}
			slices.Sort(got) // of the worker and of the services
			got = slices.Compact(got)
			if diff := cmp.Diff(tt.unshares, got); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, text)
			}
			if strings.Contains(string(text), "CLONE_NEWIPC") != tt.ownIPC {
				t.Errorf("unshared:\n%s", text)
			}
		})
	}
}

// TestBecomeUser checks become_user with a gateway that listens. A user who
// connects to the UNIX socket must be served only by a process with that user's
// uid and gid. Jobs that are submitted over such a connection must belong to
// that user. Clients with uid 0 or gid 0 must be refused. The test uses uids 1
// to 3, which belong to users on every distribution.
func TestBecomeUser(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	path := filepath.Join(harness.SocketDir(t, l), "s")
	env := []string{"SCHEDRESTD_SECURITY=become_user"}
	g := l.StartGateway(t, env, "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+path)
	l.OwnToken = "" // the kernel identifies the user
	send := func(uid, gid uint32, method, path2, body string) (harness.Answer, error) {
		return l.RequestAs(uid, gid, path, method, path2, body)
	}
	users := []uint32{1, 2, 3}
	var wg sync.WaitGroup
	for _, uid := range users {
		for range 4 {
			wg.Go(func() {
				a, err := send(uid, uid+100, "GET", "/sched/v0.0.43/ping", "")
				if err != nil || a.Status != 200 {
					t.Errorf("uid %d: %v, %d %s", uid, err, a.Status, a.Text)
				}
			})
		}
	}
	wg.Wait()
	var ids []string
	for _, pid := range g.Workers() {
		ids = append(ids, processIDs(t, pid))
	}
	for _, uid := range users {
		want := strings.TrimSuffix(fmt.Sprint(fourTimes(uid), fourTimes(uid+100), "[]"), "[]")
		count := 0
		for _, got := range ids {
			if strings.HasPrefix(got, strings.TrimSpace(want)) && strings.HasSuffix(got, "[]") {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d workers are %s, of %q", count, want, ids)
		}
	}
	a, err := send(1, 20101, "POST", "/sched/v0.0.43/job/submit", l.JobRequest("id -u", map[string]any{"standard_output": "/dev/null"}))
	if err != nil || a.Status != 200 {
		t.Fatalf("submit: %v, %d %s", err, a.Status, a.Text)
	}
	a, err = send(1, 20101, "GET", fmt.Sprintf("/sched/v0.0.43/job/%v", a.Get("job_id")), "")
	if err != nil || a.Get("jobs", 0, "user_id") != 1.0 && a.Get("jobs", 0, "user_id", "number") != 1.0 {
		t.Errorf("the job's user: %v, %v", err, a.Get("jobs", 0, "user_id"))
	}
	for _, ids := range [][2]uint32{{0, 0}, {0, 20101}, {1, 0}} { // refused before they send a request
		c, err := thread.DialAs(ids[0], ids[1], path)
		harness.Must(t, err)
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 403 {
			t.Errorf("%v: %v, %+v", ids, err, resp)
		}
		c.Close()
	}
	for _, tt := range [][]string{
		{"-f", l.Conf(), "-a", "rest_auth/local,rest_auth/jwt", "unix:" + path + "2"},
		{"-f", l.Conf(), "unix:" + path + "2"},
		{"-f", l.Conf(), "-a", "rest_auth/local", "127.0.0.1:0"},
		{"-f", l.Conf(), "-a", "rest_auth/local", "unix:" + path + "2", "127.0.0.1:0"},
	} {
		if log := l.FailsToStart(t, nil, env, tt...); !strings.Contains(log, "become_user") || !strings.Contains(log, "hint: ") {
			t.Errorf("%q printed:\n%s", tt, log)
		}
	}
	ordinary := &syscall.Credential{Uid: 61234, Gid: 61234, Groups: []uint32{}}
	if log := l.FailsToStart(t, ordinary, env, "-f", "/dev/null", "-a", "rest_auth/local", "unix:"+path+"2"); log == "" {
		t.Error("it printed nothing")
	}
}

// TestWorkerPerConnection checks that with worker_per_connection each
// connection has its own worker, which exits when the connection ends.
func TestWorkerPerConnection(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	env := []string{"SCHEDRESTD_SECURITY=worker_per_connection"}
	if os.Geteuid() != 0 {
		env = []string{"SCHEDRESTD_SECURITY=worker_per_connection,disable_user_check"}
	}
	g := l.StartGateway(t, env, address)
	for range 3 {
		first := startSubmission(l, t, address)
		defer first.Close()
		before := g.Workers()
		second := startSubmission(l, t, address)
		after := g.Workers()
		if len(after) != len(before)+1 {
			t.Errorf("%d workers with one connection more than %d", len(after), len(before))
		}
		if a, err := second.finish(); err != nil || a.Status != 200 {
			t.Errorf("%v, %d", err, a.Status)
		}
		second.Close()
		harness.Eventually(t, "its worker has exited", func() bool { return cmp.Equal(g.Workers(), before) })
		if a, err := first.finish(); err != nil || a.Status != 200 {
			t.Errorf("%v, %d", err, a.Status)
		}
	}
}

// TestRequireUserName checks requests with a token that may act for all users.
// With require_user_name, such a request must be refused unless it names
// another user.
func TestRequireUserName(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	l := harness.NewLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=require_user_name"}, address)
	send := func(headers ...string) int {
		g.T.Helper()
		saved := l.URL
		l.URL = "http://" + address
		defer func() { l.URL = saved }()
		return l.Request("GET", "/sched/v0.0.43/ping", "", headers...).Status
	}
	for _, tt := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"root", nil, 401},
		{"root for root", []string{"X-SCHED-USER-NAME: root"}, 401},
		{"root for a user", []string{"X-SCHED-USER-NAME: " + u.Name}, 200},
		{"a user", []string{"X-SCHED-USER-TOKEN: " + l.UserToken(u.Name)}, 200},
	} {
		if got := send(tt.headers...); got != tt.status {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.status)
		}
	}
}

// TestRootWithoutCapabilities checks that the gateway does not start as root if
// a capability that it needs is missing. The error must name the capabilities
// that it needs, and not just the first operation that fails without them.
func TestRootWithoutCapabilities(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t)
	for _, capability := range []string{"setuid", "setgid", "kill"} {
		cmd := exec.Command("setpriv", "--bounding-set", "-"+capability, filepath.Join(harness.Bin, "schedrestd"), "-f", l.Conf(), "-u", "nobody", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), l.Restd.Env...)
		if _, log, status := harness.RunCommand(t, cmd); status != 1 || !strings.Contains(log, "to start and stop workers, CAP_KILL, CAP_SETGID and CAP_SETUID") {
			t.Errorf("without %s: exit status %d\n%s", capability, status, log)
		}
	}
}
