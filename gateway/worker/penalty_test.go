package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/auth"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/conntest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

var testAdmission = work.Admission{Auth: time.Second, Malformed: time.Second, Threshold: 3 * time.Second,
	Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8:f::/48")},
	Exempt:  []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, ProxyUIDs: []uint32{13}}

var guesses atomic.Uint64

// withGuess adds to r a token that no request has sent before.
func withGuess(r *http.Request) *http.Request {
	r.Header.Set("X-SCHED-USER-TOKEN", fmt.Sprint("guess ", guesses.Add(1)))
	return r
}

// newRejectingServer returns a server that answers each request with 401.
func newRejectingServer(t *testing.T) *testServer {
	return newTestServer(t, work.Setup{Setup: ipc.Setup{Requests: 4}, Admission: testAdmission},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
}

// TestForwardedPenalties checks two clients of one proxy. The client that sends
// invalid credentials must be blocked, and the other must not.
func TestForwardedPenalties(t *testing.T) {
	st := newRejectingServer(t)
	ask := func(forwarded string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), withGuess(conntest.RequestFrom("192.0.2.1:5", forwarded))
		st.limiter.ServeHTTP(w, r.WithContext(st.idleConn().With(r.Context())))
		return w
	}
	for i := range 4 {
		if w := ask("203.0.113.9"); w.Code != http.StatusUnauthorized {
			t.Fatalf("request %d: %d", i, w.Code)
		}
	}
	w := ask("203.0.113.9")
	if wait, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != http.StatusTooManyRequests || err != nil || wait != 1 {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if w := ask("203.0.113.10"); w.Code != http.StatusUnauthorized {
		t.Errorf("another user: %d", w.Code)
	}
}

// TestPausedConnectionEnds checks that a blocked client gets 429, and that its
// connection is closed. If the client is behind a proxy, the connection belongs
// to the proxy, and must stay open.
func TestPausedConnectionEnds(t *testing.T) {
	st := newRejectingServer(t)
	ask := func(c *conns.Conn, addr, path string, forwarded ...string) (int, string) {
		r := withGuess(conntest.RequestFrom(addr, forwarded...))
		r.URL.Path = path
		w := httptest.NewRecorder()
		st.limiter.ServeHTTP(w, r.WithContext(c.With(r.Context())))
		return w.Code, w.Header().Get("Connection")
	}
	own, ofProxy := st.idleConn(), st.idleConn()
	ownID := nextID.Load() - 1
	if status, ends := ask(own, "203.0.113.9:5", "/"); status != http.StatusUnauthorized || ends != "" {
		t.Errorf("before: %d, Connection: %s", status, ends)
	}
	st.table.Pause(ownID, time.Minute)
	if status, ends := ask(own, "203.0.113.9:5", "/"); status != http.StatusTooManyRequests || ends != "close" {
		t.Errorf("in the pause: %d, Connection: %s", status, ends)
	}
	if status, ends := ask(own, "203.0.113.9:5", "/healthz"); status == http.StatusTooManyRequests || ends != "close" {
		t.Errorf("/healthz in the pause: %d, Connection: %s", status, ends)
	}
	for range 10 {
		ask(ofProxy, "192.0.2.1:5", "/", "203.0.113.10")
	}
	if status, ends := ask(ofProxy, "192.0.2.1:5", "/", "203.0.113.10"); status != http.StatusTooManyRequests || ends != "" {
		t.Errorf("through a proxy: %d, Connection: %s", status, ends)
	}
}

// TestPausedInTheQueue checks that a request that waits for its turn is refused
// when its client is blocked.
func TestPausedInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, served := make(chan bool), 0
		st := newTestServer(t, work.Setup{Setup: ipc.Setup{Requests: 1}, Admission: testAdmission}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			served++
			<-release
		}))
		answers := make(chan *httptest.ResponseRecorder, 2)
		for range 2 {
			c := st.idleConn()
			go func() {
				r, w := conntest.RequestFrom("203.0.113.9:5"), httptest.NewRecorder()
				st.limiter.ServeHTTP(w, r.WithContext(c.With(r.Context())))
				answers <- w
			}()
			synctest.Wait()
		}
		st.table.Pause(nextID.Load(), time.Hour)
		release <- true
		if w := <-answers; w.Code != http.StatusOK {
			t.Errorf("the first: %d", w.Code)
		}
		w := <-answers
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Connection") != "close" || served != 1 {
			t.Errorf("the second: %d, Connection: %s; %d were served", w.Code, w.Header().Get("Connection"), served)
		}
		if taken, _ := st.limiter.Places(); taken != 0 {
			t.Errorf("%d places are taken", taken)
		}
		time.Sleep(time.Second) // until the scheduled calls of reportStages have ended
	})
}

// TestRejectedCredentials checks that each rejected credential is reported
// once. A credential that is only out of date must not be reported.
func TestRejectedCredentials(t *testing.T) {
	lapsed := func(_ context.Context, r auth.Rejection) bool { return r.User == "late" }
	claims := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	token := func(user string) string {
		return claims(`{"alg":"HS256"}`) + "." + claims(`{"iat":1,"exp":2,"sun":"`+user+`"}`) + "." + claims(strings.Repeat("x", 32))
	}
	for _, tt := range []struct {
		name   string
		tokens []string
		want   int
	}{
		{"one, repeated", []string{"a", "a", "a"}, 1},
		{"two, in turn", []string{"a", "b", "a", "b", "a"}, 2},
		{"none, repeated", []string{"", "", ""}, 1},
		{"guesses", []string{"a", "b", "c", "d"}, 4},
		{"genuine and expired, of one user", []string{token("late"), token("late")}, 0},
		{"expired and forged", []string{token("other"), token("other")}, 1},
	} {
		var reported []uint64
		st := newRejectingServer(t)
		st.limiter.Expired = lapsed
		st.report = func(m ipc.Message) error {
			if o, ok := m.(*work.Offence); ok {
				reported = append(reported, o.Credential)
			}
			return nil
		}
		c := st.idleConn()
		for _, token := range tt.tokens {
			r := conntest.RequestFrom("203.0.113.9:5")
			if token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", token)
			}
			st.limiter.ServeHTTP(httptest.NewRecorder(), r.WithContext(c.With(r.Context())))
		}
		slices.Sort(reported)
		if len(reported) != tt.want || len(slices.Compact(reported)) != tt.want {
			t.Errorf("%s: reported %x, want %d", tt.name, reported, tt.want)
		}
	}
}

// TestRejectedCertificates checks that a rejected certificate counts as an
// offence only once. Each malformed handshake must count.
func TestRejectedCertificates(t *testing.T) {
	reports := 0
	st := newRejectingServer(t)
	st.report = func(m ipc.Message) error {
		if ipc.KindOf(m) == ipc.KindOf(new(work.Offence)) {
			reports++
		}
		return nil
	}
	c := st.idleConn()
	certError := func(raw string) error {
		return &tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{{Raw: []byte(raw)}}}
	}
	for _, tt := range []struct {
		err  error
		want int
	}{{certError("a"), 1}, {certError("a"), 1}, {certError("b"), 2}, {certError("a"), 2}, {errors.New("tls: no handshake"), 3}, {errors.New("tls: no handshake"), 4}, {io.EOF, 4}} {
		if st.reportHandshake(c, tt.err); reports != tt.want {
			t.Errorf("%v: %d reports, want %d", tt.err, reports, tt.want)
		}
	}
}
