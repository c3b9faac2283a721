package rest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

const portal = "https://portal.example.org"

const exposed = "Accept-Post, Accept-Ranges, Age, Allow, Content-Location, Content-Range, Deprecation, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, Retry-After, Sunset, WWW-Authenticate, X-OAuth-Scopes, X-Request-Id"

// corsFields returns the fields of an answer that belong to the CORS protocol,
// each with its value.
func corsFields(h http.Header) map[string]string {
	fields := map[string]string{}
	for name, values := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			fields[name] = strings.Join(values, " | ")
		}
	}
	return fields
}

// preflight returns the question that a browser asks before it sends the request
// of a page.
func preflight(origin, method, path string) *http.Request {
	r := newRequest(http.MethodOptions, path, "")
	r.Header.Del("X-SCHED-USER-TOKEN")
	r.Header.Set("Origin", origin)
	r.Header.Set("Access-Control-Request-Method", method)
	r.Header.Set("Access-Control-Request-Headers", "x-slurm-user-token")
	return r
}

// TestPreflight checks the answers to preflight requests. They need no
// credential, and no daemon is asked.
func TestPreflight(t *testing.T) {
	site := newSite(0)
	site.Origins = []string{portal, "http://127.0.0.1:3000"}
	const path = "/slurm/v0.0.43/job/12"
	allowed := func(origin, methods string) map[string]string {
		return map[string]string{
			"Access-Control-Allow-Origin":  origin,
			"Access-Control-Allow-Methods": methods,
			"Access-Control-Allow-Headers": "Authorization, X-Slurm-User-Token, X-Slurm-User-Name, X-Sched-User-Token, X-Sched-User-Name, " +
				"Accept, Content-Type, Content-Encoding, Cache-Control, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID, Prefer, Range, Traceparent",
			"Access-Control-Max-Age": "7200",
		}
	}
	ofJob := allowed(portal, "GET, DELETE, POST, HEAD, OPTIONS")
	tests := []struct {
		name   string
		r      *http.Request
		status int
		want   map[string]string
	}{
		{"a change", preflight(portal, "DELETE", path), 204, ofJob},
		{"a method that the path lacks", preflight(portal, "PUT", path), 204, ofJob},
		{"the other origin", preflight("http://127.0.0.1:3000", "GET", path), 204, allowed("http://127.0.0.1:3000", "GET, DELETE, POST, HEAD, OPTIONS")},
		{"a page", preflight(portal, "GET", "/healthz"), 204, allowed(portal, "GET, HEAD, OPTIONS")},
		{"another origin", preflight("https://evil.example.org", "DELETE", path), 204, map[string]string{}},
		{"another scheme", preflight("http://portal.example.org", "DELETE", path), 204, map[string]string{}},
		{"another port", preflight(portal+":8443", "DELETE", path), 204, map[string]string{}},
		{"a longer name", preflight(portal+".evil.example.org", "DELETE", path), 204, map[string]string{}},
		{"other letters", preflight("https://PORTAL.example.org", "DELETE", path), 204, map[string]string{}},
		{"null", preflight("null", "DELETE", path), 204, map[string]string{}},
		{"no such path", preflight(portal, "GET", "/slurm/v0.0.43/nothing"), 204, allowed(portal, "*")},
	}
	twice := preflight(portal, "GET", path)
	twice.Header["Origin"] = []string{portal, portal}
	plain := preflight(portal, "", path)
	plain.Header.Del("Access-Control-Request-Method")
	tests = append(tests, []struct {
		name   string
		r      *http.Request
		status int
		want   map[string]string
	}{
		{"two origins", twice, 204, map[string]string{}},
		{"an OPTIONS of a page", plain, 204, map[string]string{"Access-Control-Allow-Origin": portal, "Access-Control-Expose-Headers": exposed}},
	}...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := site.serve(tt.r)
			if d := cmp.Diff(tt.want, corsFields(w.Header())); d != "" || w.Code != tt.status {
				t.Errorf("status %d\n%s", w.Code, d)
			}
			if !strings.HasSuffix(strings.Join(w.Header().Values("Vary"), ", "), "Origin") {
				t.Errorf("Vary is %q", w.Header().Values("Vary"))
			}
			without := newSite(0)
			if w := without.serve(tt.r); len(corsFields(w.Header())) > 0 || strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Origin") || w.Code != http.StatusNoContent && !strings.HasSuffix(tt.r.URL.Path, "/nothing") {
				t.Errorf("without the setting: status %d, %v", w.Code, w.Header())
			}
		})
	}
	if len(site.calls) > 0 {
		t.Errorf("calls of the daemons: %v", site.calls)
	}
}

// TestPagesOfOrigins checks which pages may read an answer, whatever its status.
func TestPagesOfOrigins(t *testing.T) {
	const path = "/slurm/v0.0.43/jobs"
	tests := []struct {
		name, origin string
		change       func(*http.Request, *site)
		status       int
		shared       bool
	}{
		{"an allowed origin", portal, nil, 200, true},
		{"no origin", "", nil, 200, false},
		{"another origin", "https://evil.example.org", nil, 200, false},
		{"null", "null", nil, 200, false},
		{"without a token", portal, func(r *http.Request, _ *site) { r.Header.Del("X-SCHED-USER-TOKEN") }, 401, true},
		{"a wrong format", portal, func(r *http.Request, _ *site) { r.Header.Set("Accept", "image/png") }, 406, true},
		{"a failing daemon", portal, func(_ *http.Request, s *site) { s.midway = errs.New(errs.Unavailable, "down") }, 503, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			site := newSite(0)
			site.Origins = []string{portal}
			r := newRequest(http.MethodGet, path, "")
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.change != nil {
				tt.change(r, site)
			}
			w := site.serve(r)
			want := map[string]string{}
			if tt.shared {
				want = map[string]string{"Access-Control-Allow-Origin": portal, "Access-Control-Expose-Headers": exposed}
			}
			if d := cmp.Diff(want, corsFields(w.Header())); d != "" || w.Code != tt.status {
				t.Errorf("status %d\n%s", w.Code, d)
			}
			if vary := w.Header().Values("Vary"); vary[len(vary)-1] != "Origin" || len(vary) != len(slices.Compact(slices.Clone(vary))) {
				t.Errorf("Vary is %q", vary)
			}
		})
	}
}

// TestPageNeedsToken checks that a page can't act as the user of a connection,
// such as one that a program forwards to a UNIX socket. A page of any origin can
// send a request without asking first, if its body has no type. Requests of
// programs, and of the page that the gateway itself sends, are served as ever.
// A page of an allowed origin needs a token; another page may change nothing.
func TestPageNeedsToken(t *testing.T) {
	const host = "localhost:8080"
	peer := auth.Peer{Network: "unix", UID: 20001, GID: 20001, Verified: true}
	for _, tt := range []struct {
		name    string
		headers []string // names and values
		status  int
	}{
		{"a program", nil, 200},
		{"an allowed origin", []string{"Origin", portal}, 401},
		{"an allowed origin, same site", []string{"Origin", portal, "Sec-Fetch-Site", "same-site"}, 401},
		{"the gateway's page", []string{"Origin", "http://" + host}, 200},
		{"the gateway's page, new browser", []string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, 200},
		{"the gateway's page, behind a proxy with another name", []string{"Origin", "https://gateway.example.org", "Sec-Fetch-Site", "same-origin"}, 200},
		{"an address that a person types", []string{"Sec-Fetch-Site", "none"}, 200},
		{"another origin", []string{"Origin", "https://evil.example.org"}, 403},
		{"another origin, new browser", []string{"Origin", "https://evil.example.org", "Sec-Fetch-Site", "cross-site"}, 403},
		{"another port", []string{"Origin", "http://localhost:8081", "Sec-Fetch-Site", "same-site"}, 403},
		{"another port, old browser", []string{"Origin", "http://localhost:8081"}, 403},
		{"an image", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a page in a sandbox", []string{"Origin", "null"}, 403},
		{"two origins", []string{"Origin", "http://" + host, "Origin", "http://" + host}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, origins := range [][]string{{portal}, nil} {
				site := newSite(0)
				site.Auth.Local, site.Auth.UID = true, 20001
				site.Origins = origins
				r := newRequest(http.MethodPost, "/slurm/v0.0.43/job/12", `{"comment":"hello"}`)
				r.Header.Del("X-SCHED-USER-TOKEN")
				r.Host = host
				r.Header.Set("Content-Type", "application/json")
				for i := 0; i < len(tt.headers); i += 2 {
					r.Header.Add(tt.headers[i], tt.headers[i+1])
				}
				w := site.serve(r.WithContext(auth.WithPeer(r.Context(), peer)))
				want := tt.status
				if want == 401 && origins == nil {
					want = 403 // the page's origin is not allowed
				}
				if w.Code != want || (len(site.calls) > 0) != (tt.status == 200) {
					t.Errorf("origins %q: status %d, calls of the daemons: %v", origins, w.Code, site.calls)
				}
				r = newRequest(http.MethodGet, "/slurm/v0.0.43/ping", "")
				r.Header.Set("Origin", "https://evil.example.org")
				if w := site.serve(r.WithContext(auth.WithPeer(r.Context(), peer))); w.Code != 200 {
					t.Errorf("origins %q: with a token: status %d", origins, w.Code)
				}
			}
		})
	}
}
