package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/integration/harness"
	"schedrestd/internal/programtest"
)

// auditLine holds the parts of an audit log line that are checked.
type auditLine struct {
	Time    time.Time
	Event   string
	Change  string
	Gateway struct {
		Listener, Network, Peer, Ended, Because string
		PeerUID                                 *uint32 `json:"peer_uid"`
		WorkerPID                               int     `json:"worker_pid"`
		WorkerUID                               uint32  `json:"worker_uid"`
	}
	Worker struct {
		Request, User, Method, Route, Object string
		UID                                  *uint32
		ActAs                                string `json:"act_as"`
		Status                               int
		Code, Result                         string
		Number                               int `json:"error_number"`
	}
}

// auditLines returns the lines in the given files of the audit log. It fails
// the test if a line is incomplete.
func auditLines(t *testing.T, paths ...string) (list []auditLine) {
	t.Helper()
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		harness.Must(t, err)
		for line := range strings.Lines(string(raw)) {
			var l auditLine
			if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.HasSuffix(line, "}\n") {
				t.Fatalf("%v in %q", err, line)
			}
			list = append(list, l)
		}
	}
	return list
}

// awaitAudit waits until the log has n lines, and returns them. It has to wait,
// because an outcome is written a moment after the answer is sent.
func awaitAudit(t *testing.T, n int, path string) (list []auditLine) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d lines of audit", n), func() bool {
		raw, err := os.ReadFile(path)
		return err == nil && bytes.Count(raw, []byte("\n")) >= n
	})
	if list = auditLines(t, path); len(list) != n {
		t.Fatalf("%d lines, want %d: %+v", len(list), n, list)
	}
	return list
}

// TestAudit checks that the log has two lines for each change, one before the
// change and one after it. Both must contain the user, the effective user and
// the origin. Reads and unauthenticated requests must leave no line.
func TestAudit(t *testing.T) {
	t.Parallel()
	var log string
	l := harness.NewLab(t, harness.WithAuditLog(&log))
	info, err := os.Stat(log)
	harness.Must(t, err)
	if info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("a log of mode %s, %d bytes, before anything was changed", info.Mode(), info.Size())
	}
	l.Request("GET", "/sched/"+harness.Version+"/jobs", "").Want(t, 200)
	l.Request("POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", nil), "X-SCHED-USER-TOKEN: "+harness.TamperSignature(l.OwnToken)).Want(t, 401)
	l.Request("POST", "/sched/"+harness.Version+"/job/submit", `{"job":{"script":7}`).Want(t, 400)
	a := l.Request("POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("sleep 60", nil)).Want(t, 200)
	id := strconv.Itoa(int(a.Get("job_id").(float64)))
	lines := awaitAudit(t, 2, log)
	before, after := lines[0], lines[1]
	if before.Event != "intent" || after.Event != "outcome" || before.Change != after.Change || after.Gateway.Ended != "reported" {
		t.Errorf("not an intent and its outcome: %+v", lines)
	}
	if request := a.Header.Get("X-Request-Id"); before.Worker.Request != request || after.Worker.Request != request {
		t.Errorf("request %q and %q, the client saw %q", before.Worker.Request, after.Worker.Request, request)
	}
	g, w := after.Gateway, after.Worker
	if g.Network != "tcp" || !strings.HasPrefix(g.Peer, "127.0.0.1:") || !strings.HasSuffix(l.URL, g.Listener) || g.WorkerPID == 0 || time.Since(after.Time) > time.Hour {
		t.Errorf("gateway: %+v", g)
	}
	if w.User == "" || w.UID != nil || w.Method != "POST" || !strings.Contains(w.Route, "submit") || w.Status != 200 || w.Code != "ok" || w.Result != id {
		t.Errorf("worker: %+v, of job %s", w, id)
	}
	l.Request("DELETE", "/sched/"+harness.Version+"/job/"+id, "").Want(t, 200)
	if w := awaitAudit(t, 4, log)[3].Worker; w.Method != "DELETE" || w.Object != id || w.Status != 200 || w.User == "" {
		t.Errorf("cancelled: %+v", w)
	}
	refused := l.Request("POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", map[string]any{"partition": "nowhere\"\n"}))
	if w := awaitAudit(t, 6, log)[5].Worker; refused.Status == 200 || w.Status != refused.Status || w.Code == "ok" || w.Number == 0 || w.Result != "" {
		t.Errorf("refused with %d: %+v", refused.Status, w)
	}
	l.Request("DELETE", "/sched/"+harness.Version+"/job/9999999", "")
	if w := awaitAudit(t, 8, log)[7].Worker; w.Object != "9999999" || w.Status == 200 && w.Number == 0 {
		t.Errorf("no such job: %+v", w)
	}
}

// TestAuditRotates rotates the log several times under load, by moving the file
// and sending SIGHUP. No line may be lost or torn. Each change must have one
// line before it (its intent) and one line after it (its outcome).
func TestAuditRotates(t *testing.T) {
	t.Parallel()
	var log string
	l := harness.NewLab(t, harness.WithAuditLog(&log))
	const clients, perClient = 4, 25
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for range clients {
		wg.Go(func() {
			for range perClient {
				a, err := l.TryRequest(http.DefaultClient, "POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", map[string]any{"hold": true}))
				if err != nil || a.Status != 200 {
					t.Errorf("submit: %v %d %s", err, a.Status, a.Text)
					return
				}
				mu.Lock()
				ids[strconv.Itoa(int(a.Get("job_id").(float64)))] = 0
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	paths := []string{log}
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(50 * time.Millisecond):
			rotated := log + "." + strconv.Itoa(len(paths))
			harness.Must(t, os.Rename(log, rotated))
			paths = append(paths, rotated)
			harness.Must(t, syscall.Kill(l.Daemons["schedrestd"].PID(), syscall.SIGHUP))
			harness.Eventually(t, "a new file", func() bool { _, err := os.Stat(log); return err == nil })
		}
	}
	if len(paths) < 3 {
		t.Logf("only %d files", len(paths))
	}
	harness.Eventually(t, "all outcomes", func() bool {
		n := 0
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			harness.Must(t, err)
			n += bytes.Count(raw, []byte(`"event":"outcome"`))
		}
		return n >= clients*perClient
	})
	changes := map[string][2]int{}
	for _, line := range auditLines(t, paths...) {
		counts := changes[line.Change]
		if line.Event == "intent" {
			counts[0]++
		} else {
			counts[1]++
			mu.Lock()
			ids[line.Worker.Result]++
			mu.Unlock()
		}
		changes[line.Change] = counts
	}
	if len(changes) != clients*perClient {
		t.Errorf("%d changes, want %d", len(changes), clients*perClient)
	}
	for change, counts := range changes {
		if counts != [2]int{1, 1} {
			t.Errorf("%s has %d intents and %d outcomes", change, counts[0], counts[1])
		}
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("job %s is there %d times", id, n)
		}
	}
}

// TestAuditFull requests changes while the disk of the audit log is full. The
// gateway must refuse changes before they reach the controller, and must accept
// changes again once there is space. Reads must work. TestAuditOpen checks
// SCHEDRESTD_AUDIT_FAIL=open.
func TestAuditFull(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	var log string
	l := harness.NewLab(t, harness.WithAuditLog(&log), func(*harness.Lab) { mountFull(t, filepath.Dir(log)) })
	fill(t, filepath.Dir(log))
	jobs := func() int {
		return len(l.Request("GET", "/sched/"+harness.Version+"/jobs", "").Want(t, 200).List("jobs"))
	}
	submit := func() harness.Answer {
		return l.Request("POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", nil))
	}
	before := jobs()
	a := submit().Want(t, 503)
	if a.Header.Get("Retry-After") == "" || !strings.Contains(a.Text, "unavailable") {
		t.Errorf("%v %s", a.Header, a.Text)
	}
	if n := jobs(); n != before {
		t.Errorf("%d jobs, there were %d", n, before)
	}
	empty(t, filepath.Dir(log))
	submit().Want(t, 200)
	harness.Eventually(t, "an outcome", func() bool {
		raw, err := os.ReadFile(log)
		return err == nil && bytes.Contains(raw, []byte(`"ended":"reported"`))
	})
}

// TestAuditAtLimit checks that a limit on the file's size (ulimit -f) has the
// same effect as a full disk, and that no line is appended to a truncated line.
func TestAuditAtLimit(t *testing.T) {
	t.Parallel()
	var log string
	l := harness.NewLab(t, harness.WithAuditLog(&log))
	submit := func() harness.Answer {
		return l.Request("POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", nil))
	}
	submit().Want(t, 200)
	awaitAudit(t, 2, log)
	info, err := os.Stat(log)
	harness.Must(t, err)
	var oldLimit unix.Rlimit
	pid := l.Daemons["schedrestd"].PID()
	limit := func(l unix.Rlimit) { // the next auditor inherits the parent's limit
		harness.Must(t, unix.Prlimit(pid, unix.RLIMIT_FSIZE, &l, nil))
		victim := harness.DescendantNamed(t, pid, "schedrestd-audi")
		if victim == 0 {
			t.Fatal("there is no auditor")
		}
		harness.Must(t, syscall.Kill(victim, syscall.SIGKILL))
		harness.Eventually(t, "the next auditor", func() bool {
			next := harness.DescendantNamed(t, pid, "schedrestd-audi")
			return next != 0 && next != victim
		})
	}
	harness.Must(t, unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &oldLimit))
	limit(unix.Rlimit{Cur: uint64(info.Size()) + 10, Max: oldLimit.Max})
	harness.Eventually(t, "half a line", func() bool { // the next auditor writes half a line as soon as a submission reaches a worker that uses this auditor
		submit().Want(t, 503)
		now, err := os.Stat(log)
		return err == nil && now.Size() > info.Size()
	})
	for range 3 {
		submit().Want(t, 503)
	}
	l.Request("GET", "/sched/"+harness.Version+"/jobs", "").Want(t, 200)
	limit(oldLimit)
	harness.Eventually(t, "changes are made again", func() bool { return submit().Status == 200 })
	harness.Eventually(t, "its outcome", func() bool {
		raw, err := os.ReadFile(log)
		return err == nil && bytes.Count(raw, []byte("\n")) == 5
	})
	raw, err := os.ReadFile(log)
	harness.Must(t, err)
	for i, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		if cut := i == 2; json.Valid([]byte(line)) == cut || cut && len(line) != 10 {
			t.Errorf("line %d is %q", i+1, line)
		}
	}
}

// TestAuditBecomesUser checks the audit log of a gateway with become_user. In
// addition to the user that the worker reports, the log must contain the peer
// that the kernel reports.
func TestAuditBecomesUser(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	path, log := filepath.Join(harness.SocketDir(t, l), "s"), filepath.Join(l.Dir, "audit.log")
	l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=become_user", "SCHEDRESTD_AUDIT_LOG=" + log}, "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+path)
	l.OwnToken = "" // the kernel identifies the user
	a, err := l.RequestAs(1, 20101, path, "POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", map[string]any{"standard_output": "/dev/null"}))
	harness.Must(t, err)
	a.Want(t, 200)
	for _, line := range awaitAudit(t, 2, log) {
		g, w := line.Gateway, line.Worker
		if g.Network != "unix" || g.PeerUID == nil || *g.PeerUID != 1 || g.WorkerUID != 1 || w.UID == nil || *w.UID != 1 || w.User != "" {
			t.Errorf("%+v", line)
		}
	}
}

// TestAuditInetd checks that changes are logged as usual in inetd mode, and
// that they are logged before the gateway exits.
func TestAuditInetd(t *testing.T) {
	t.Parallel()
	var log string
	l := harness.NewDaemons(t, harness.WithAuditLog(&log))
	job := l.JobRequest("true", nil)
	cmd := l.InetdCommand("-a", "rest_auth/jwt")
	cmd.Stdin = strings.NewReader("POST http://localhost/sched/v0.0.43/job/submit HTTP/1.1\r\nX-SCHED-USER-TOKEN: " + l.OwnToken +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(job)) + "\r\n\r\n" + job)
	out, stderr, status := harness.RunCommand(t, cmd)
	if got := harness.Statuses(harness.ParseAnswers(t, out)); got != "[200]" || status != 0 {
		t.Fatalf("%s, exit status %d\n%s", got, status, stderr)
	}
	lines := auditLines(t, log)
	if len(lines) != 2 || lines[1].Gateway.Network != "stdio" || lines[1].Gateway.Ended != "reported" || lines[1].Worker.Status != 200 {
		t.Errorf("%+v", lines)
	}

	// A start that fails because the worker's program is missing creates no
	// log.
	cmd = l.InetdCommand("-a", "rest_auth/jwt")
	cmd.Path = filepath.Join(l.Dir, "schedrestd")
	harness.Must(t, programtest.Copy(filepath.Join(harness.Bin, "schedrestd"), cmd.Path, 0o755))
	harness.Must(t, programtest.Copy(filepath.Join(harness.Bin, "schedrestd-config"), cmd.Path+"-config", 0o711))
	cmd.Env = append(cmd.Env, "SCHEDRESTD_AUDIT_LOG="+log+".none")
	_, stderr, status = harness.RunCommand(t, cmd)
	if _, err := os.Stat(log + ".none"); status == 0 || !strings.Contains(stderr, "schedrestd-worker") || err == nil {
		t.Errorf("exit status %d, %v\n%s", status, err, stderr)
	}
}
