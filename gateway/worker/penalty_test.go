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
	"schedrestd/gateway/worker/count"
	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

func ipcRate(rate, burst uint32) work.Admission { return work.Admission{Rate: rate, Burst: burst} }

var testAdmission = work.Admission{Auth: time.Second, Malformed: time.Second, Threshold: 3 * time.Second,
	Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8:f::/48")},
	Exempt:  []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, ProxyUIDs: []uint32{13}}

// requestFrom returns a request from addr with one X-Forwarded-For header for
// each string in forwarded.
func requestFrom(addr string, forwarded ...string) *http.Request {
	r := httptest.NewRequest("GET", "/x", nil)
	for _, text := range forwarded {
		r.Header.Add("X-Forwarded-For", text)
	}
	p := auth.Peer{Network: "tcp", Addr: addr, UID: ipc.NoID}
	if uid, ok := strings.CutPrefix(addr, "uid "); ok {
		n, _ := strconv.Atoi(uid)
		p.Network, p.Addr, p.UID = "unix", "", uint32(n)
	}
	return r.WithContext(auth.WithPeer(r.Context(), p))
}

var guesses atomic.Uint64

// withGuess adds to r a token that no request has sent before.
func withGuess(r *http.Request) *http.Request {
	r.Header.Set("X-SCHED-USER-TOKEN", fmt.Sprint("guess ", guesses.Add(1)))
	return r
}

// TestForwardedFor checks that the client of a trusted proxy is the last
// address in X-Forwarded-For that does not belong to a proxy. If the request
// does not come from a trusted proxy, the header must be ignored.
func TestForwardedFor(t *testing.T) {
	o := newOffences(testAdmission, newConnTracker(nil), new(count.Counters))
	for _, tt := range []struct {
		name, addr string
		forwarded  []string
		want       string
	}{
		{"one", "192.0.2.1:5", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the client wrote one too", "192.0.2.1:5", []string{"10.0.0.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "192.0.2.1:5", []string{"10.0.0.1, 203.0.113.9, 192.0.2.77"}, "203.0.113.9"},
		{"two lines", "192.0.2.1:5", []string{"10.0.0.1", "203.0.113.9"}, "203.0.113.9"},
		{"of IPv6", "[2001:db8:f::1]:5", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::"},
		{"with a port", "192.0.2.1:5", []string{"[2001:db8:1:2::9]:443"}, "2001:db8:1:2::"},
		{"mapped", "[::ffff:192.0.2.1]:5", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"through a UNIX socket", "uid 13", []string{"203.0.113.9"}, "203.0.113.9"},
		{"another user through it", "uid 1000", []string{"203.0.113.9"}, ""},
		{"a client", "203.0.113.1:5", []string{"10.0.0.1"}, ""},
		{"nothing", "192.0.2.1:5", nil, ""},
		{"garbage", "192.0.2.1:5", []string{"203.0.113.9, unknown"}, ""},
		{"empty", "192.0.2.1:5", []string{""}, ""},
		{"only proxies", "192.0.2.1:5", []string{"192.0.2.3, 192.0.2.2"}, ""},
		{"an exempt one", "192.0.2.1:5", []string{"198.51.100.7"}, ""},
	} {
		got := o.proxiedSource(requestFrom(tt.addr, tt.forwarded...))
		if got.IsValid() != (tt.want != "") || got.IsValid() && got.String() != tt.want {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
}

// TestForwardedPenalties checks two clients of one proxy. The client that sends
// invalid credentials must be blocked, and the other must not.
func TestForwardedPenalties(t *testing.T) {
	setup := work.Setup{Setup: ipc.Setup{Requests: 4}, Limits: testLimits, Admission: testAdmission}
	s := newServer(nil, &setup, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), keys.New(), nil)
	ask := func(forwarded string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, withGuess(requestFrom("192.0.2.1:5", forwarded)))
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
	setup := work.Setup{Setup: ipc.Setup{Requests: 4}, Limits: testLimits, Admission: testAdmission}
	s := newServer(nil, &setup, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), keys.New(), nil)
	s.tracker.send = func(ipc.Message) error { return nil }
	ask := func(id uint64, addr, path string, forwarded ...string) (int, string) {
		r := withGuess(requestFrom(addr, forwarded...))
		r.URL.Path = path
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connStateKey{}, s.tracker.lookup(id))))
		return w.Code, w.Header().Get("Connection")
	}
	s.tracker.track(1)
	s.tracker.track(2)
	if status, ends := ask(1, "203.0.113.9:5", "/"); status != http.StatusUnauthorized || ends != "" {
		t.Errorf("before: %d, Connection: %s", status, ends)
	}
	s.tracker.pause(1, time.Minute)
	if status, ends := ask(1, "203.0.113.9:5", "/"); status != http.StatusTooManyRequests || ends != "close" {
		t.Errorf("in the pause: %d, Connection: %s", status, ends)
	}
	if status, ends := ask(1, "203.0.113.9:5", "/healthz"); status == http.StatusTooManyRequests || ends != "close" {
		t.Errorf("/healthz in the pause: %d, Connection: %s", status, ends)
	}
	for range 10 {
		ask(2, "192.0.2.1:5", "/", "203.0.113.10")
	}
	if status, ends := ask(2, "192.0.2.1:5", "/", "203.0.113.10"); status != http.StatusTooManyRequests || ends != "" {
		t.Errorf("through a proxy: %d, Connection: %s", status, ends)
	}
}

// TestPausedInTheQueue checks that a request that waits for its turn is refused
// when its client is blocked.
func TestPausedInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setup := work.Setup{Setup: ipc.Setup{Requests: 1}, Limits: testLimits, Admission: testAdmission}
		release, served := make(chan bool), 0
		s := newServer(nil, &setup, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			served++
			<-release
		}), keys.New(), nil)
		s.tracker.send = func(ipc.Message) error { return nil }
		answers := make(chan *httptest.ResponseRecorder, 2)
		for id := range uint64(2) {
			s.tracker.track(id)
			go func() {
				r, w := requestFrom("203.0.113.9:5"), httptest.NewRecorder()
				s.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connStateKey{}, s.tracker.lookup(id))))
				answers <- w
			}()
			synctest.Wait()
		}
		s.tracker.pause(1, time.Hour)
		release <- true
		if w := <-answers; w.Code != http.StatusOK {
			t.Errorf("the first: %d", w.Code)
		}
		w := <-answers
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Connection") != "close" || served != 1 {
			t.Errorf("the second: %d, Connection: %s; %d were served", w.Code, w.Header().Get("Connection"), served)
		}
		if taken, _ := s.limiter.places.Counts(); taken != 0 {
			t.Errorf("%d places are taken", taken)
		}
		time.Sleep(time.Second) // until the scheduled calls of reportStages have ended
	})
}

// TestReports checks that offences are reported only for open connections, and
// only up to a limit. If penalties are disabled, no offence may be reported.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		w := newConnTracker(func(m ipc.Message) error {
			if ipc.KindOf(m) == ipc.KindOf(new(work.Offence)) {
				reports++
			}
			return nil
		})
		w.track(1)
		o := newOffences(testAdmission, w, new(count.Counters))
		want := func(name string, n int) {
			t.Helper()
			if reports != n {
				t.Errorf("%s: %d reports, want %d", name, reports, n)
			}
			reports = 0
		}
		o.reportMalformed(1)
		want("an open connection", 1)
		o.reportMalformed(2)
		want("an unknown connection", 0)
		for range 10_000 {
			o.reportMalformed(1)
		}
		want("a burst", reportBurst-2)
		time.Sleep(time.Second)
		for range 10_000 {
			o.reportMalformed(1)
		}
		want("after a second", reportRate)
		newOffences(work.Admission{}, w, new(count.Counters)).reportMalformed(1)
		want("without penalties", 0)

		w.pause(1, time.Minute)
		if w.blockedFor(w.lookup(1)) == 0 {
			t.Error("the client is not blocked")
		}
		w.pause(2, time.Minute) // the connection is closed
		w.recordClose(1)
		time.Sleep(time.Second)
		o.reportMalformed(1)
		want("a closed connection", 0)
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
		w := newConnTracker(func(m ipc.Message) error {
			if o, ok := m.(*work.Offence); ok {
				reported = append(reported, o.Credential)
			}
			return nil
		})
		w.track(1)
		o := newOffences(testAdmission, w, new(count.Counters))
		o.outOfDate = lapsed
		for _, token := range tt.tokens {
			r := requestFrom("203.0.113.9:5")
			if token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", token)
			}
			o.recordUnauthenticated(r, w.lookup(1))
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
	w := newConnTracker(func(m ipc.Message) error {
		if ipc.KindOf(m) == ipc.KindOf(new(work.Offence)) {
			reports++
		}
		return nil
	})
	w.track(1)
	o := newOffences(testAdmission, w, new(count.Counters))
	certError := func(raw string) error {
		return &tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{{Raw: []byte(raw)}}}
	}
	for _, tt := range []struct {
		err  error
		want int
	}{{certError("a"), 1}, {certError("a"), 1}, {certError("b"), 2}, {certError("a"), 2}, {errors.New("tls: no handshake"), 3}, {errors.New("tls: no handshake"), 4}, {io.EOF, 4}} {
		if o.reportHandshake(1, tt.err); reports != tt.want {
			t.Errorf("%v: %d reports, want %d", tt.err, reports, tt.want)
		}
	}
}

// TestClosedWhileAnswered checks an HTTP/2 connection that is closed while its
// requests are being answered. It must count as open until the requests end,
// and offences of its client must still be reported.
func TestClosedWhileAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []ipc.Kind
		w := newConnTracker(func(m ipc.Message) error {
			sent = append(sent, ipc.KindOf(m))
			return nil
		})
		w.track(1)
		c := w.lookup(1)
		w.beginRequest(c)
		w.beginRequest(c)
		w.recordClose(1)
		w.finishRequest(c)
		newOffences(testAdmission, w, new(count.Counters)).reportMalformed(1)
		w.finishRequest(c)
		w.recordClose(1)
		if want := []ipc.Kind{ipc.KindOf(new(work.ConnectionTaken)), ipc.KindOf(new(work.Offence)), ipc.KindOf(new(work.ConnectionClosed))}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		time.Sleep(time.Second) // until the scheduled call of reportStages has ended
	})
}
