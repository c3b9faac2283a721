package idempotency

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

const submitPath = "/sched/" + harness.Version + "/job/submit"

// withKeyFile returns a function for NewLab that makes the gateway keep
// Idempotency-Keys and an audit log in one directory. The function sets *dir to
// that directory.
func withKeyFile(dir *string) func(*harness.Lab) {
	return func(l *harness.Lab) {
		var log string
		harness.WithAuditLog(&log)(l)
		*dir = filepath.Dir(log)
		l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_IDEMPOTENCY_FILE="+filepath.Join(*dir, "keys"))
	}
}

// keyHeader returns the header with that key.
func keyHeader(name string) string { return "Idempotency-Key: " + name }

// countJobs returns the number of jobs that the controller has.
func countJobs(l *harness.Lab) int {
	l.T.Helper()
	return len(l.Request("GET", "/sched/"+harness.Version+"/jobs", "").Want(l.T, 200).List("jobs"))
}

// checkReplay fails the test unless the second answer repeats the first one and
// is marked as a replay.
func checkReplay(t *testing.T, first, a harness.Answer) {
	t.Helper()
	if a.Want(t, 200); a.Text != first.Text || a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v\n%s\nwant\n%s", a.Header, a.Text, first.Text)
	}
}

// countIntents returns the number of lines in the audit log that announce a
// change.
func countIntents(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	harness.Must(t, err)
	return strings.Count(string(text), `"event":"intent"`)
}

// normalize removes the address of the connection from an answer, because that
// address differs each time.
func normalize(a harness.Answer) harness.Answer {
	meta := a.Body["meta"].(map[string]any)
	meta["client"].(map[string]any)["source"] = ""
	text, _ := json.Marshal(a.Body)
	a.Text = string(text)
	return a
}

// TestSameKey checks that a submission creates only one job if the client
// repeats it with the same key, even to another worker, or after a SIGHUP or a
// restart. It also sends the same key with another body, and the same body with
// other keys.
func TestSameKey(t *testing.T) {
	t.Parallel()
	var dir string
	l := harness.NewLab(t, withKeyFile(&dir))
	info, err := os.Stat(filepath.Join(dir, "keys"))
	if harness.Must(t, err); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s", info.Mode())
	}
	body := l.JobRequest("true", map[string]any{"hold": true})
	send := func(name, body string, headers ...string) harness.Answer {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		a, err := l.TryRequest(c, "POST", submitPath, body, append(headers, keyHeader(name))...)
		harness.Must(t, err)
		return a
	}
	first := normalize(send("a", body).Want(t, 200))
	for range 8 { // on new connections, to reach both workers
		checkReplay(t, first, normalize(send("a", body)))
	}
	if n := countJobs(l); n != 1 {
		t.Fatalf("%d jobs", n)
	}
	if n := countIntents(t, dir); n != 1 {
		t.Errorf("%d intents", n)
	}

	var mu sync.Mutex
	ids := map[float64]int{}
	replayed := 0
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			a := send("concurrent", body).Want(t, 200)
			mu.Lock()
			defer mu.Unlock()
			ids[a.Get("job_id").(float64)]++
			if a.Header.Get("Idempotency-Replayed") == "true" {
				replayed++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || replayed != 15 || countJobs(l) != 2 || countIntents(t, dir) != 2 {
		t.Errorf("job %v, %d replayed, %d jobs, %d intents", ids, replayed, countJobs(l), countIntents(t, dir))
	}

	other := send("a", l.JobRequest("false", map[string]any{"hold": true})).Want(t, 422)
	if !strings.Contains(other.Text, "idempotency_key_reused") || countJobs(l) != 2 {
		t.Errorf("%s, %d jobs", other.Text, countJobs(l))
	}
	send("b", body).Want(t, 200)
	l.Request("POST", submitPath, body).Want(t, 200)
	if n := countJobs(l); n != 4 {
		t.Errorf("%d jobs", n)
	}
	for _, bad := range []string{"", strings.Repeat("k", 256), "a\tb", "ü"} {
		send(bad, body).Want(t, 400)
	}
	refused := send("refused", l.JobRequest("true", map[string]any{"partition": "nowhere"}))
	if refused.Status == 200 || send("refused", body).Want(t, 200).Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("a key of a job that was refused: %d %s", refused.Status, refused.Text)
	}
	jobList := `{"jobs": [` + component(l) + "]}" // with one job, because the bundled controller has no heterogeneous jobs
	het := normalize(send("several", jobList).Want(t, 200))
	checkReplay(t, het, normalize(send("several", jobList)))
	before := countJobs(l)

	workers := l.Workers()
	harness.Must(t, syscall.Kill(l.Daemons["schedrestd"].PID(), syscall.SIGHUP))
	harness.Eventually(t, "the next workers", func() bool {
		now := slices.DeleteFunc(l.Workers(), func(pid int) bool { return slices.Contains(workers, pid) })
		return len(now) > 1
	})
	checkReplay(t, first, normalize(send("a", body)))
	checkReplay(t, het, normalize(send("several", jobList)))
	l.Daemons["schedrestd"].Stop()
	l.Up(l.Restd)
	checkReplay(t, first, normalize(send("a", body)))
	checkReplay(t, het, normalize(send("several", jobList)))
	send("a", jobList).Want(t, 422)
	harness.Must(t, syscall.Kill(l.Daemons["schedrestd"].PID(), syscall.SIGKILL))
	l.Daemons["schedrestd"].Stop()
	l.Up(l.Restd)
	checkReplay(t, first, normalize(send("a", body)))
	if n := countJobs(l); n != before {
		t.Errorf("%d jobs, there were %d", n, before)
	}
}

// component returns a job as JSON text, for the list "jobs" of a submission.
func component(l *harness.Lab) string {
	var request map[string]map[string]any
	harness.Must(l.T, json.Unmarshal([]byte(l.JobRequest("true", map[string]any{"hold": true})), &request))
	text, err := json.Marshal(request["job"])
	harness.Must(l.T, err)
	return string(text)
}

// TestKeyAcrossGenerations sends a SIGHUP while an old worker is still
// answering a submission with a key. Until that submission is answered, the new
// workers must refuse submissions with the same key.
func TestKeyAcrossGenerations(t *testing.T) {
	t.Parallel()
	var dir string
	l := harness.NewLab(t, withKeyFile(&dir))
	body := l.JobRequest("true", map[string]any{"hold": true})
	l.Submit("true", map[string]any{"hold": true}) // a worker has verified the token
	controller := l.Daemons["schedctld"].PID()
	harness.Suspend(t, controller)
	first := make(chan harness.Answer, 1)
	go func() {
		a, err := l.TryRequest(&http.Client{Transport: &http.Transport{}}, "POST", submitPath, body, keyHeader("k"))
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	harness.Eventually(t, "the claim", func() bool { return countClaims(t, dir) == 1 })
	workers := l.Workers()
	harness.Must(t, syscall.Kill(l.Daemons["schedrestd"].PID(), syscall.SIGHUP))
	harness.Eventually(t, "new workers", func() bool { return len(l.Workers()) > len(workers) })
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var a harness.Answer
	harness.Eventually(t, "an answer by a new worker", func() bool {
		var err error
		a, err = l.TryRequest(c, "POST", submitPath, body, keyHeader("k"))
		harness.Must(t, err)
		return a.Status != 503 // 503 if the suspended daemon did not answer the worker's question about the token
	})
	if a.Status != 409 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Text, "in_progress") {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Text)
	}
	harness.Must(t, syscall.Kill(controller, syscall.SIGCONT))
	answer := normalize((<-first).Want(t, 200))
	a, err := l.TryRequest(c, "POST", submitPath, body, keyHeader("k"))
	harness.Must(t, err)
	checkReplay(t, answer, normalize(a))
	if n := countJobs(l); n != 2 {
		t.Errorf("%d jobs", n)
	}
}

// countClaims returns the number of claims in the file for Idempotency-Keys.
func countClaims(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "keys"))
	harness.Must(t, err)
	return strings.Count(string(text), "SIK\x01")
}

// TestKilledWhileSubmitting kills all workers, or the whole gateway, before the
// client gets the answer to a submission. If the client repeats the submission,
// the gateway must not send it to the controller again.
func TestKilledWhileSubmitting(t *testing.T) {
	t.Parallel()
	var dir string
	l := harness.NewLab(t, withKeyFile(&dir))
	body := l.JobRequest("true", map[string]any{"hold": true})
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	controller := l.Daemons["schedctld"].PID()
	for i, killed := range [][]int{l.Workers(), {l.Daemons["schedrestd"].PID()}} {
		harness.Suspend(t, controller)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if a, err := l.TryRequest(c, "POST", submitPath, body, keyHeader(strconv.Itoa(i))); err == nil {
				t.Errorf("answered with %d %s", a.Status, a.Text)
			}
		}()
		harness.Eventually(t, "the claim", func() bool { return countClaims(t, dir) == i+1 })
		time.Sleep(300 * time.Millisecond) // the request may have been sent by now; the result must be the same either way
		for _, pid := range killed {
			harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		<-done
		harness.Must(t, syscall.Kill(controller, syscall.SIGCONT))
		if i == 1 {
			l.Daemons["schedrestd"].Stop()
			l.Up(l.Restd)
		}
		before := -1
		harness.Eventually(t, "the controller has read the request", func() bool {
			n := countJobs(l)
			stable := n == before
			before = n
			return stable
		})
		for range 2 {
			a, err := l.TryRequest(c, "POST", submitPath, body, keyHeader(strconv.Itoa(i)))
			harness.Must(t, err)
			if a.Want(t, 502); !strings.Contains(a.Text, "outcome_unknown") {
				t.Errorf("%s", a.Text)
			}
		}
		if n := countJobs(l); n > i+1 || n != before {
			t.Errorf("%d jobs, there were %d", n, before)
		}
	}
}

// TestAuditorKilledWhileSubmitting kills the auditor before the controller
// answers a submission. The first client gets the controller's answer. The
// auditor could not store it, so a repeated submission must not be sent to the
// controller again.
func TestAuditorKilledWhileSubmitting(t *testing.T) {
	t.Parallel()
	var dir string
	l := harness.NewLab(t, withKeyFile(&dir))
	body := l.JobRequest("true", map[string]any{"hold": true})
	l.Submit("true", map[string]any{"hold": true}) // a worker has verified the token
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	controller := l.Daemons["schedctld"].PID()
	harness.Suspend(t, controller)
	first := make(chan harness.Answer, 1)
	go func() {
		a, err := l.TryRequest(c, "POST", submitPath, body, keyHeader("k"))
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	harness.Eventually(t, "the intent", func() bool { return countClaims(t, dir) == 1 && countIntents(t, dir) == 2 })
	harness.Must(t, syscall.Kill(harness.DescendantNamed(t, l.Daemons["schedrestd"].PID(), "schedrestd-audi"), syscall.SIGKILL))
	harness.Must(t, syscall.Kill(controller, syscall.SIGCONT))
	(<-first).Want(t, 200)
	for range 2 {
		var a harness.Answer
		harness.Eventually(t, "an answer by a worker that has an auditor", func() bool {
			var err error
			a, err = l.TryRequest(c, "POST", submitPath, body, keyHeader("k"))
			harness.Must(t, err)
			return a.Status != 503
		})
		if a.Want(t, 502); !strings.Contains(a.Text, "outcome_unknown") {
			t.Errorf("%s", a.Text)
		}
	}
	if n := countJobs(l); n != 2 {
		t.Errorf("%d jobs", n)
	}
}

// TestNoKeyFile checks that a gateway without a file for Idempotency-Keys
// refuses a submission with such a key, and accepts a submission without one.
func TestNoKeyFile(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	a := l.Request("POST", submitPath, l.JobRequest("true", nil), keyHeader("k")).Want(t, 501)
	if !strings.Contains(a.Text, "SCHEDRESTD_IDEMPOTENCY_FILE") || countJobs(l) != 0 {
		t.Errorf("%s", a.Text)
	}
	l.Submit("true", nil)
}

// TestKeysDiskFull sends submissions while the disk is full. Submissions with a
// new Idempotency-Key must be refused. Submissions without such a key, and
// repeated submissions, must be accepted. When there is space again, all
// submissions must be accepted.
func TestKeysDiskFull(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	var dir string
	l := harness.NewLab(t, withKeyFile(&dir), func(l *harness.Lab) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
			t.Skipf("needs a small file system: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		for i, v := range l.Restd.Env { // no audit log, because on a full disk the gateway would then refuse all changes
			if strings.HasPrefix(v, "SCHEDRESTD_AUDIT_LOG=") {
				l.Restd.Env[i] = "UNUSED="
			}
		}
	})
	body := l.JobRequest("true", map[string]any{"hold": true})
	first := l.Request("POST", submitPath, body, keyHeader("first")).Want(t, 200)
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	harness.Must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	var last harness.Answer
	for i := range 3 { // a page has space for two claims
		last = l.Request("POST", submitPath, body, keyHeader("new "+strconv.Itoa(i)))
	}
	if last.Want(t, 503); last.Header.Get("Retry-After") == "" || !strings.Contains(last.Text, "Idempotency-Key") {
		t.Errorf("%v %s", last.Header, last.Text)
	}
	before := countJobs(l)
	checkReplay(t, normalize(first), normalize(l.Request("POST", submitPath, body, keyHeader("first"))))
	l.Request("POST", submitPath, body, keyHeader("new 2")).Want(t, 503)
	l.Request("POST", submitPath, body).Want(t, 200)
	if n := countJobs(l); n != before+1 {
		t.Errorf("%d jobs, there were %d", n, before)
	}
	harness.Must(t, os.Remove(ballast))
	l.Request("POST", submitPath, body, keyHeader("new 2")).Want(t, 200)
	if log := l.Logged(); strings.Count(log, "idempotency file not usable") != 1 || !strings.Contains(log, "idempotency file usable again") {
		t.Errorf("the log has:\n%s", log)
	}
}

// TestKeysOfUsers checks that with become_user each user has their own
// Idempotency-Keys, even if other users have keys with the same text.
func TestKeysOfUsers(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	l := harness.NewLab(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	path := filepath.Join(harness.SocketDir(t, l), "s")
	l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=become_user", "SCHEDRESTD_IDEMPOTENCY_FILE=" + filepath.Join(l.Dir, "keys")},
		"-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+path)
	body := l.JobRequest("true", map[string]any{"hold": true, "standard_output": "/dev/null"})
	ids := map[float64]bool{}
	for _, u := range []harness.Account{alice, bob} {
		for try := range 2 {
			c := harness.NewClient(func() (net.Conn, error) { return thread.DialAs(u.UID, u.GID, path) })
			a, err := l.TryRequest(c, "POST", submitPath, body, "X-SCHED-USER-TOKEN:", keyHeader("k"))
			harness.Must(t, err)
			if a.Want(t, 200); (a.Header.Get("Idempotency-Replayed") == "true") != (try == 1) {
				t.Errorf("%s, request %d: %v", u.Name, try, a.Header)
			}
			ids[a.Get("job_id").(float64)] = true
		}
	}
	if len(ids) != 2 {
		t.Errorf("jobs %v", ids)
	}
}

// TestKeysInetd checks that a run of the gateway in inetd mode recognizes an
// Idempotency-Key of an earlier run, although the runs have no process in
// common.
func TestKeysInetd(t *testing.T) {
	t.Parallel()
	var dir string
	l := harness.NewLab(t, withKeyFile(&dir))
	job := l.JobRequest("true", map[string]any{"hold": true})
	for try, header := range []string{"", "Idempotency-Replayed: true"} {
		cmd := l.InetdCommand("-a", "rest_auth/jwt")
		cmd.Stdin = strings.NewReader("POST http://localhost" + submitPath + " HTTP/1.1\r\nX-SCHED-USER-TOKEN: " + l.OwnToken +
			"\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: " + strconv.Itoa(len(job)) + "\r\n\r\n" + job)
		out, log, status := harness.RunCommand(t, cmd)
		if status != 0 || !strings.HasPrefix(out, "HTTP/1.1 200 ") || !strings.Contains(out, header) || try == 0 && strings.Contains(out, "Replayed") {
			t.Errorf("run %d: exit status %d\n%s\n%s", try, status, out, log)
		}
	}
	checkReplay(t, normalize(l.Request("POST", submitPath, job, keyHeader("k"))), normalize(l.Request("POST", submitPath, job, keyHeader("k"))))
	if n := countJobs(l); n != 1 {
		t.Errorf("%d jobs", n)
	}
}
