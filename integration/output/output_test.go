package output

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
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

// TestScript checks that the script of a job is shown as it was submitted, to the job's
// user, while the job has not ended.
func TestScript(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	id := l.Submit("# <b>ü</b>", map[string]any{"hold": true})
	const script = "#!/bin/sh\n# <b>ü</b>\n" // with the line of the harness
	show := func() harness.Answer { return l.Request("GET", fmt.Sprint(jobPath, id, "/script"), "") }
	if a := show(); a.Status != 200 || a.Text != script {
		t.Errorf("status %d: %q", a.Status, a.Text)
	}
	if out := l.Schedctl(t, "output", fmt.Sprint(id), "--script"); out != script {
		t.Errorf("schedctl prints %q", out)
	}
	if os.Getuid() == 0 {
		_, bob := harness.TwoUsers(t)
		a, err := l.TryRequest(http.DefaultClient, "GET", fmt.Sprint(jobPath, id, "/script"), "", "X-SCHED-USER-TOKEN: "+l.UserToken(bob.Name))
		harness.Must(t, err)
		a.Want(t, 404) // the controller shows users only their own jobs
	}
	l.Request("DELETE", fmt.Sprint(jobPath, id), "").Want(t, 200)
	harness.Eventually(t, "the script is no longer kept", func() bool { return show().Status == 404 })
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

	// The connections of this test have no supplementary groups.
	secret := filepath.Join(u.Work, "secret")
	harness.Must(t, os.Mkdir(secret, 0o700))
	held := u.submit(t, as, "true", map[string]any{"hold": true, "standard_output": secret + "/o"})
	if a := u.get(t, as, held+"/stdout"); a.Status != 403 || !strings.Contains(a.Text, "read without supplementary groups") {
		t.Errorf("status %d: %s", a.Status, a.Text)
	}
	harness.Eventually(t, "the log says why", func() bool {
		return strings.Contains(u.gateway.Logged(), "file not read: this process has no supplementary groups")
	})

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

// TestTokens checks that the users of tokens read the output of own jobs, each in a
// process of this user, at a gateway with one user of its own: with Slurm's tokens and
// with gateway tokens, until the token is revoked.
func TestTokens(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) { l.AuthParameters = "jwt_key=" + l.Key() + ",disable_token_creation" })
	register := filepath.Join(l.Dir, "register")
	harness.Must(t, os.WriteFile(register, nil, 0o644))
	start := func(env ...string) (*harness.Gateway, string) {
		address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		return l.StartGateway(t, append(env, "SCHEDRESTD_OUTPUT=tokens", "SCHEDRESTD_TOKEN_REGISTER="+register), address), address
	}
	gateway, address := start("SCHEDRESTD_MIN_UID=1") // the users of this test are users of the system
	_, strict := start()
	send := func(address, token, method, path, body string, headers ...string) harness.Answer {
		t.Helper()
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
		a, err := l.TryRequest(c, method, jobPath+path, body, append(headers, "X-SCHED-USER-TOKEN: "+token)...)
		harness.Must(t, err)
		return a
	}
	create := func(user, scopes string) (token, id string) {
		token = strings.TrimSpace(strings.TrimPrefix(l.Schedctl(t, "token", "create", "--register", register, "--user", user, "--scope", scopes), "SCHED_JWT="))
		text, err := os.ReadFile(register)
		harness.Must(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return token, strings.Fields(lines[len(lines)-1])[1]
	}
	tokens := map[string]string{"alice": l.UserToken(alice.Name), "bob": l.UserToken(bob.Name), "root": l.UserToken("root")}
	var readerID string
	tokens["alice's reader"], readerID = create(alice.Name, "compute.read")
	tokens["alice's accountant"], _ = create(alice.Name, "slurmdb.read")
	harness.Eventually(t, "the gateways know the tokens", func() bool { return send(address, tokens["alice's reader"], "GET", "", "").Status != 401 })
	jobs := map[string]string{}
	for name, user := range map[string]string{"alice": alice.Name, "bob": bob.Name, "root": "root"} {
		jobs[name] = fmt.Sprint(send(address, tokens[name], "POST", "submit", l.JobRequest("id -un; id -Gn", map[string]any{"name": user})).Want(t, 200).Get("job_id"))
		send(address, tokens[name], "GET", jobs[name]+"?until=ended&wait=30", "").Want(t, 200)
	}
	for _, tt := range []struct {
		address, token, job string
		status              int
		want                string
		headers             []string
	}{
		{address, "alice", "alice", 200, alice.Name + "\n", nil},
		{address, "bob", "bob", 200, bob.Name + "\n", nil},
		{address, "alice's reader", "alice", 200, alice.Name + "\n", nil},
		{address, "alice's accountant", "alice", 403, "compute.read", nil},
		{address, "bob", "alice", 404, "there is no job", nil}, // the controller shows users only their own jobs
		{address, "root", "alice", 403, "no output is read for the user of this token", nil},
		{address, "root", "root", 403, "no output is read for the user of this token", nil},
		{address, "root", "alice", 403, "no output is read for the user of this token", []string{"X-SCHED-USER-NAME: " + alice.Name}},
		{strict, "alice", "alice", 403, "SCHEDRESTD_MIN_UID", nil},
	} {
		if a := send(tt.address, tokens[tt.token], "GET", jobs[tt.job]+"/stdout", "", tt.headers...); a.Status != tt.status || !strings.Contains(a.Text, tt.want) {
			t.Errorf("%s reads of %s %s: status %d: %s", tt.token, tt.job, tt.headers, a.Status, a.Text)
		}
	}

	for _, u := range []harness.Account{alice, bob} {
		list := outputProcesses(gateway.PID(), u.UID)
		if len(list) != 1 && len(list) != 2 { // one for each worker that was asked
			t.Fatalf("%s: processes %v", u.Name, list)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", list[0]))
		harness.Must(t, err)
		for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", fmt.Sprintf("Gid:\t%d\t", u.GID)} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%s: no %q in\n%s", u.Name, want, status)
			}
		}
	}
	for _, pid := range outputProcesses(gateway.PID(), bob.UID) {
		harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	harness.Eventually(t, "another process reads output", func() bool {
		a := send(address, tokens["bob"], "GET", jobs["bob"]+"/stdout", "")
		if a.Status != 200 {
			a.Want(t, 503)
		}
		return a.Status == 200
	})

	// A client that follows the output loses it when the token is revoked.
	long := fmt.Sprint(send(address, tokens["alice"], "POST", "submit", l.JobRequest("echo first; sleep 600", nil)).Want(t, 200).Get("job_id"))
	harness.Eventually(t, "the job writes", func() bool {
		return send(address, tokens["alice's reader"], "GET", long+"/stdout", "").Text == "first\n"
	})
	r, err := http.NewRequest("GET", "http://"+address+jobPath+long+"/stdout?follow=true", nil)
	harness.Must(t, err)
	r.Header.Set("X-SCHED-USER-TOKEN", tokens["alice's reader"])
	followed, err := http.DefaultClient.Do(r)
	harness.Must(t, err)
	defer followed.Body.Close()
	text := make([]byte, len("first\n"))
	if _, err := io.ReadFull(followed.Body, text); err != nil || string(text) != "first\n" {
		t.Fatalf("status %d: %q, %v", followed.StatusCode, text, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.ReadAll(followed.Body)
	}()
	select {
	case <-ended:
		t.Fatal("it ends before the token is revoked")
	case <-time.After(100 * time.Millisecond):
	}
	l.Schedctl(t, "token", "revoke", "--register", register, readerID)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the client of a revoked token still follows")
	}
	if a := send(address, tokens["alice's reader"], "GET", long+"/stdout", ""); a.Status != 401 {
		t.Errorf("status %d", a.Status)
	}
	send(address, tokens["alice"], "DELETE", long, "")
	parent := gateway.PID()
	gateway.Stop()
	if left := append(outputProcesses(parent, alice.UID), outputProcesses(parent, bob.UID)...); left != nil {
		t.Errorf("processes remain: %v", left)
	}
}

// TestProviderTokens checks that the users of an identity provider's tokens read the
// output of own jobs, by the rules that workers and keeper check, and what the answer
// says if the gateway has no keys for them.
func TestProviderTokens(t *testing.T) {
	t.Parallel()
	alice, _ := harness.TwoUsers(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	harness.Must(t, err)
	var keySet string
	l := harness.NewDaemons(t, func(l *harness.Lab) {
		set := filepath.Join(l.Dir, "etc", "jwks.json")
		harness.Must(t, os.WriteFile(set, []byte(`{"keys":[`+harness.PublicJWK(&key.PublicKey, "a")+`]}`), 0o644))
		keySet = ",jwks=" + set + ",userclaimfield=preferred_username"
		l.AuthParameters = "jwt_key=" + l.Key() + keySet
	})
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	start := func(without string) func(token, method, path, body string) harness.Answer {
		conf := filepath.Join(l.Dir, "etc", fmt.Sprintf("gateway-%d.conf", len(without)))
		harness.Must(t, os.WriteFile(conf, []byte(strings.Replace(string(text), without, "", 1)), 0o644))
		address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		l.StartGateway(t, []string{"SCHEDRESTD_OUTPUT=tokens", "SCHEDRESTD_MIN_UID=1", "SCHEDRESTD_TOKEN_ISSUER=https://idp", "SCHEDRESTD_TOKEN_AUDIENCE=sched", "SCHEDRESTD_TOKEN_SCOPE_CLAIM=scp"}, append(append([]string{"-f", conf}, l.Restd.Args[2:len(l.Restd.Args)-1]...), address)...)
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
		return func(token, method, path, body string) harness.Answer {
			t.Helper()
			a, err := l.TryRequest(c, method, jobPath+path, body, "X-SCHED-USER-TOKEN: "+token)
			harness.Must(t, err)
			return a
		}
	}
	token := func(claims string) string {
		now := time.Now()
		return harness.SignToken(t, key, `{"alg":"RS256","kid":"a"}`, fmt.Sprintf(`{"iat":%d,"exp":%d,"iss":"https://idp","aud":"sched","scp":"compute.read compute.create",%s}`, now.Unix(), now.Add(time.Hour).Unix(), claims))
	}
	named := token(fmt.Sprintf(`"preferred_username":%q`, alice.Name))
	send := start("jwt_key=" + l.Key() + ",") // the keeper has no other key
	id := fmt.Sprint(send(named, "POST", "submit", l.JobRequest("id -un", nil)).Want(t, 200).Get("job_id"))
	send(named, "GET", id+"?until=ended&wait=30", "").Want(t, 200)
	if a := send(named, "GET", id+"/stdout", ""); a.Status != 200 || a.Text != alice.Name+"\n" {
		t.Errorf("status %d: %s", a.Status, a.Text)
	}
	if a := send(token(fmt.Sprintf(`"preferred_username":"root","sun":%q`, alice.Name)), "GET", id+"/stdout", ""); a.Status != 200 {
		t.Errorf("sun precedes another claim: status %d: %s", a.Status, a.Text)
	}
	if a := start(keySet)(token(fmt.Sprintf(`"sun":%q`, alice.Name)), "GET", id+"/stdout", ""); a.Status != 403 || !strings.Contains(a.Text, "jwks=") {
		t.Errorf("without the key set: status %d: %s", a.Status, a.Text)
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
