package integration

import (
	"bufio"
	"fmt"
	"net"
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

	"schedrestd/demo/thread"
)

// rooted starts a gateway as root that has groups besides, as at a login.
func (l *lab) rooted(t *testing.T, env []string, args ...string) *gate {
	t.Helper()
	p := l.restd
	p.Args = append([]string{"-f", l.Conf()}, args...)
	p.Credential = &syscall.Credential{Groups: []uint32{0, 4, 7, 44}}
	return l.gateOf(t, p, env)
}

// idsOf is the uid, the gid and the supplementary groups of a process.
func idsOf(t *testing.T, pid int) string {
	t.Helper()
	s := statusOf(t, pid)
	return fmt.Sprint(strings.Fields(s["Uid"]), strings.Fields(s["Gid"]), strings.Fields(s["Groups"]))
}

func fourTimes(n uint32) []uint32 { return []uint32{n, n, n, n} }

// -u and -g are who reads requests, and no group besides; without -g it is the user's own.
func TestUserAndGroup(t *testing.T) {
	needRoot(t)
	u := someUser(t)
	l := newLab(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-u", u.name}, fmt.Sprint(fourTimes(u.uid), fourTimes(u.gid), "[]")},
		{[]string{"-u", u.name, "-g", "61234"}, fmt.Sprint(fourTimes(u.uid), fourTimes(61234), "[]")},
		{[]string{"-u", "61234", "-g", strconv.Itoa(int(u.gid))}, fmt.Sprint(fourTimes(61234), fourTimes(u.gid), "[]")},
	} {
		g := l.rooted(t, nil, append(tt.args, "127.0.0.1:0")...)
		pids := g.workers()
		if len(pids) == 0 {
			t.Fatal("no worker")
		}
		for _, pid := range pids {
			if got := idsOf(t, pid); strings.ReplaceAll(got, " []", "[]") != strings.ReplaceAll(tt.want, " []", "[]") {
				t.Errorf("%q: a worker has %s, want %s", tt.args, got, tt.want)
			}
		}
	}
}

// Who must not serve does not, and is told the way out; disable_user_check is one.
func TestUserCheck(t *testing.T) {
	needRoot(t)
	u := someUser(t)
	var own string // a configuration with another SchedUser
	l := newLab(t, func(l *lab) {
		own = filepath.Join(l.Dir, "etc", "own.conf")
	})
	text, err := os.ReadFile(l.Conf())
	must(t, err)
	changed := regexp.MustCompile(`(?m)^SchedUser=.*$`).ReplaceAllString(string(text), "SchedUser="+u.name)
	changed = regexp.MustCompile(`(?m)^AuthAltParameters=.*$`).ReplaceAllString(changed, "")
	must(t, os.WriteFile(own, []byte(changed), 0o644))
	const listen = "127.0.0.1:0"
	gid := strconv.Itoa(int(u.gid))
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"root, nothing said", []string{"-f", l.Conf(), listen}, "would serve as root"},
		{"root by name", []string{"-f", l.Conf(), "-u", "root", listen}, "would serve as root"},
		{"root's group", []string{"-f", l.Conf(), "-u", u.name, "-g", "root", listen}, "a group of root"},
		{"SchedUser", []string{"-f", own, "-u", u.name, "-g", "61234", listen}, "would serve as SchedUser"},
		{"SchedUser's group", []string{"-f", own, "-u", "61234", "-g", gid, listen}, "a group of SchedUser"},
		{"no such user", []string{"-f", l.Conf(), "-u", "nobody-has-this-name", listen}, "nobody-has-this-name"},
		{"no such group", []string{"-f", l.Conf(), "-u", u.name, "-g", "nobody-has-this-name", listen}, "nobody-has-this-name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if log := l.fails(t, nil, nil, tt.args...); !strings.Contains(log, tt.want) || !strings.Contains(log, "hint: ") {
				t.Errorf("said:\n%s", log)
			}
		})
	}
	for _, name := range []string{"SCHEDRESTD_SECURITY", "SLURMRESTD_SECURITY"} {
		t.Run(name, func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
			g := l.gate(t, []string{name + "=disable_user_check"}, "-f", l.Conf(), address)
			g.served(address)
			for _, pid := range g.workers() {
				if s := statusOf(t, pid); !strings.HasPrefix(s["Uid"], "0\t") || strings.Trim(s["CapEff"], "0") != "" {
					t.Errorf("Uid %s, CapEff %s", s["Uid"], s["CapEff"])
				}
			}
		})
	}
}

// Workers have an IPC namespace of their own, unless disable_unshare_sysv is given, and descriptors of
// their own from the start, unless disable_unshare_files is.
func TestUnshare(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	for _, tt := range []struct {
		env  []string
		own  bool     // an IPC namespace
		unsh []string // what is unshared for each process alone
	}{
		{nil, true, []string{"CLONE_FILES", "CLONE_SYSVSEM"}},
		{[]string{"SCHEDRESTD_SECURITY=disable_unshare_files"}, true, []string{"CLONE_SYSVSEM"}},
		{[]string{"SLURMRESTD_SECURITY=disable_unshare_sysv"}, false, []string{"CLONE_FILES"}},
		{[]string{"SCHEDRESTD_SECURITY=disable_unshare_sysv,disable_unshare_files"}, false, nil},
	} {
		t.Run(fmt.Sprint(tt.env), func(t *testing.T) {
			g := l.gate(t, tt.env, "127.0.0.1:0")
			parent, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/ipc", g.PID()))
			must(t, err)
			for _, pid := range g.workers() {
				worker, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/ipc", pid))
				must(t, err)
				if (worker != parent) != tt.own {
					t.Errorf("worker %s, parent %s", worker, parent)
				}
			}
			strace, err := exec.LookPath("strace")
			if err != nil {
				t.Skip("needs strace, to see what is unshared before a worker's program runs")
			}
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := l.inetd()
			cmd.Args = append([]string{strace, "-f", "-qq", "-e", "trace=unshare", "-o", trace, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = strace
			cmd.Env = append(cmd.Env, tt.env...)
			cmd.Stdin = strings.NewReader("GET http://localhost/healthz HTTP/1.1\n\n")
			if out, log, status := finish(t, cmd); status != 0 || !strings.Contains(out, "200 OK") {
				t.Skipf("this machine lets no strace look: exit status %d, %s\n%s", status, out, log)
			}
			text, err := os.ReadFile(trace)
			must(t, err)
			var got []string
			for _, m := range regexp.MustCompile(`unshare\(([A-Z_|]+)\)`).FindAllStringSubmatch(string(text), -1) {
				if !slices.Contains([]string{"CLONE_NEWIPC", "CLONE_NEWNET", "CLONE_NEWNS"}, m[1]) { // once, for all
					got = append(got, strings.Split(m[1], "|")...)
				}
			}
			slices.Sort(got) // of the worker and of the services beside it
			got = slices.Compact(got)
			if diff := cmp.Diff(tt.unsh, got); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, text)
			}
			if strings.Contains(string(text), "CLONE_NEWIPC") != tt.own {
				t.Errorf("unshared:\n%s", text)
			}
		})
	}
}

// become_user while it listens: whoever connects to the UNIX socket is served by a process of his own
// uid and gid, and by no other; what he submits is his. 1 to 3 are users on every distribution; who is none has no worker.
func TestBecomeUser(t *testing.T) {
	needRoot(t)
	l := newLab(t, func(l *lab) { must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	path := filepath.Join(servedDir(t, l), "s")
	env := []string{"SCHEDRESTD_SECURITY=become_user"}
	g := l.gate(t, env, "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+path)
	l.userToken = "" // the kernel says who asks
	ask := func(uid, gid uint32, method, path2, body string) (answer, error) {
		return l.by(uid, gid, path, method, path2, body)
	}
	users := []uint32{1, 2, 3}
	var wg sync.WaitGroup
	for _, uid := range users {
		for range 4 {
			wg.Go(func() {
				a, err := ask(uid, uid+100, "GET", "/sched/v0.0.43/ping", "")
				if err != nil || a.status != 200 {
					t.Errorf("uid %d: %v, %d %s", uid, err, a.status, a.text)
				}
			})
		}
	}
	wg.Wait()
	var ids []string
	for _, pid := range g.workers() {
		ids = append(ids, idsOf(t, pid))
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
	a, err := ask(1, 20101, "POST", "/sched/v0.0.43/job/submit", l.jobRequest("id -u", map[string]any{"standard_output": "/dev/null"}))
	if err != nil || a.status != 200 {
		t.Fatalf("submit: %v, %d %s", err, a.status, a.text)
	}
	a, err = ask(1, 20101, "GET", fmt.Sprintf("/sched/v0.0.43/job/%v", a.get("job_id")), "")
	if err != nil || a.get("jobs", 0, "user_id") != 1.0 && a.get("jobs", 0, "user_id", "number") != 1.0 {
		t.Errorf("the job's user: %v, %v", err, a.get("jobs", 0, "user_id"))
	}
	for _, ids := range [][2]uint32{{0, 0}, {0, 20101}, {1, 0}} { // answered before they ask
		c, err := thread.DialAs(ids[0], ids[1], path)
		must(t, err)
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
		if log := l.fails(t, nil, env, tt...); !strings.Contains(log, "become_user") || !strings.Contains(log, "hint: ") {
			t.Errorf("%q said:\n%s", tt, log)
		}
	}
	ordinary := &syscall.Credential{Uid: 61234, Gid: 61234, Groups: []uint32{}}
	if log := l.fails(t, ordinary, env, "-f", "/dev/null", "-a", "rest_auth/local", "unix:"+path+"2"); log == "" {
		t.Error("said nothing")
	}
}

// by is a request over a UNIX socket by who has that uid and gid, without a token.
func (l *lab) by(uid, gid uint32, socket, method, path, body string) (answer, error) {
	c := clientOf(func() (net.Conn, error) { return thread.DialAs(uid, gid, socket) })
	return l.try(c, method, path, body, "X-SCHED-USER-TOKEN:")
}

// worker_per_connection: each connection has a worker of its own, which ends with it.
func TestWorkerPerConnection(t *testing.T) {
	l := newLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	env := []string{"SCHEDRESTD_SECURITY=worker_per_connection"}
	if os.Geteuid() != 0 {
		env = []string{"SCHEDRESTD_SECURITY=worker_per_connection,disable_user_check"}
	}
	g := l.gate(t, env, address)
	for range 3 {
		h := l.half(t, address)
		defer h.Close()
		one := g.workers()
		other := l.half(t, address)
		two := g.workers()
		if len(two) != len(one)+1 {
			t.Errorf("%d workers with one connection more than %d", len(two), len(one))
		}
		if a, err := other.end(); err != nil || a.status != 200 {
			t.Errorf("%v, %d", err, a.status)
		}
		other.Close()
		eventually(t, "its worker has ended with it", func() bool { return cmp.Equal(g.workers(), one) })
		if a, err := h.end(); err != nil || a.status != 200 {
			t.Errorf("%v, %d", err, a.status)
		}
	}
}

// require_user_name: who may act for all must say for whom.
func TestRequireUserName(t *testing.T) {
	needRoot(t)
	u := someUser(t)
	l := newLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	g := l.gate(t, []string{"SCHEDRESTD_SECURITY=require_user_name"}, address)
	ask := func(headers ...string) int {
		g.t.Helper()
		saved := l.url
		l.url = "http://" + address
		defer func() { l.url = saved }()
		return l.ask("GET", "/sched/v0.0.43/ping", "", headers...).status
	}
	for _, tt := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"root", nil, 401},
		{"root for root", []string{"X-SCHED-USER-NAME: root"}, 401},
		{"root for a user", []string{"X-SCHED-USER-NAME: " + u.name}, 200},
		{"a user", []string{"X-SCHED-USER-TOKEN: " + l.token(u.name)}, 200},
	} {
		if got := ask(tt.headers...); got != tt.status {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.status)
		}
	}
}

// TestRootWithoutCapabilities: what is missing is named, and not what fails first for want of it.
func TestRootWithoutCapabilities(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	for _, one := range []string{"setuid", "setgid", "kill"} {
		cmd := exec.Command("setpriv", "--bounding-set", "-"+one, filepath.Join(bin, "schedrestd"), "-f", l.Conf(), "-u", "nobody", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), l.restd.Env...)
		if _, log, status := finish(t, cmd); status != 1 || !strings.Contains(log, "start and end workers: CAP_"+strings.ToUpper(one)+" missing") {
			t.Errorf("without %s: exit status %d\n%s", one, status, log)
		}
	}
}
