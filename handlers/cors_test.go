package handlers

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
)

const portal = "https://portal.example.org"

// TestExposedFields checks that a page may read every field of the gateway's
// answers that clients need. The Fetch standard lets it read some of them
// without permission.
func TestExposedFields(t *testing.T) {
	cfg := config(demo())
	cfg.Origins = []string{portal}
	s := newTestServer(cfg)
	r := request("GET", "/healthz", "")
	r.Header.Set("Origin", portal)
	exposed := serve(t, cfg, r).Header().Get("Access-Control-Expose-Headers")
	readable := append(strings.Split(exposed, ", "), "Cache-Control", "Content-Language", "Content-Length", "Content-Type", "Expires", "Last-Modified", "Pragma")
	forBrowsers := []string{"Vary", "Content-Encoding", "X-Content-Type-Options", "X-Accel-Buffering", "Connection"}
	for _, g := range allGoldens(t) {
		r := request(g.method, g.path(api.V43), g.body)
		r.Header.Set("Origin", portal)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") || slices.Contains(forBrowsers, name) ||
				slices.ContainsFunc(readable, func(field string) bool { return strings.EqualFold(field, name) }) {
				continue
			}
			t.Errorf("%s: a page can't read %s", g.name, name)
		}
	}
}
