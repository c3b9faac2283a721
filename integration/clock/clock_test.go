// Package clock tests a gateway and its daemons while the machine's clock jumps
// by more than a day. Only a virtual machine permits that: package kernels runs
// these tests in one.
package clock

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/process"
	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// mayJump is the environment variable that permits these tests to set the
// machine's clock.
const mayJump = "CLOCK_MAY_JUMP"

const base = "/sched/" + harness.Version

// site is a gateway whose state is compared before and after a jump.
type site struct {
	*harness.Lab
	https           *harness.TLSLab // serves over https
	rated, blocking string          // URLs of gateways with a limit of requests, and with penalties
	dir             string          // of the audit log and the Idempotency-Keys
	jumps           int             // how often the clock has jumped
	offset          time.Duration   // by which the clock is wrong
	made            int             // changes that were made
	ids             map[string]any  // ids of the jobs that were submitted with each key
	guesses         int             // tokens with a wrong signature
	short           string          // a token that is valid for an hour of the correct time
}

// newSite starts daemons and gateways. The token is valid before and after all
// jumps.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{ids: map[string]any{}}
	s.Lab = harness.NewLab(t, func(l *harness.Lab) {
		var log string
		harness.WithAuditLog(&log)(l)
		s.dir = filepath.Dir(log)
		l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_IDEMPOTENCY_FILE="+filepath.Join(s.dir, "keys"))
		l.OwnToken = token(t, l, l.Owner, -10*day, 10*day)
	})
	s.https = harness.NewTLSLab(t)
	s.rated = s.startGateway(t, "SCHEDRESTD_RATE=1:5")
	s.blocking = s.startGateway(t, "SCHEDRESTD_PENALTIES=threshold:2s")
	t.Cleanup(func() { _ = syscall.Kill(s.Daemons["schedctld"].PID(), syscall.SIGCONT) }) // see waitingRequest
	return s
}

const day = 24 * time.Hour

// token returns a token of a user that is valid from one time to another, both
// relative to the current time.
func token(t *testing.T, l *harness.Lab, user string, from, to time.Duration) string {
	t.Helper()
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	now := time.Now()
	return harness.NewToken(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Add(from).Unix(), "exp": now.Add(to).Unix(), "sun": user})
}

// jump changes the machine's clock.
func (s *site) jump(t *testing.T, by time.Duration) {
	t.Helper()
	want := time.Now().Round(0).Add(by) // without Round, the comparison would use the monotonic clock
	to := unix.NsecToTimespec(want.UnixNano())
	harness.Must(t, unix.ClockSettime(unix.CLOCK_REALTIME, &to))
	if time.Until(want).Abs() > time.Minute {
		t.Fatal("the clock did not change")
	}
	s.jumps++
	s.offset += by
}

// TestJumps lets the clock jump forward and back, and back and forward, by 25
// hours. An Idempotency-Key is kept for 24 hours.
func TestJumps(t *testing.T) {
	if os.Getenv(mayJump) == "" {
		t.Skipf("sets the machine's clock: set %s=1 in a virtual machine", mayJump)
	}
	harness.NeedRoot(t)
	s := newSite(t)
	before, logged := s.processes(t), len(s.Logged())
	for _, by := range []time.Duration{25 * time.Hour, -25 * time.Hour, -25 * time.Hour, 25 * time.Hour} {
		var after []func()
		for _, begin := range []func(*testing.T) func(){
			s.idleConnection, s.idleTLS, s.rate, s.penalty, s.tokens, s.keys, s.job, s.halfRequest, s.waitingRequest,
		} {
			after = append(after, begin(t))
		}
		s.jump(t, by)
		for _, check := range slices.Backward(after) {
			check()
		}
	}
	if after := s.processes(t); !slices.Equal(before, after) {
		t.Errorf("processes before %v, after %v\n%s", before, after, s.Logged())
	}
	for line := range strings.Lines(s.Logged()[logged:]) {
		if refused := strings.Contains(line, `error="no valid credential was sent: token: `); strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") && !refused {
			t.Errorf("logged: %s", line)
		}
	}
	s.checkAuditLog(t)
	s.reload(t)
}

// processes returns the gateway's processes.
func (s *site) processes(t *testing.T) (list []string) {
	t.Helper()
	all, err := process.Descendants(s.Daemons["schedrestd"].PID())
	harness.Must(t, err)
	for _, p := range all {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
		if name := strings.TrimSpace(string(comm)); strings.HasPrefix(name, "schedrestd") {
			list = append(list, name+" "+strconv.Itoa(p.PID))
		}
	}
	slices.Sort(list)
	return list
}

// get sends a GET request, and reports whether it used a connection that was
// open before.
func get(c *http.Client, url, token string) (status, proto int, reused bool, err error) {
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), "GET", url, nil)
	if err != nil {
		return 0, 0, false, err
	}
	req.Header.Set("X-SCHED-USER-TOKEN", token)
	resp, err := c.Do(req)
	if err != nil {
		return 0, 0, reused, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.ProtoMajor, reused, err
}

// idleConnection keeps an idle connection, which must serve another request
// after the jump.
func (s *site) idleConnection(t *testing.T) func() {
	c := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	request := func(wantReused bool) {
		t.Helper()
		status, _, reused, err := get(c, s.URL+base+"/jobs", s.OwnToken)
		if err != nil || status != http.StatusOK || reused != wantReused {
			t.Errorf("an idle connection: %d, %v, reused %v", status, err, reused)
		}
	}
	request(false)
	return func() { request(true); c.CloseIdleConnections() }
}

// idleTLS does the same over HTTP/2. It also resumes a TLS session.
func (s *site) idleTLS(t *testing.T) func() {
	l := s.https
	tok := token(t, l.Lab, l.Owner, -10*day, 10*day)
	sessions := tls.NewLRUClientSessionCache(4)
	newClient := func() *http.Client {
		return &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ClientSessionCache: sessions}}}
	}
	request := func(c *http.Client, wantReused bool) {
		t.Helper()
		status, proto, reused, err := get(c, "https://"+l.Addr+base+"/jobs", tok)
		if err != nil || status != http.StatusOK || proto != 2 || reused != wantReused {
			t.Errorf("HTTP/2: %d, %v, HTTP/%d, reused %v", status, err, proto, reused)
		}
	}
	c := newClient()
	request(c, false)
	return func() {
		request(c, true)
		request(newClient(), false)
	}
}

// halfRequest sends half of a submission before the jump, and the other half
// afterwards.
func (s *site) halfRequest(t *testing.T) func() {
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	harness.Must(t, err)
	body := s.JobRequest("true", map[string]any{"hold": true})
	_, err = fmt.Fprintf(c, "POST %s/job/submit HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		base, s.OwnToken, len(body), body[:len(body)/2])
	harness.Must(t, err)
	time.Sleep(200 * time.Millisecond) // the worker has the first half
	return func() {
		defer c.Close()
		_, err := io.WriteString(c, body[len(body)/2:])
		harness.Must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("a request that was sent in halves: %v, %+v", err, resp)
			return
		}
		s.made++
	}
}

// waitingRequest makes a request wait for the controller, and the controller
// answer after the jump.
func (s *site) waitingRequest(t *testing.T) func() {
	pid := s.Daemons["schedctld"].PID()
	harness.Suspend(t, pid)
	type result struct {
		status int
		err    error
	}
	done := make(chan result, 1)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		status, _, _, err := get(c, s.URL+base+"/nodes", s.OwnToken)
		done <- result{status, err}
	}()
	time.Sleep(300 * time.Millisecond) // the controller's socket has the request
	return func() {
		harness.Must(t, syscall.Kill(pid, syscall.SIGCONT))
		if r := <-done; r.err != nil || r.status != http.StatusOK {
			t.Errorf("a request that waited for the controller: %d, %v", r.status, r.err)
		}
	}
}

// tokens checks that a token is refused as soon as the clock says that it has
// expired, or has not been issued yet, although the worker has verified it
// before. When the clock is right again, the token is accepted again.
func (s *site) tokens(t *testing.T) func() {
	request := func(token string, want int) {
		t.Helper()
		if a := s.Request("GET", base+"/jobs", "", "X-SCHED-USER-TOKEN: "+token); a.Status != want {
			t.Errorf("the clock is wrong by %s, and a token has the answer %d, want %d: %s", s.offset, a.Status, want, a.Text)
		}
	}
	if s.jumps == 0 {
		s.short = token(t, s.Lab, s.Owner, -time.Minute, time.Hour)
		for range 8 { // on connections to all workers
			request(s.short, http.StatusOK)
		}
	}
	return func() {
		want := http.StatusUnauthorized
		if s.offset == 0 {
			want = http.StatusOK
		}
		request(s.short, want)
		request(s.OwnToken, http.StatusOK)
		request(token(t, s.Lab, s.Owner, -time.Second, time.Hour), http.StatusOK)
	}
}

// submit submits a job that does not start, with a key.
func (s *site) submit(t *testing.T, key string) harness.Answer {
	t.Helper()
	return s.Request("POST", base+"/job/submit", s.JobRequest("true", map[string]any{"hold": true, "name": key}), "Idempotency-Key: "+key).Want(t, http.StatusOK)
}

// keys checks that a key which was used before a jump creates no second job.
func (s *site) keys(t *testing.T) func() {
	key := fmt.Sprintf("key-%d", s.jumps)
	s.ids[key] = s.submit(t, key).Get("job_id")
	s.made++
	return func() { s.repeat(t) }
}

// repeat repeats the submissions with all keys.
func (s *site) repeat(t *testing.T) {
	t.Helper()
	for key, id := range s.ids {
		if a := s.submit(t, key); a.Get("job_id") != id || a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("after %d jumps, %s made job %v, want %v", s.jumps, key, a.Get("job_id"), id)
		}
	}
}

// startGateway starts a gateway that has its own limits and no audit log, and
// returns the URL at which it serves.
func (s *site) startGateway(t *testing.T, env ...string) string {
	t.Helper()
	part, address := s.Restd, fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	part.Args = append(slices.Clone(part.Args[:len(part.Args)-1]), address)
	part.Env = slices.DeleteFunc(slices.Clone(part.Env), func(v string) bool {
		return strings.HasPrefix(v, "SCHEDRESTD_AUDIT_LOG=") || strings.HasPrefix(v, "SCHEDRESTD_IDEMPOTENCY_FILE=")
	})
	s.StartGatewayPart(t, part, env)
	return "http://" + address
}

// awaitStatus sends requests until one has the wanted status, and returns how
// many there were. No answer may ask the client to wait for longer than longest.
func awaitStatus(t *testing.T, url string, nextToken func() string, want int, longest time.Duration) (n int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s answers %d", url, want), func() bool {
		n++
		req, err := http.NewRequest("GET", url+base+"/ping", nil)
		harness.Must(t, err)
		req.Header.Set("X-SCHED-USER-TOKEN", nextToken())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false // a connection may be closed with the answer
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && time.Duration(after)*time.Second > longest {
			t.Errorf("%s: Retry-After %d", url, after)
		}
		return resp.StatusCode == want
	})
	return n
}

// rate checks that a user who has used up the limit of requests may send some
// soon after the jump, but not more than usual.
func (s *site) rate(t *testing.T) func() {
	url := s.rated
	own := func() string { return s.OwnToken }
	awaitStatus(t, url, own, http.StatusTooManyRequests, time.Minute)
	return func() {
		awaitStatus(t, url, own, http.StatusOK, time.Minute)
		awaitStatus(t, url, own, http.StatusTooManyRequests, time.Minute)
	}
}

// penalty checks that a client that is blocked is served again soon after the
// jump. The next jump checks that it can be blocked again.
func (s *site) penalty(t *testing.T) func() {
	url := s.blocking
	guess := func() string {
		s.guesses++
		now := time.Now()
		return harness.NewToken(t, []byte("this is not the key of the cluster"), jwt.SigningMethodHS256,
			jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": s.Owner, "jti": strconv.Itoa(s.guesses)})
	}
	awaitStatus(t, url, guess, http.StatusTooManyRequests, time.Hour)
	return func() {
		awaitStatus(t, url, func() string { return s.OwnToken }, http.StatusOK, time.Hour)
	}
}

// job checks that a job runs on, and does not end before its start.
func (s *site) job(t *testing.T) func() {
	id := s.Submit("sleep 5", nil)
	s.made++
	harness.Eventually(t, "the job runs", func() bool { return strings.HasPrefix(s.Job(id).State(), "RUNNING") })
	return func() {
		a := s.AwaitEnd(id)
		number := func(name string) float64 { n, _ := a.Get("jobs", 0, name, "number").(float64); return n }
		if start, end := number("start_time"), number("end_time"); a.State() != "COMPLETED" || start == 0 || end < start {
			t.Errorf("job %d: %s, from %.0f to %.0f", id, a.State(), start, end)
		}
	}
}

// checkAuditLog checks that the audit log has an intent and an outcome for each
// change.
func (s *site) checkAuditLog(t *testing.T) {
	t.Helper()
	type line struct {
		Event, Change string
		Gateway       struct{ Ended string }
	}
	changes := map[string][]string{}
	harness.Eventually(t, "the last outcome is in the audit log", func() bool {
		clear(changes)
		text, err := os.ReadFile(filepath.Join(s.dir, "log"))
		harness.Must(t, err)
		lines := 0
		for text := range strings.Lines(string(text)) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			lines++
			changes[l.Change] = append(changes[l.Change], l.Event+" "+l.Gateway.Ended)
		}
		return lines >= 2*s.made
	})
	for change, events := range changes {
		if !slices.Equal(events, []string{"intent ", "outcome reported"}) {
			t.Errorf("change %s: %q", change, events)
		}
	}
	if len(changes) != s.made {
		t.Errorf("%d changes, want %d", len(changes), s.made)
	}
}

// reload makes the gateway read its configuration again, which also starts
// another auditor, and repeats the submissions.
func (s *site) reload(t *testing.T) {
	t.Helper()
	before := s.processes(t)
	http.DefaultClient.CloseIdleConnections() // a worker exits when it has no connection left
	harness.Must(t, syscall.Kill(s.Daemons["schedrestd"].PID(), syscall.SIGHUP))
	harness.Eventually(t, "the processes are replaced", func() bool {
		now := s.processes(t)
		return len(now) > 0 && !slices.ContainsFunc(before, func(p string) bool {
			return strings.HasPrefix(p, "schedrestd-work") && slices.Contains(now, p)
		})
	})
	s.repeat(t)
}
