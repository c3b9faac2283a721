package handlers

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"schedrestd/errs"
)

// TestRefusing: what reaches no endpoint is answered in the format that is asked for, and has its
// line in the log as any other.
func TestRefusing(t *testing.T) {
	var log bytes.Buffer
	cfg := config(demo())
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	full := Refusing(cfg, errs.New(errs.Unavailable, "no room"))
	for _, tt := range []struct{ accept, media, text string }{
		{"", mediaJSON, `"description":"no room"`},
		{"application/yaml", mediaYAML, "description: no room"},
		{"text/html", mediaJSON, `"code":"unavailable"`},
	} {
		log.Reset()
		r := request(http.MethodPost, "/sched/v0.0.42/job/submit?token=secret", `{"job":{}}`)
		if tt.accept != "" {
			r.Header.Set("Accept", tt.accept)
		}
		w := httptest.NewRecorder()
		full.ServeHTTP(w, r)
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
