package handlers

import (
	"context"
	"net/http"
	"testing"
)

func TestPages(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"}, {"HEAD", "/healthz", 200, "ok\n"}, {"GET", "/healthz/", 200, "ok\n"}, {"GET", "/livez", 200, "ok\n"}, {"GET", "/readyz", 503, unready},
		{"POST", "/healthz", 405, ""}, {"OPTIONS", "/readyz", 204, ""}, {"GET", "/healthz/x", 404, ""},
	} {
		f := demo()
		cfg := config(f)
		cfg.Ready = func(context.Context) []Check { return []Check{{"x", "not now"}} }
		r := newRequest(tt.method, tt.path, "")
		r.Header.Set("Accept", "text/html") // these pages ignore the Accept header
		if tt.status == 405 || tt.status == 404 {
			r.Header.Del("Accept")
		}
		w := serve(t, cfg, r)
		if w.Code != tt.status || tt.body != "" && w.Body.String() != tt.body || len(f.calls) > 0 {
			t.Errorf("%s %s: status %d, calls %v: %s", tt.method, tt.path, w.Code, f.calls, w.Body)
		}
		if tt.status == 503 && w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if tt.body == "" && tt.status >= 400 {
			envelope(t, w.Body.Bytes())
		}
	}
	cfg := config(demo())
	cfg.Ready = func(context.Context) []Check { return nil }
	if w := serve(t, cfg, newRequest("GET", "/readyz", "")); w.Code != http.StatusOK {
		t.Errorf("ready: status %d", w.Code)
	}
}
