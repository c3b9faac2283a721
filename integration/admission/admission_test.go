package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// limitedGateway is a gateway with its own admission settings.
type limitedGateway struct {
	*harness.Gateway
	address string
}

// startLimited starts a gateway with the admission settings in env.
func startLimited(t *testing.T, l *harness.Lab, env ...string) *limitedGateway {
	t.Helper()
	a := &limitedGateway{address: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))}
	a.Gateway = l.StartGateway(t, env, a.address)
	return a
}

// newSource returns a client that connects over the loopback interface with the
// given uid. For penalties, each uid on this interface counts as a separate
// client. The client keeps its connection open if keep is set.
func newSource(t *testing.T, uid uint32, keep bool) *http.Client {
	t.Helper()
	tr := &http.Transport{DialContext: dialerAs(t, uid), DisableKeepAlives: !keep, MaxConnsPerHost: 1,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// Uids that exist on every Debian system. The tests use them in addition to the
// uid of the user who runs the tests.
const (
	daemonUser = 1
	binUser    = 2
)

var ownUID = uint32(os.Getuid())

// dialerAs returns a function that connects as uid.
func dialerAs(t *testing.T, uid uint32) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	var d net.Dialer
	if uid == ownUID {
		return d.DialContext
	}
	harness.NeedRoot(t)
	return func(ctx context.Context, network, address string) (c net.Conn, err error) {
		return c, thread.RunAs(uid, uid, func() error {
			c, err = d.DialContext(ctx, network, address)
			return err
		})
	}
}

const badToken = "X-SCHED-USER-TOKEN: eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJ4IiwiZXhwIjo5OTk5OTk5OTk5fQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// newGuess returns a bad token that has not been sent before. (Sending the same
// bad token again is not an offence.) The method ping replaces each
// guessPlaceholder among its headers with a new guess.
func newGuess() string {
	i := len(badToken) - 11
	return badToken[:i] + fmt.Sprintf("%010d", guesses.Add(1)) + badToken[i+10:]
}

const guessPlaceholder = "X-SCHED-USER-TOKEN: another guess"

var guesses atomic.Uint32

// ping sends a ping and returns the status, or 0 if the connection was closed
// without an answer.
func (a *limitedGateway) ping(c *http.Client, headers ...string) (int, http.Header) {
	a.T.Helper()
	headers = slices.Clone(headers)
	for i, h := range headers {
		if h == guessPlaceholder {
			headers[i] = newGuess()
		}
	}
	l := *a.Lab
	l.URL = "http://" + a.address
	got, err := l.TryRequest(c, "GET", "/sched/v0.0.43/ping", "", headers...)
	if err != nil {
		return 0, nil
	}
	return got.Status, got.Header
}

// pingUntil sends pings until one is answered with the given status, and
// returns the header of that answer. It also returns the number of earlier
// answers for each status.
func (a *limitedGateway) pingUntil(c *http.Client, status int, headers ...string) (counts map[int]int, h http.Header) {
	a.T.Helper()
	counts = map[int]int{}
	for deadline := time.Now().Add(time.Minute); ; {
		got, h := a.ping(c, headers...)
		if got == status {
			return counts, h
		}
		if counts[got]++; time.Now().After(deadline) {
			a.T.Fatalf("never answered with %d, but %v", status, counts)
		}
		if got != http.StatusUnauthorized {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// explain checks what schedctl finds about a request in the gateway's log. The
// request may have been refused before a worker read it.
func (a *limitedGateway) explain(id string, wants ...string) {
	a.T.Helper()
	var out []byte
	harness.Eventually(a.T, "the log has the request "+id, func() bool {
		cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), "explain", id)
		cmd.Stdin = strings.NewReader(a.Logged())
		var err error
		out, err = cmd.CombinedOutput()
		return err == nil
	})
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			a.T.Errorf("schedctl explain says no %q:\n%s", want, out)
		}
	}
}

// TestPenalties checks that a client that keeps sending bad tokens is blocked.
// The dispatcher must block new connections of the client, and the client's
// worker must block requests on open connections. Other clients must be served,
// and the block must expire.
func TestPenalties(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_PENALTIES=threshold:10s")
	bad := newSource(t, ownUID, true)
	counts, h := a.pingUntil(bad, http.StatusTooManyRequests, guessPlaceholder)
	if counts[http.StatusUnauthorized] < 10 {
		t.Errorf("it received 429 after %v", counts)
	}
	if wait, err := strconv.Atoi(h.Get("Retry-After")); err != nil || wait < 1 || wait > 10 || h.Get("X-Request-Id") == "" {
		t.Errorf("the worker's answer: %v", h)
	}
	// On a slow machine the first block may have expired already. Each block is
	// longer than the one before it.
	fresh := newSource(t, ownUID, false)
	if _, h = a.pingUntil(fresh, http.StatusTooManyRequests, guessPlaceholder); h.Get("Retry-After") == "" || h.Get("X-Request-Id") == "" {
		t.Errorf("no Retry-After or X-Request-Id: %v", h)
	}
	a.explain(h.Get("X-Request-Id"), "status   429 Too Many Requests\n", "\nremedy   One address sent many different bad tokens")
	for range 5 {
		if status, _ := a.ping(newSource(t, daemonUser, false)); status != http.StatusOK {
			t.Errorf("another source: %d", status)
		}
	}
	a.pingUntil(fresh, http.StatusOK)
	a.pingUntil(bad, http.StatusOK)

	harness.Must(t, syscall.Kill(a.PID(), syscall.SIGUSR1))
	a.Eventually(t, "the counters are in the log", func() bool { return harness.ParentCounts.MatchString(a.Logged()) })
	if log := a.Logged(); !strings.Contains(log, "source blocked") || !strings.Contains(log, fmt.Sprintf("source=\"uid %d\"", ownUID)) || strings.Contains(log, "turned_away.blocked=0 ") || strings.Contains(log, "penalties.auth=0 ") {
		t.Errorf("the log:\n%s", strings.Join(a.LastLines(8), "\n"))
	}
	for _, pid := range a.Workers() { // a signal to all processes of the program must do no harm
		harness.Must(t, syscall.Kill(pid, syscall.SIGUSR1))
	}
	if status, _ := a.ping(newSource(t, ownUID, false)); status != http.StatusOK {
		t.Errorf("after the signal: %d", status)
	}
}

// TestPenaltiesOfLoopback checks the penalties for a user of this machine who
// guesses tokens. They must be the same on all addresses of the loopback
// interface, and must not block other users there.
func TestPenaltiesOfLoopback(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_PENALTIES=threshold:10s")
	n := 0
	from := func() *http.Client {
		n++
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}}
		return &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}, Timeout: time.Minute}
	}
	harness.Eventually(t, "guesses from all addresses are blocked", func() bool {
		status, _ := a.ping(from(), guessPlaceholder)
		return status == http.StatusTooManyRequests
	})
	if n < 10 {
		t.Errorf("after %d guesses", n)
	}
	if status, _ := a.ping(newSource(t, daemonUser, false)); status != http.StatusOK {
		t.Errorf("another user: %d", status)
	}
	a.pingUntil(from(), http.StatusOK)
}

// TestMalformedPenalties checks that malformed requests count as offences, too.
func TestMalformedPenalties(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_PENALTIES=threshold:5s,auth:0s")
	firstLine := func() string {
		c, err := net.Dial("tcp", a.address)
		harness.Must(t, err)
		defer c.Close()
		io.WriteString(c, "this is no request\r\n\r\n")
		text, _ := io.ReadAll(c)
		line, _, _ := strings.Cut(string(text), "\r\n")
		return line
	}
	harness.Eventually(t, "the source is blocked", func() bool { return strings.Contains(firstLine(), " 429 ") })
	if status, _ := a.ping(newSource(t, daemonUser, false)); status != http.StatusOK {
		t.Errorf("another source: %d", status)
	}
	a.pingUntil(newSource(t, ownUID, false), http.StatusOK)
}

// TestExempt checks that clients with exempt addresses get no penalties, and
// that no client gets a penalty if penalties are turned off.
func TestExempt(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	for _, env := range [][]string{
		{"SCHEDRESTD_PENALTIES=threshold:1s", "SCHEDRESTD_EXEMPT=192.0.2.0/24,127.0.0.0/24"},
		{"SCHEDRESTD_PENALTIES=threshold:1s", "SLURMRESTD_TRUSTED_PROXIES=127.0.0.1"},
		{"SCHEDRESTD_PENALTIES=off"},
	} {
		a := startLimited(t, l, env...)
		c := newSource(t, ownUID, false)
		for range 40 {
			if status, _ := a.ping(c, guessPlaceholder); status != http.StatusUnauthorized {
				t.Fatalf("%v: %d", env, status)
			}
		}
	}
}

// TestForwarded checks that the gateway blocks the client whose address a
// trusted proxy forwards, and not the proxy. Addresses that the client has
// written into X-Forwarded-For must change nothing.
func TestForwarded(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_PENALTIES=threshold:5s", "SCHEDRESTD_TRUSTED_PROXIES=127.0.0.1,10.1.1.1")
	proxy := newSource(t, ownUID, true)
	a.pingUntil(proxy, http.StatusTooManyRequests, guessPlaceholder, "X-Forwarded-For: 203.0.113.9")
	a.pingUntil(proxy, http.StatusTooManyRequests, guessPlaceholder, "X-Forwarded-For: 198.51.100.1, 203.0.113.9, 10.1.1.1")
	for _, client := range []string{"203.0.113.10", "203.0.113.9, 203.0.113.10", "2001:db8::1"} {
		if status, _ := a.ping(proxy, "X-Forwarded-For: "+client); status != http.StatusOK {
			t.Errorf("for %s: %d", client, status)
		}
	}
	a.pingUntil(proxy, http.StatusOK, "X-Forwarded-For: 203.0.113.9")
	for _, want := range []string{" msg=\"source behind a proxy blocked\" ", "forwarded_for=203.0.113.9", "forwarded_for=2001:db8::1"} {
		if !strings.Contains(a.Logged(), want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if strings.Contains(a.Logged(), "198.51.100.1") {
		t.Error("the log has the address that the client wrote")
	}
}

// TestForwardedBySocket checks penalties on a UNIX socket to which all users
// may connect. Only the proxy's own user may forward the address of a client.
// If another user writes an address into X-Forwarded-For, the address must not
// be blocked, and the user must still be blocked.
func TestForwardedBySocket(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t)
	path := filepath.Join(harness.SocketDir(t, l), "s")
	a := &limitedGateway{address: "gateway", Gateway: l.StartGateway(t, []string{"SCHEDRESTD_PENALTIES=auth:3s,threshold:5s", "SCHEDRESTD_TRUSTED_PROXIES=unix:20013"}, "unix:"+path)}
	clientAs := func(uid uint32) *http.Client {
		return harness.NewClient(func() (net.Conn, error) { return thread.DialAs(uid, uid, path) })
	}
	attempts := 0
	harness.Eventually(t, "a client that writes others' addresses is blocked", func() bool {
		attempts++
		status, _ := a.ping(clientAs(20014), guessPlaceholder, fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", attempts%250))
		return status == http.StatusTooManyRequests
	})
	for i := range 9 {
		if status, _ := a.ping(clientAs(20013), fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i+1)); status != http.StatusOK {
			t.Errorf("the proxy, for one of them: %d", status)
		}
	}
	a.pingUntil(clientAs(20013), http.StatusTooManyRequests, guessPlaceholder, "X-Forwarded-For: 203.0.113.9")
	if status, _ := a.ping(clientAs(20013), "X-Forwarded-For: 203.0.113.10"); status != http.StatusOK {
		t.Errorf("the proxy, for another: %d", status)
	}
}

// TestCrashPenalty checks that a client is blocked if workers crash while its
// requests are in progress.
func TestCrashPenalty(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_PENALTIES=crash:4s,threshold:3s")
	c, err := dialerAs(t, binUser)(context.Background(), "tcp", a.address)
	harness.Must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "POST /sched/v0.0.43/job/submit HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", a.Lab.OwnToken)
	if text, err := io.ReadAll(io.LimitReader(c, 12)); err != nil || string(text) != "HTTP/1.1 100" {
		t.Fatalf("%v: %q", err, text)
	}
	for _, pid := range a.Workers() {
		harness.Must(t, syscall.Kill(pid, syscall.SIGSEGV)) // Go's runtime treats the signal like an invalid memory access
	}
	a.Eventually(t, "the crash is noticed", func() bool { return strings.Contains(a.Logged(), "last=crash") })
	if !strings.Contains(a.Logged(), `source="uid 2"`) {
		t.Errorf("another client is blocked:\n%s", strings.Join(a.LastLines(8), "\n"))
	}
	a.pingUntil(newSource(t, ownUID, false), http.StatusOK)
	a.pingUntil(newSource(t, binUser, false), http.StatusOK)
}

// TestUserPenalties checks that, with become_user, a user's offences count only
// against that user.
func TestUserPenalties(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t)
	path := filepath.Join(harness.SocketDir(t, l), "s")
	g := l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=become_user", "SCHEDRESTD_PENALTIES=threshold:5s"},
		"-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+path)
	send := func(uid uint32, headers ...string) int {
		c := harness.NewClient(func() (net.Conn, error) { return thread.DialAs(uid, uid, path) })
		a, err := l.TryRequest(c, "GET", "/sched/v0.0.43/ping", "", append(headers, "X-SCHED-USER-TOKEN:")...)
		if err != nil && strings.Contains(err.Error(), "readLoopPeekFailLocked") {
			return 0 // the gateway answered before the request was sent, which net/http reports as an error
		}
		harness.Must(t, err)
		return a.Status
	}
	attempts := 0
	harness.Eventually(t, "the client is blocked", func() bool {
		attempts++
		return send(1, fmt.Sprintf("X-SCHED-USER-NAME: somebody-else%d", attempts)) == http.StatusTooManyRequests
	})
	if status := send(2); status != http.StatusOK {
		t.Errorf("another user: %d", status)
	}
	if !strings.Contains(g.Logged(), `source="uid 1"`) {
		t.Errorf("the log:\n%s", strings.Join(g.LastLines(8), "\n"))
	}
	harness.Eventually(t, "the block expires", func() bool { return send(1) == http.StatusOK })
}

// TestPenaltiesOfHTTP2 checks that each stream counts as a request. After too
// many bad tokens, further streams of the connection must get 429, and new
// connections of the client must be closed. Another client must be served, and
// the block must expire.
func TestPenaltiesOfHTTP2(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	harness.Must(t, s.Daemons["schedrestd"].Stop())
	s.Restd.Env = append(s.Restd.Env, "SCHEDRESTD_PENALTIES=threshold:5s")
	s.Up(s.Restd)
	c := newSource(t, ownUID, true)
	send := func(c *http.Client, token string) (int, int) {
		req, err := http.NewRequestWithContext(context.Background(), "GET", "https://"+s.Addr+"/sched/"+harness.Version+"/ping", nil)
		harness.Must(t, err)
		req.Header.Set("X-SCHED-USER-TOKEN", token)
		resp, err := c.Do(req)
		if err != nil {
			return 0, 0
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.ProtoMajor
	}
	bad := func() string { return strings.TrimPrefix(newGuess(), "X-SCHED-USER-TOKEN: ") }
	harness.Eventually(t, "the streams are blocked", func() bool {
		status, proto := send(c, bad())
		return status == http.StatusTooManyRequests && proto == 2
	})
	harness.Eventually(t, "new connections are closed", func() bool {
		status, _ := send(newSource(t, ownUID, false), bad())
		return status == 0
	})
	if status, proto := send(newSource(t, daemonUser, true), s.OwnToken); status != http.StatusOK || proto != 2 {
		t.Errorf("another source: %d over HTTP/%d", status, proto)
	}
	harness.Eventually(t, "the block expires", func() bool {
		status, _ := send(c, s.OwnToken)
		return status == http.StatusOK
	})
}

// TestRate checks that a user who exceeds the request rate gets 429 and
// Retry-After, and is served again later. A request with a bad token must not
// count towards a user's rate.
func TestRate(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_RATE=1:3")
	c := newSource(t, ownUID, true)
	if _, h := a.pingUntil(c, http.StatusTooManyRequests); h.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", h.Get("Retry-After"))
	}
	if status, _ := a.ping(c, badToken); status != http.StatusUnauthorized {
		t.Errorf("a request without a user was counted in a user's rate: %d", status)
	}
	a.pingUntil(c, http.StatusOK)
}

// TestCounters sends SIGUSR1. The gateway, each worker, the keeper and the
// resolver must then log their counters, which include the earlier requests.
func TestCounters(t *testing.T) {
	t.Parallel()
	var log string
	s := harness.NewTLSLab(t)
	harness.Must(t, s.Daemons["schedrestd"].Stop())
	harness.WithAuditLog(&log)(s.Lab)
	harness.WithOptions(nil, "SCHEDRESTD_PENALTIES=threshold:1h", "SCHEDRESTD_RATE=1:3")(s.Lab) // its requests for readiness need no token, so no rate delays them
	s.Up(s.Restd)
	g := &harness.Gateway{Daemon: s.Daemons["schedrestd"], Lab: s.Lab, T: t}
	c := newSource(t, ownUID, false)
	bad := harness.TamperSignature(s.OwnToken)
	for _, token := range []string{bad, harness.TamperSignatureAt(s.OwnToken, 21), s.OwnToken, s.OwnToken, s.OwnToken, s.OwnToken, s.OwnToken, s.OwnToken, s.OwnToken, s.OwnToken} {
		req, err := http.NewRequest("GET", "https://"+s.Addr+"/sched/"+harness.Version+"/ping", nil)
		harness.Must(t, err)
		req.Header.Set("X-SCHED-USER-TOKEN", token)
		resp, err := c.Do(req)
		harness.Must(t, err)
		resp.Body.Close()
	}
	garbage, err := net.Dial("tcp", s.Addr)
	harness.Must(t, err)
	io.WriteString(garbage, "this is no handshake")
	io.Copy(io.Discard, garbage)
	garbage.Close()

	harness.Eventually(t, "all processes have logged their counters", func() bool { // the gateway counts the malformed request a moment after the client has the answer
		harness.Must(t, syscall.Kill(g.PID(), syscall.SIGUSR1))
		time.Sleep(200 * time.Millisecond)
		text := g.Logged()
		return strings.Contains(text, "penalties.malformed=1") && harness.KeeperCounts.MatchString(text) && harness.ResolverCounts.MatchString(text) && len(harness.WorkerCounts.FindAllString(text, -1)) >= len(g.Workers())
	})
	sums := map[string]int{}
	for line := range strings.Lines(g.Logged()) {
		_, rest, ok := strings.Cut(line, "counters")
		for pair := range strings.FieldsSeq(rest) {
			key, value, _ := strings.Cut(pair, "=")
			if n, err := strconv.Atoi(value); ok && err == nil {
				sums[key] += n
			}
		}
	}
	for key, minimum := range map[string]int{"connections.accepted": 11, "penalties.auth": 2, "penalties.malformed": 1, "workers.started": 2, "dials.opened": 1,
		"requests.read": 10, "requests.unauthenticated": 2, "requests.rate": 1, "malformed.handshakes": 1, "offences.reported": 3, "rates.identities": 1,
		"handshakes.signed": 1, "tokens.genuine": 1, "tokens.forged": 2, "clients": 2} {
		if sums[key] < minimum {
			t.Errorf("%s is %d, at least %d were expected", key, sums[key], minimum)
		}
	}
	for _, key := range []string{"audit.lines", "audit.granted", "requests.paused", "workers.died", "turned_away.blocked"} {
		if n, ok := sums[key]; !ok || n != 0 {
			t.Errorf("%s is %d, %t", key, n, ok)
		}
	}
}
