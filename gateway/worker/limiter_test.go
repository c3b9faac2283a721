package worker

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// newLimitedHandler returns a server that answers at most the given number of
// requests concurrently. Each further request waits for its turn, but no longer
// than patience.
func newLimitedHandler(requests uint32, patience time.Duration, h http.HandlerFunc) http.Handler {
	setup := work.Setup{Setup: ipc.Setup{Requests: requests}, Limits: testLimits}
	setup.Limits.Call = patience
	return newServer(nil, &setup, h, keys.New(), nil).handler
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
	h := newLimitedHandler(3, time.Minute, func(http.ResponseWriter, *http.Request) {
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

// TestOverloaded checks that a request that waits too long for its turn gets an
// answer with Retry-After and the envelope. /healthz must always be served.
func TestOverloaded(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	h := newLimitedHandler(1, time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
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

// TestTrackerReportsLastingStates checks that a short stage is not reported,
// and that a lasting one is reported once. After the message ConnectionClosed,
// the tracker must report nothing more about the connection.
func TestTrackerReportsLastingStates(t *testing.T) {
	var mu sync.Mutex
	var sent []ipc.Message
	w := newConnTracker(func(m ipc.Message) error {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, m)
		return nil
	})
	w.track(1)
	c := w.lookup(1)
	at := time.Now()
	expect := func(after time.Duration, want ...work.Stage) {
		t.Helper()
		at = at.Add(after)
		var got []work.Stage
		for _, m := range w.dueReports(at) {
			got = append(got, m.Stage)
		}
		if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
			t.Errorf("reported %v, want %v", got, want)
		}
	}
	stage := func(s work.Stage) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.setStage(c, s)
		c.since = at
	}
	w.mu.Lock()
	w.reportScheduled = true // so that the tracker does not call reportStages itself
	w.mu.Unlock()
	stage(work.Waiting)
	expect(reportDelay) // the client may only be slow
	expect(silentReportDelay, work.Waiting)
	for range 10 { // the connection is busy
		stage(work.Answering)
		expect(reportDelay / 4)
		stage(work.Idle)
		expect(reportDelay / 4)
	}
	expect(reportDelay, work.Idle)
	expect(reportDelay)
	stage(work.Answering)
	expect(reportDelay, work.Answering)
	stage(work.Idle)
	w.recordClose(1)
	w.recordClose(1)
	expect(time.Hour)
	mu.Lock()
	defer mu.Unlock()
	done := 0
	for _, m := range sent {
		if _, ok := m.(*work.ConnectionClosed); ok {
			done++
		}
	}
	if _, ok := sent[0].(*work.ConnectionTaken); !ok || done != 1 {
		t.Errorf("sent %v", sent)
	}
}
