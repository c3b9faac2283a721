package output

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

const jobPath = "/sched/" + harness.Version + "/job/"

// TestOwnGateway checks a gateway that an ordinary user has started: the user
// reads the output of own jobs, with a token.
func TestOwnGateway(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("needs an ordinary user")
	}
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_OUTPUT=sockets"))
	id := l.Submit("echo hello; echo oops >&2", map[string]any{"standard_error": "e-%j"})
	l.Request("GET", fmt.Sprint(jobPath, id, "?until=ended&wait=30"), "").Want(t, 200)
	for file, want := range map[string]string{"stdout": "hello\n", "stderr": "oops\n"} {
		if a := l.Request("GET", fmt.Sprint(jobPath, id, "/", file), ""); a.Status != 200 || a.Text != want {
			t.Errorf("%s: status %d: %q", file, a.Status, a.Text)
		}
	}
}

// users is a gateway with become_user that reads output.
type users struct {
	*harness.Lab
	gateway *harness.Gateway
	socket  string
}

func serveUsers(t *testing.T, change ...func(*harness.Lab)) *users {
	t.Helper()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t, append(change, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })...)
	u := &users{Lab: l, socket: filepath.Join(harness.SocketDir(t, l), "s")}
	u.gateway = l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=become_user", "SCHEDRESTD_OUTPUT=sockets"}, "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+u.socket)
	return u
}

func (u *users) client(a harness.Account) *http.Client {
	return harness.NewClient(func() (net.Conn, error) { return thread.DialAs(a.UID, a.GID, u.socket) })
}

func (u *users) get(t *testing.T, c *http.Client, path string, headers ...string) harness.Answer {
	t.Helper()
	a, err := u.TryRequest(c, "GET", jobPath+path, "", append(headers, "X-SCHED-USER-TOKEN:")...)
	harness.Must(t, err)
	return a
}

func (u *users) submit(t *testing.T, c *http.Client, script string, fields map[string]any) string {
	t.Helper()
	a, err := u.TryRequest(c, "POST", jobPath+"submit", u.JobRequest(script, fields), "X-SCHED-USER-TOKEN:")
	harness.Must(t, err)
	return fmt.Sprint(a.Want(t, 200).Get("job_id"))
}

// TestUsers checks that each user reads the output of own jobs in a process of
// this user, that another process takes the place of one that dies, and that
// none is left when the user has gone.
func TestUsers(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	u := serveUsers(t)
	as, bs := u.client(alice), u.client(bob)
	mine, theirs := u.submit(t, as, "id -un", nil), u.submit(t, bs, "id -un", nil)
	for id, c := range map[string]*http.Client{mine: as, theirs: bs} {
		u.get(t, c, id+"?until=ended&wait=30").Want(t, 200)
	}
	for _, tt := range []struct {
		client *http.Client
		id     string
		status int
		want   string
	}{{as, mine, 200, alice.Name + "\n"}, {bs, theirs, 200, bob.Name + "\n"}, {as, theirs, 404, "there is no job"}, {bs, mine, 404, "there is no job"}} { // the controller shows users only their own jobs
		if a := u.get(t, tt.client, tt.id+"/stdout"); a.Status != tt.status || !strings.Contains(a.Text, tt.want) {
			t.Errorf("job %s: status %d: %s", tt.id, a.Status, a.Text)
		}
	}

	process := outputProcesses(u.gateway.PID(), alice.UID)
	if len(process) != 1 {
		t.Fatalf("processes %v", process)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process[0]))
	harness.Must(t, err)
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	harness.Must(t, syscall.Kill(process[0], syscall.SIGKILL))
	harness.Eventually(t, "another process reads output", func() bool {
		a := u.get(t, as, mine+"/stdout")
		if a.Status != 200 {
			a.Want(t, 503)
		}
		return a.Status == 200
	})
	parent := u.gateway.PID()
	u.gateway.Stop()
	if left := append(outputProcesses(parent, alice.UID), outputProcesses(parent, bob.UID)...); left != nil {
		t.Errorf("processes remain: %v", left)
	}
}

// outputProcesses returns the processes of a gateway that read output of a user.
func outputProcesses(gateway int, uid uint32) (list []int) {
	out, _ := exec.Command("pgrep", "-P", fmt.Sprint(gateway), "-u", fmt.Sprint(uid), "-x", "schedrestd-outp").Output()
	for _, line := range strings.Fields(string(out)) {
		var pid int
		if fmt.Sscan(line, &pid); pid > 0 {
			list = append(list, pid)
		}
	}
	return list
}

// TestHangingFileSystem checks that a file system that never answers holds up only
// the requests for its files, and not for ever.
func TestHangingFileSystem(t *testing.T) {
	t.Parallel()
	alice, _ := harness.TwoUsers(t)
	u := serveUsers(t)
	hanging := filepath.Join(u.Work, "hanging")
	harness.Must(t, os.Mkdir(hanging, 0o777))
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer fuse.Close()
	if err := unix.Mount("hanging", hanging, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse.Fd())); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(hanging, unix.MNT_DETACH|unix.MNT_FORCE)
	c := u.client(alice)
	good := u.submit(t, c, "echo good", nil)
	bad := u.submit(t, c, "true", map[string]any{"hold": true, "standard_output": hanging + "/o"})
	u.get(t, c, good+"?until=ended&wait=30").Want(t, 200)

	const many = 60 // more than are read at once
	var wait sync.WaitGroup
	statuses := make(chan int, many)
	for range many {
		wait.Go(func() {
			a, err := u.TryRequest(c, "GET", jobPath+bad+"/stdout", "", "X-SCHED-USER-TOKEN:")
			if err != nil {
				t.Error(err)
			}
			statuses <- a.Status
		})
	}
	time.Sleep(time.Second)
	u.get(t, c, good).Want(t, 200)
	wait.Wait()
	close(statuses)
	count := map[int]int{}
	for s := range statuses {
		count[s]++
	}
	if count[504] == 0 || count[503]+count[504] != many {
		t.Errorf("statuses %v", count)
	}
	t.Log("statuses ", count)
	fuse.Close() // the file system's requests end with errors
	harness.Eventually(t, "other files are read again", func() bool {
		a := u.get(t, c, good+"/stdout")
		return a.Status == 200 && a.Text == "good\n"
	})
}
