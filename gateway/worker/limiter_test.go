package worker

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/limiter"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// newLimitedHandler returns a server that answers at most the given number of
// requests concurrently. Each further request waits for its turn, but no longer
// than patience.
func newLimitedHandler(t *testing.T, requests uint32, patience time.Duration, h http.HandlerFunc) http.Handler {
	setup := work.Setup{Setup: ipc.Setup{Requests: requests}, Limits: testLimits}
	setup.Limits.Call = patience
	st := newTestServer(t, setup, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st.limiter.ServeHTTP(w, r.WithContext(st.idleConn().With(r.Context())))
	})
}

// idleConn adds a connection to the table. It has no client.
func (st *testServer) idleConn() *conns.Conn {
	near, far := net.Pipe()
	st.t.Cleanup(func() { near.Close(); far.Close() })
	raw := clientconn.Wrap(near, &ipc.Connection{ID: nextID.Add(1)}, time.Minute)
	c := st.add(raw)
	c.Attach(raw, raw, nil)
	return c
}

func serveGet(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// TestRequestsAreBounded checks that the worker answers no more requests
// concurrently than its setup permits. Any further requests must wait, even
// streams of one HTTP/2 connection.
func TestRequestsAreBounded(t *testing.T) {
	var now, peak atomic.Int32
	h := newLimitedHandler(t, 3, time.Minute, func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		for {
			if old := peak.Load(); n <= old || peak.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
	})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if w := serveGet(h, "/"); w.Code != http.StatusOK {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if peak.Load() != 3 {
		t.Errorf("%d concurrently", peak.Load())
	}
}

// TestTooManyWait checks that only so many requests of a user may wait for changes
// as the setup says, that others are counted, and that a request that waits takes
// no place. Two users can't keep a third one from waiting: a request of theirs then
// has to answer.
func TestTooManyWait(t *testing.T) {
	var parked []rest.Parked
	var refused []error
	var stopped []string
	setup := work.Setup{Setup: ipc.Setup{Requests: 1, Watching: 4}, Limits: testLimits}
	st := newTestServer(t, setup, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if one, err := limiter.Park(r.Context(), r.URL.Path, func() { stopped = append(stopped, r.URL.Path) }); err != nil {
			refused = append(refused, err)
		} else {
			parked = append(parked, one)
		}
	}))
	for _, user := range []string{"/ann", "/ann", "/ann", "/bob", "/bob", "/bob", "/carl", "/carl"} {
		st.limiter.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", user, nil).WithContext(st.idleConn().With(t.Context())))
	}
	if len(parked) != 5 || len(refused) != 3 || st.counts.WaitsRefused.Total() != 3 || st.limiter.Parked() != 4 || len(stopped) != 1 {
		t.Errorf("%d wait, refused %v, counted %d and %d, stopped %q", len(parked), refused, st.limiter.Parked(), st.counts.WaitsRefused.Total(), stopped)
	}
	if errs.KindOf(refused[0]) != errs.TooMany {
		t.Errorf("refused with %v", refused[0])
	}
	for _, one := range parked {
		one.Leave()
	}
	if n := st.limiter.Parked(); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
}

// TestResume checks that a request that has waited for a change takes a place
// again, and gives it back at its end.
func TestResume(t *testing.T) {
	var st *testServer
	setup := work.Setup{Setup: ipc.Setup{Requests: 1, Watching: 4}, Limits: testLimits}
	st = newTestServer(t, setup, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		taken := func(when string, want int) {
			if got, _ := st.limiter.Places(); got != want {
				t.Errorf("%s: %d places are taken, want %d", when, got, want)
			}
		}
		taken("at the beginning", 1)
		parked, err := limiter.Park(r.Context(), "ann", func() {})
		must(t, err)
		taken("while it waits", 0)
		must(t, parked.Resume(r.Context()))
		taken("after the wait", 1)
		parked.Leave()
	}))
	st.limiter.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil).WithContext(st.idleConn().With(t.Context())))
	if got, _ := st.limiter.Places(); got != 0 {
		t.Errorf("%d places are taken at the end", got)
	}
}

// TestParkCall checks that a request that waits for an accounting daemon takes no
// place, and goes on with one afterwards, even if others have taken all of them.
func TestParkCall(t *testing.T) {
	var st *testServer
	begun, ended := make(chan struct{}), make(chan struct{})
	setup := work.Setup{Setup: ipc.Setup{Requests: 1, Watching: 4}, Limits: testLimits}
	serve := func(path string) {
		st.limiter.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil).WithContext(st.idleConn().With(t.Context())))
	}
	st = newTestServer(t, setup, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			close(begun)
			<-ended
			return
		}
		must(t, limiter.Admit(r.Context(), "ann"))
		resume, err := limiter.ParkCall(r.Context(), false, func() {})
		must(t, err)
		go serve("/other")
		<-begun // in the only place
		if n := st.limiter.Parked(); n != 1 {
			t.Errorf("%d requests wait", n)
		}
		resume()
		if n, _ := st.limiter.Places(); n != 2 || st.limiter.Parked() != 0 {
			t.Errorf("%d places are taken, %d requests wait", n, st.limiter.Parked())
		}
		close(ended)
	}))
	serve("/x")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if n, _ := st.limiter.Places(); n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a place is taken at the end")
		}
	}
}

// TestParkChange checks that a change waits for an accounting daemon even if too
// many other requests of its user do.
func TestParkChange(t *testing.T) {
	var st *testServer
	setup := work.Setup{Setup: ipc.Setup{Requests: 1, Watching: 2}, Limits: testLimits}
	st = newTestServer(t, setup, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		must(t, limiter.Admit(r.Context(), "ann"))
		if r.URL.Path == "/waits" {
			if _, err := limiter.ParkCall(r.Context(), false, func() {}); err != nil {
				t.Error(err)
			}
			return
		}
		if _, err := limiter.ParkCall(r.Context(), false, func() {}); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a call that makes no change: %v", err)
		}
		resume, err := limiter.ParkCall(r.Context(), true, func() {})
		if err != nil || st.limiter.Parked() != 2 {
			t.Fatalf("%v, %d requests wait", err, st.limiter.Parked())
		}
		resume()
	}))
	for _, path := range []string{"/waits", "/changes"} {
		st.limiter.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil).WithContext(st.idleConn().With(t.Context())))
	}
}

// TestOverloaded checks that a request that waits too long for its turn gets an
// answer with Retry-After and the envelope. /healthz must always be served.
func TestOverloaded(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	h := newLimitedHandler(t, 1, time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			inside <- struct{}{}
			<-release
		}
	})
	done := make(chan struct{})
	go func() { serveGet(h, "/long"); close(done) }()
	<-inside
	w := serveGet(h, "/")
	var body struct {
		Errors []struct {
			Code      string
			Retryable bool
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
		len(body.Errors) != 1 || body.Errors[0].Code != "unavailable" || !body.Errors[0].Retryable {
		t.Errorf("%d %v %s: %v", w.Code, w.Header(), w.Body, err)
	}
	yaml, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", "application/yaml")
	if h.ServeHTTP(yaml, r); yaml.Code != http.StatusServiceUnavailable || yaml.Header().Get("Content-Type") != "application/yaml" {
		t.Errorf("answer in YAML: %d %v %s", yaml.Code, yaml.Header(), yaml.Body)
	}
	if w := serveGet(h, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("/healthz: %d", w.Code)
	}
	close(release)
	<-done
	if w := serveGet(h, "/"); w.Code != http.StatusOK {
		t.Errorf("with a free place: %d", w.Code)
	}
}
