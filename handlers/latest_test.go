package handlers

import (
	"net/http"
	"net/url"
	"testing"

	"schedrestd/internal/feature"
)

// TestLatest checks that "latest" in a path stands for the newest version that is
// served and not a preview, and that Content-Location leads to the same answer.
func TestLatest(t *testing.T) {
	cfg := config(demo())
	for _, tt := range []struct {
		path     string
		parsers  []feature.Parser // nil for all
		status   int
		location string // the URL to which Content-Location leads; "" for no header
	}{
		{"/slurm/latest/nodes", nil, 200, "/slurm/v0.0.45/nodes"},
		{"/sched/latest/node/n1?fields=name", nil, 200, "/sched/v0.0.45/node/n1?fields=name"},
		{"/scheddb/latest/tres/", []feature.Parser{{Version: 41}, {Version: 43}}, 200, "/scheddb/v0.0.43/tres/"},
		{"/scheddb/latest/tres/", []feature.Parser{{Version: 46}}, 200, "/scheddb/v0.0.46/tres/"},
		{"/slurm/v0.0.46/nodes", nil, 200, ""},
		{"//slurm//latest/nodes", nil, 200, "/slurm/v0.0.45/nodes"},
		{"/slurm/./latest/nodes", nil, 200, "/slurm/v0.0.45/nodes"},
		{"/./slurm/latest/./nodes", nil, 200, "/slurm/v0.0.45/nodes"},
		{"/slurm/v0.0.44/nodes", nil, 200, ""},
		{"/slurm/latest/nothing", nil, 404, ""},
		{"/slurm/newest/nodes", nil, 404, ""},
	} {
		cfg.Parsers = tt.parsers
		w := serve(t, cfg, request(http.MethodGet, tt.path, ""))
		got := w.Header().Get("Content-Location")
		if got != "" {
			base, err := url.Parse("http://h/" + trimSlashes(tt.path))
			if err != nil {
				t.Fatal(err)
			}
			to, err := base.Parse(got)
			if err != nil {
				t.Fatal(err)
			}
			got = to.RequestURI()
		}
		if w.Code != tt.status || got != tt.location {
			t.Errorf("%s: status %d, location %q, want %d and %q", tt.path, w.Code, got, tt.status, tt.location)
		}
	}
	for _, tt := range []struct {
		parsers []feature.Parser
		want    string
	}{
		{[]feature.Parser{{Version: 41}, {Version: 43}}, `{"versions":["v0.0.41","v0.0.43"],"previews":[],"latest":"v0.0.43"}`},
		{[]feature.Parser{{Version: 43}, {Version: 45}, {Version: 46}}, `{"versions":["v0.0.43","v0.0.45","v0.0.46"],"previews":["v0.0.46"],"latest":"v0.0.45"}`},
		{[]feature.Parser{{Version: 46}}, `{"versions":["v0.0.46"],"previews":["v0.0.46"],"latest":"v0.0.46"}`},
	} {
		cfg.Parsers = tt.parsers
		w := serve(t, cfg, newRequest(http.MethodGet, "/meta/versions", "")) // without a token
		if w.Code != 200 || w.Body.String() != tt.want {
			t.Errorf("status %d, %s, want %s", w.Code, w.Body, tt.want)
		}
	}
}

// trimSlashes removes repeated slashes, as the gateway does.
func trimSlashes(path string) (clean string) {
	for i := range len(path) {
		if path[i] != '/' || len(clean) > 0 && clean[len(clean)-1] != '/' {
			clean += path[i : i+1]
		}
	}
	return clean
}
