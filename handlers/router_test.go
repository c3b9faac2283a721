package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/internal/feature"
)

func TestRouting(t *testing.T) {
	tests := []struct {
		name, method, path string
		status             int
		allow              string
		calls              []string // calls that the daemon receives after it has verified the token
		wantText           string   // part of the body
	}{
		{"plain", "GET", "/sched/v0.0.42/ping", 200, "", []string{"ping"}, `"sched":{`},
		{"slash at the end", "GET", "/sched/v0.0.42/ping/", 200, "", []string{"ping"}, ""},
		{"slashes and dots too many", "GET", "//sched///./v0.0.42//ping//", 200, "", []string{"ping"}, ""},
		{"other spelling", "GET", "/slurm/v0.0.42/ping", 200, "", []string{"ping"}, `"slurm":{`},
		{"absolute URL", "GET", "http://other.host/sched/v0.0.42/ping", 200, "", []string{"ping"}, ""},
		{"HEAD", "HEAD", "/sched/v0.0.42/ping", 200, "", []string{"ping"}, ""},
		{"OPTIONS", "OPTIONS", "/sched/v0.0.42/job/1", 204, "GET, DELETE, POST, HEAD, OPTIONS", nil, ""},
		{"OPTIONS of the server", "OPTIONS", "*", 204, "GET, HEAD, DELETE, POST, OPTIONS", nil, ""},
		{"GET of the server", "GET", "*", 404, "", nil, "no such path"},
		{"name with a slash", "GET", "/sched/v0.0.42/node/a%2Fb", 404, "", []string{"node a/b"}, "no such node"},
		{"a word is not a job's number", "GET", "/sched/v0.0.42/job/submit", 405, "POST, OPTIONS", nil, "method_not_allowed"},
		{"wrong method", "PUT", "/sched/v0.0.42/nodes", 405, "GET, POST, HEAD, OPTIONS", nil,
			"PUT /sched/v0.0.42/nodes: the path does not have this method; supported methods: GET, POST, HEAD, OPTIONS"},
		{"wrong method for a page", "POST", "/openapi", 405, "GET, HEAD, OPTIONS", nil, "POST /openapi: the path does not have this method; supported methods: GET, HEAD, OPTIONS"},
		{"unknown path", "GET", "/sched/v0.0.42/nodez", 404, "", nil, "GET /sched/v0.0.42/nodez: no such path; GET /openapi lists the paths"},
		{"a token as a path", "GET", "/" + token, 404, "", nil, "GET /(a token)"},
		{"Slurm has it in later versions only", "POST", "/slurm/v0.0.42/reservation", 404, "", nil, "no such path"},
		{"path too long", "GET", "/sched/v0.0.42/ping/ping", 404, "", nil, "no such path"},
		{"unknown segment", "GET", "/shed/v0.0.42/ping", 404, "", nil, "no such path"},
		{"nothing", "GET", "/", 404, "", nil, "no such path"},
		{"unknown version", "GET", "/sched/v0.0.39/ping", 404, "", nil, "supported: v0.0.40, v0.0.41, v0.0.42, v0.0.43"},
		{"no version", "GET", "/sched", 404, "", nil, "unsupported API version"},
		{"version with more behind", "GET", "/sched/v0.0.420/ping", 404, "", nil, "unsupported API version"},
		{"up", "GET", "/sched/v0.0.42/nodes/../ping", 400, "", nil, "malformed"},
		{"up, encoded", "GET", "/sched/v0.0.42/%2e%2E/ping", 400, "", nil, "malformed"},
		{"NUL", "GET", "/sched/v0.0.42/node/n1%00x", 400, "", nil, "malformed"},
		{"accounting", "GET", "/scheddb/v0.0.42/diag", 200, "", []string{"stats"}, "openapi/scheddb"},
		{"accounting, other spelling", "GET", "/slurmdb/v0.0.42/diag/", 200, "", []string{"stats"}, "openapi/slurmdbd"},
		{"accounting has no nodes", "GET", "/scheddb/v0.0.42/nodes", 404, "", nil, "no such path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := request(tt.method, "/", "")
			var err error
			if r.URL, err = url.ParseRequestURI(tt.path); err != nil { // as net/http does
				t.Fatal(err)
			}
			w := serve(t, config(f), r)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if got := w.Header().Get("Allow"); got != tt.allow {
				t.Errorf("Allow: %q, want %q", got, tt.allow)
			}
			if tt.calls != nil {
				tt.calls = append([]string{"verify"}, tt.calls...)
			}
			if d := cmp.Diff(tt.calls, f.calls); d != "" {
				t.Errorf("calls: %s", d)
			}
			if !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("%q is not in %s", tt.wantText, w.Body)
			}
			if tt.status != http.StatusNoContent {
				if got := w.Header().Get("Content-Type"); got != "application/json" {
					t.Errorf("Content-Type: %q", got)
				}
				if tt.method != http.MethodHead {
					envelope(t, w.Body.Bytes())
				}
			}
		})
	}
}

func TestWhatIsNotServedDoesNotExist(t *testing.T) {
	tests := []struct {
		name, path string
		change     func(*Config)
	}{
		{"spelling", "/slurm/v0.0.42/ping", func(c *Config) { c.Names = api.NamesSched }},
		{"version", "/sched/v0.0.40/ping", func(c *Config) { c.Parsers = []feature.Parser{{Version: 42}, {Version: 43}} }},
		{"accounting", "/scheddb/v0.0.42/ping", func(c *Config) { c.Accounting = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(demo())
			if w := serve(t, cfg, request("GET", tt.path, "")); w.Code != 200 {
				t.Fatalf("status %d while it is served", w.Code)
			}
			tt.change(&cfg)
			w := serve(t, cfg, request("GET", tt.path, ""))
			if w.Code != 404 {
				t.Errorf("status %d", w.Code)
			}
			if hint := "this gateway serves /sched/; with SCHEDRESTD_NAMES=both it serves /slurm/ as well"; strings.Contains(w.Body.String(), hint) != (tt.name == "spelling") {
				t.Errorf("errors: %s", w.Body)
			}
		})
	}
}
