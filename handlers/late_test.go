package handlers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/handlers/rest"
)

// A lockedRecorder records an answer that is read while it is written.
type lockedRecorder struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (w *lockedRecorder) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(text)
}

// take returns what was written since the last call.
func (w *lockedRecorder) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.Body.Reset()
	return w.Body.String()
}

// TestLate checks that a stream says how old its list is when the controller can't
// be asked, and when the list is up to date again. Comments alone would look as
// if nothing had changed.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := demo()
		l := &living{fake: f}
		cfg := config(f)
		cfg.Controller, cfg.MaxWait, cfg.WatchInterval = l, time.Minute, time.Second
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/sched/v0.0.43/partitions?fields=name", nil)
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		r.Header.Set("Accept", rest.MediaEvents)
		w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
		var client sync.WaitGroup
		client.Go(func() { newTestServer(cfg).ServeHTTP(w, r) })
		received := func(after time.Duration) string {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			return w.take()
		}
		if text := received(100 * time.Millisecond); !strings.Contains(text, `{"partitions":[{"name":"debug"}`) {
			t.Fatalf("the stream begins with %q", text)
		}
		if text := received(time.Minute); strings.Contains(text, "late") || strings.Count(text, ":\n\n") != 4 {
			t.Errorf("while the controller answers: %q", text)
		}
		setDown := func(down bool) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.down = down
		}
		setDown(true)
		if text := received(35 * time.Second); strings.Count(text, "event: late\ndata: {\"seconds\":") != 1 || strings.Contains(text, `{"seconds":0}`) || strings.Count(text, ":\n\n") < 2 {
			t.Errorf("while the controller does not answer: %q", text)
		}
		setDown(false)
		if text := received(time.Minute); strings.Count(text, `{"seconds":0}`) != 1 || !strings.HasSuffix(text, ":\n\n") {
			t.Errorf("when the controller answers again: %q", text)
		}
		l.change(func(f *fake) { f.partitions[0].Name = "short" })
		if text := received(3 * time.Second); !strings.Contains(text, "event: added\n") || strings.Contains(text, "late") {
			t.Errorf("after a change: %q", text)
		}
		leave()
		client.Wait()
		time.Sleep(time.Minute) // until the feed has ended
	})
}
