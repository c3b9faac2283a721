package rest

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/errs"
)

// TestRefusing tests a request that is refused before it reaches its endpoint.
// The answer must have the requested format, and the log line must look like
// that of any other request.
func TestRefusing(t *testing.T) {
	var log bytes.Buffer
	site := newSite(0)
	site.Log = slog.New(slog.NewTextHandler(&log, nil))
	refuse := site.server().ServeError
	for _, tt := range []struct{ accept, media, text string }{
		{"", MediaJSON, `"description":"no room"`},
		{"application/yaml", MediaYAML, "description: no room"},
		{"text/html", MediaJSON, `"code":"unavailable"`},
	} {
		log.Reset()
		r := newRequest(http.MethodPost, "/sched/v0.0.42/job/submit?token=secret", `{"job":{}}`)
		if tt.accept != "" {
			r.Header.Set("Accept", tt.accept)
		}
		w := httptest.NewRecorder()
		refuse(w, r, errs.New(errs.Unavailable, "no room"))
		h := w.Header()
		if w.Code != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || h.Get("Connection") != "close" || h.Get("X-Request-Id") == "" {
			t.Errorf("%s: status %d, %v", tt.accept, w.Code, h)
		}
		if h.Get("Content-Type") != tt.media || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s: %s: %s", tt.accept, h.Get("Content-Type"), w.Body)
		}
		want := `msg=request id=` + h.Get("X-Request-Id") + ` peer=\S* user="" method=POST path=/sched/v0.0.42/job/submit route=\S*submit\S* status=503 bytes=\d+ took=\S+ because="no room"\n$`
		if !regexp.MustCompile(want).MatchString(log.String()) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s: log %q, want %s", tt.accept, &log, want)
		}
	}
}

// TestAdmit checks that Admit can refuse a request from an authenticated user.
// The answer must say when to retry, and no daemon may be called.
func TestAdmit(t *testing.T) {
	site := newSite(0)
	var log bytes.Buffer
	site.Log = slog.New(slog.NewTextHandler(&log, nil))
	worker := new(refusal)
	site.Worker = worker
	w := site.serve(newRequest(http.MethodGet, "/sched/v0.0.42/jobs", ""))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" {
		t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if body := w.Body.String(); !strings.Contains(body, `"code":"too_many"`) || !strings.Contains(body, `"retryable":true`) {
		t.Error(body)
	}
	if !strings.Contains(log.String(), `status=429 `) || !strings.Contains(log.String(), `because="too fast"`) {
		t.Errorf("the log does not say why: %s", &log)
	}
	r := newRequest(http.MethodGet, "/sched/v0.0.42/jobs", "")
	for name := range r.Header {
		if strings.Contains(strings.ToLower(name), "token") || name == "Authorization" {
			r.Header.Del(name)
		}
	}
	if w := site.serve(r); w.Code != http.StatusUnauthorized || len(worker.asked) != 1 || worker.asked[0] == "" {
		t.Errorf("no user: status %d; asked for %q", w.Code, worker.asked)
	}
}

// refusal is a worker that admits no request.
type refusal struct {
	NoWorker
	asked []string // the users of the requests
}

func (w *refusal) Admit(_ context.Context, user string) error {
	w.asked = append(w.asked, user)
	return &RetryAfterError{Err: errs.New(errs.TooMany, "too fast"), After: 1500 * time.Millisecond}
}
