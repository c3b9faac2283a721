package admission

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/integration/harness"
)

// expiredTokens returns header lines with tokens that expired recently. Each
// token belongs to a different user. The users argument is the number of
// tokens.
func expiredTokens(l *harness.Lab, t *testing.T, users int) (headers []string) {
	t.Helper()
	secret, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	key, err := auth.NewKey(secret)
	harness.Must(t, err)
	for i := range users {
		token, err := auth.Create(key, fmt.Sprintf("user%d", i), time.Minute, time.Now().Add(-time.Hour))
		harness.Must(t, err)
		headers = append(headers, "X-SCHED-USER-TOKEN: "+token)
	}
	return headers
}

// TestPortal tests a portal, whose users share one address. If one user's
// tokens have expired or are rejected for another reason, no other user may be
// blocked, even if these tokens are sent repeatedly.
func TestPortal(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	a := startLimited(t, l, "SCHEDRESTD_PENALTIES=threshold:30s", "SCHEDRESTD_DEBUG=debug") // the portal is one source, so most lines would be omitted
	c := newSource(t, ownUID, false)
	rejected := make([]string, 10)
	for i := range rejected {
		rejected[i] = newGuess()
	}
	for _, tt := range []struct {
		name   string
		tokens []string
	}{{"expired", expiredTokens(l, t, 50)}, {"rejected", rejected}} {
		for i := range 200 {
			if status, _ := a.ping(c, tt.tokens[i%len(tt.tokens)]); status != http.StatusUnauthorized {
				t.Fatalf("%s token %d: %d", tt.name, i, status)
			}
			if status, _ := a.ping(c); status != http.StatusOK {
				t.Fatalf("another user, after %d %s tokens: %d", i, tt.name, status)
			}
		}
	}
	a.Eventually(t, "the log names the users", func() bool { return strings.Contains(a.Logged(), "unverified_user=user49") })

	for i := range 100 { // a client that guesses must still be blocked
		status, _ := a.ping(c, guessPlaceholder)
		if status == http.StatusTooManyRequests {
			break
		}
		if i == 99 {
			t.Errorf("guess 100 is answered with %d", status)
		}
	}
	a.Eventually(t, "the log says how to exempt a portal", func() bool { return strings.Contains(a.Logged(), "SCHEDRESTD_EXEMPT=127.0.0.0/8") })
}

// TestPortalOfFifty sends the requests of fifty users from one address. One of
// the users sends an expired token repeatedly. The others, each with a
// persistent connection, must never be refused.
func TestPortalOfFifty(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	a := startLimited(t, l)
	expired := expiredTokens(l, t, 1)[0]
	retries, pause := 300, time.Duration(0)
	if os.Getenv("PORTAL_SECONDS") != "" { // send requests at the rate of a portal
		pause = time.Second
		_, err := fmt.Sscan(os.Getenv("PORTAL_SECONDS"), &retries)
		harness.Must(t, err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	var served atomic.Int64
	for range 49 {
		c := newSource(t, ownUID, true)
		wg.Go(func() {
			for {
				if status, _ := a.ping(c); status != http.StatusOK {
					t.Errorf("another user: %d", status)
					return
				}
				served.Add(1)
				select {
				case <-done:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	c := newSource(t, ownUID, true)
	for i := range retries {
		if status, _ := a.ping(c, expired); status != http.StatusUnauthorized {
			t.Errorf("retry %d: %d", i, status)
			break
		}
		time.Sleep(pause)
	}
	close(done)
	wg.Wait()
	t.Logf("%d retries; %d requests of the others were served", retries, served.Load())
	if log := a.Logged(); strings.Contains(log, "source blocked") || strings.Contains(log, `msg="connection refused"`) {
		t.Errorf("the log:\n%s", strings.Join(a.LastLines(8), "\n"))
	}
}

// TestKilledWorkers checks that no client is penalized when workers are killed,
// not even a client that has many idle connections.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	a := startLimited(t, harness.NewLab(t), "SCHEDRESTD_PENALTIES=crash:4s,threshold:3s")
	startRequest := func() {
		c, err := net.Dial("tcp", a.address)
		harness.Must(t, err)
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST /sched/v0.0.43/job/submit HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", a.Lab.OwnToken)
		if text, err := io.ReadAll(io.LimitReader(c, 12)); err != nil || string(text) != "HTTP/1.1 100" {
			t.Fatalf("%v: %q", err, text)
		}
	}
	for range 3 {
		for range 40 {
			c := newSource(t, ownUID, true)
			if status, _ := a.ping(c); status != http.StatusOK {
				t.Fatalf("a client that had no request in progress: %d", status)
			}
		}
		for range 10 {
			startRequest()
		}
		before := strings.Count(a.Logged(), `msg="worker exited unexpectedly"`)
		workers := a.Workers()
		for _, pid := range workers {
			harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		harness.Eventually(t, "the gateway has noticed that workers were killed", func() bool {
			return strings.Count(a.Logged(), `msg="worker exited unexpectedly"`) == before+len(workers)
		})
	}
	if status, _ := a.ping(newSource(t, ownUID, false)); status != http.StatusOK || strings.Contains(a.Logged(), "source blocked") {
		t.Errorf("after it: %d\n%s", status, strings.Join(a.LastLines(8), "\n"))
	}
}
