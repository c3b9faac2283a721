package handlers

import (
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// credentials are the ways in which a request can be authenticated.
var credentials = map[string]func(*http.Request) *http.Request{
	"a token": func(r *http.Request) *http.Request { return r },
	"a bearer token": func(r *http.Request) *http.Request {
		r.Header.Set("Authorization", "Bearer "+r.Header.Get("X-SCHED-USER-TOKEN"))
		r.Header.Del("X-SCHED-USER-TOKEN")
		return r
	},
	"a proxy's token": func(r *http.Request) *http.Request {
		r.Header.Set("X-SCHED-USER-NAME", "bob")
		return r
	},
	"the peer": func(r *http.Request) *http.Request {
		r.Header.Del("X-SCHED-USER-TOKEN")
		peer := auth.Peer{Network: "unix", UID: 20001, GID: 20001, Verified: true}
		return r.WithContext(auth.WithPeer(r.Context(), peer))
	},
}

const safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.6 Safari/605.1.15"

// causes are header fields of requests that change something, and what becomes
// of a request with these fields.
var causes = []struct {
	name    string
	headers []string // names and values
	get     int      // status of a changing GET; 0 if it is served
	other   int      // status of another change
}{
	{"a program", nil, 0, 0},
	{"curl", []string{"User-Agent", "curl/8.14.1", "Accept", "*/*"}, 0, 0},
	{"node's fetch", []string{"User-Agent", "node", "Sec-Fetch-Mode", "cors"}, 0, 0},
	{"the gateway's page", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "http://gateway", "User-Agent", safari}, 0, 0},
	{"the gateway's page, Host replaced", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Origin", "https://gw.example.org"}, 0, 0},
	{"the gateway's page, old browser", []string{"Origin", "http://gateway", "User-Agent", safari}, 0, 0},
	{"the gateway's page, old browser, only Referer", []string{"Referer", "http://gateway/status#/jobs", "User-Agent", safari}, 0, 0},
	{"an extension of the browser", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "cors", "Origin", "chrome-extension://abc"}, 0, 0},
	{"an allowed origin", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", portal}, 0, 0},
	{"an allowed origin of the same site", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", portal}, 0, 0},
	{"an allowed origin, old browser", []string{"Origin", portal}, 0, 0},
	{"another origin", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://evil.example.org"}, 403, 403},
	{"another host of the site", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", "https://wiki.example.org"}, 403, 403},
	{"another port", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Origin", "http://gateway:8081"}, 403, 403},
	{"another origin, old browser", []string{"Origin", "https://evil.example.org"}, 403, 403},
	{"another origin, old browser, only Referer", []string{"Referer", "https://evil.example.org/gateway"}, 403, 403},
	{"a longer host", []string{"Origin", "http://gateway.evil.example.org"}, 403, 403},
	{"a user in Referer", []string{"Referer", "http://gateway@evil.example.org/"}, 403, 403},
	{"a page in a sandbox", []string{"Origin", "null"}, 403, 403},
	{"two origins", []string{"Origin", portal, "Origin", portal}, 403, 403},
	{"two sites", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, 403, 403},
	{"two sites in one", []string{"Sec-Fetch-Site", "same-origin, cross-site"}, 403, 403},
	{"an unknown site", []string{"Sec-Fetch-Site", "Same-Origin"}, 403, 403},
	{"a link or form on another site", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-User", "?1"}, 403, 403},
	{"a frame", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403, 403},
	{"an image of another site", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403, 403},
	{"an address that a user types, or a link in a mail", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403, 0},
	{"a link of the same origin", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403, 0},
	{"an image of the same origin", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403, 0},
	{"an image on a page of an allowed origin", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403, 403},
	{"a page that leaves out Referer, old browser", []string{"User-Agent", safari}, 403, 0},
}

// TestForgedRequests sends each request that changes something, with every
// credential, as browsers send it for pages of other sites, and as programs and
// the gateway's own pages send it. A new operation is tested without a change
// here. A request that is refused must call no daemon, not even to verify the
// token.
func TestForgedRequests(t *testing.T) {
	tested := map[*api.Endpoint]bool{}
	for _, g := range allGoldens(t) {
		v := api.Versions[len(api.Versions)-1]
		s := newTestServer(config(demo()))
		endpoint, _, _ := s.Find(request(g.method, g.path(v), ""))
		if endpoint == nil || !endpoint.Changing() || tested[endpoint] || g.name == "not-understood" || endpoint == api.PostTRES.Endpoint {
			continue
		}
		tested[endpoint] = true
		for credential, with := range credentials {
			for _, cause := range causes {
				f := demo()
				cfg := config(f)
				cfg.Auth.Local, cfg.Auth.UID, cfg.Auth.Hosts = true, 20001, []string{"gateway"}
				cfg.Origins = []string{portal}
				r := with(request(g.method, g.path(v), g.body))
				if r.Header.Set("Content-Type", "application/json"); g.body == "" {
					r.Header.Del("Content-Type")
					r.Body, r.ContentLength = http.NoBody, 0
				}
				for i := 0; i < len(cause.headers); i += 2 {
					r.Header.Add(cause.headers[i], cause.headers[i+1])
				}
				w := serve(t, cfg, r)
				want := cause.other
				if g.method == http.MethodGet {
					want = cause.get
				}
				if want == 0 && credential == "the peer" && (strings.HasPrefix(cause.name, "an allowed origin") || strings.Contains(cause.name, "image on")) {
					want = http.StatusUnauthorized // such a page needs a token
				}
				if want != 0 && w.Code != want || want == 0 && (w.Code == 403 || w.Code == 401) || want != 0 && len(f.calls) > 0 {
					t.Errorf("%s %s, %s, %s: status %d, want %d, the daemons were asked %q: %s", g.method, g.path(v), credential, cause.name, w.Code, want, f.calls, w.Body)
				}
				if want == 403 && !strings.Contains(w.Body.String(), "nothing was changed: ") {
					t.Errorf("%s, %s: no reason: %s", endpoint.ID, cause.name, w.Body)
				}
			}
		}
	}
	for _, e := range api.Endpoints {
		if e.Changing() && !tested[e] && e != api.PostTRES.Endpoint && e.In(api.Versions[len(api.Versions)-1]) {
			t.Errorf("%s %s was not tried", e.Method, e.Path)
		}
	}
}

// TestChangesAreDeclared checks that an operation that is not declared as a
// change makes none: it calls no function of a daemon that operations with a
// change call only if the audit log permits the change.
func TestChangesAreDeclared(t *testing.T) {
	calls := func(g golden, audit *recorder) (calls []string, endpoint *api.Endpoint) {
		f := demo()
		cfg := config(f)
		cfg.Worker = audit
		s := newTestServer(cfg)
		r := request(g.method, g.path(api.V43), g.body)
		endpoint, _, _ = s.Find(r)
		serve(t, cfg, r)
		return f.calls, endpoint
	}
	lists := []string{"job", "nodes", "partitions", "reservations", "tres", "qos", "clusters", "accounts", "users", "associations", "wckeys"} // read during changes, too
	changes := map[string]bool{}
	read := map[string][]string{}
	for _, g := range allGoldens(t) {
		did, endpoint := calls(g, new(recorder))
		switch {
		case endpoint == nil:
		case endpoint.Changing():
			before, _ := calls(g, &recorder{err: errs.New(errs.Unavailable, "no room")})
			for _, call := range did {
				if !slices.Contains(before, call) && !slices.Contains(lists, call) {
					changes[call] = true
				}
			}
		default:
			read[path.Join(g.method, endpoint.Path)] = did
		}
	}
	for operation, calls := range read {
		for _, call := range calls {
			if changes[call] {
				t.Errorf("%s calls %q, as operations do to change something", operation, call)
			}
		}
	}
	for _, call := range []string{"submit", "cancel", "edit", "reconfigure"} {
		if !changes[call] {
			t.Errorf("%s is missing in the calls that change something: %v", call, changes)
		}
	}
}

// TestBodyFromPage checks that a body without a type, which a page may send
// without asking first, is not taken for JSON if a browser sends it.
func TestBodyFromPage(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers []string
		body    string
		status  int
	}{
		{"a program", nil, `{"comment":"c"}`, 200},
		{"a browser, site", []string{"Sec-Fetch-Site", "same-origin"}, `{"comment":"c"}`, 415},
		{"a browser, typed", []string{"Sec-Fetch-Site", "none"}, `{"comment":"c"}`, 415},
		{"a browser, origin", []string{"Origin", "http://gateway"}, `{"comment":"c"}`, 415},
		{"an allowed origin", []string{"Origin", portal}, `{"comment":"c"}`, 415},
		{"a browser, JSON", []string{"Origin", "http://gateway", "Content-Type", "application/json"}, `{"comment":"c"}`, 200},
		{"a browser, a form's text", []string{"Origin", "http://gateway", "Content-Type", "text/plain"}, `{"comment":"c"}`, 415},
	} {
		f := demo()
		cfg := config(f)
		cfg.Origins = []string{portal}
		r := request(http.MethodPost, "/slurm/v0.0.43/job/12", tt.body)
		for i := 0; i < len(tt.headers); i += 2 {
			r.Header.Add(tt.headers[i], tt.headers[i+1])
		}
		if w := serve(t, cfg, r); w.Code != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, w.Code, tt.status, w.Body)
		}
	}
	r := request(http.MethodDelete, "/slurm/v0.0.43/job/12", "")
	r.Body, r.ContentLength = http.NoBody, 0
	r.Header.Set("Origin", "http://gateway")
	if w := serve(t, config(demo()), r); w.Code != 200 {
		t.Errorf("without a body: status %d: %s", w.Code, w.Body)
	}
}

// TestReboundHost checks the names in Host with which a client without a token
// is served.
func TestReboundHost(t *testing.T) {
	page := []string{"Origin", "http://HOST", "User-Agent", safari}
	for _, tt := range []struct {
		host    string
		headers []string
		status  int
	}{
		{"localhost", nil, 200},
		{"localhost:8080", page, 200},
		{"LOCALHOST.", nil, 200},
		{"gw.localhost:8080", page, 200},
		{"127.0.0.1", page, 200},
		{"127.0.0.1:8080", page, 200},
		{"[::1]:8080", page, 200},
		{"192.0.2.7:8080", page, 200},
		{"[2001:db8::1]", page, 200},
		{"", nil, 200},
		{"slurm", nil, 200},
		{"x", []string{"User-Agent", "curl/8.14.1", "Accept", "*/*"}, 200},
		{"unix", []string{"User-Agent", "node", "Sec-Fetch-Mode", "cors"}, 200},
		{"login1:8080", page, 200},
		{"login1.example.org", page, 200},
		{"Login1.Example.org.", page, 200},
		{"attacker.example:8080", []string{"Sec-Fetch-Site", "same-origin"}, 403},
		{"attacker.example:8080", page, 403},
		{"attacker.example:8080", nil, 403},
		{"attacker.example.", nil, 403},
		{"login1.example.org.attacker.example", page, 403},
		{"localhost.attacker.example", page, 403},
		{"notlocalhost.example", nil, 403},
		{"127.0.0.1.attacker.example", page, 403},
		{"attacker", page, 403},
		{"attacker", []string{"User-Agent", safari}, 403},
		{"attacker", []string{"Sec-Fetch-Site", "none"}, 403},
		{"attacker", []string{"Referer", "http://HOST/"}, 403},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			f := demo()
			cfg := config(f)
			cfg.Auth = auth.Options{Local: true, UID: 20001, Hosts: []string{"login1", "login1.example.org"}}
			body := map[string]string{http.MethodPost: `{"comment":"c"}`}[method]
			r := newRequest(method, "/slurm/v0.0.43/job/12", body)
			r.Host = tt.host
			if body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			for i := 0; i < len(tt.headers); i += 2 {
				r.Header.Add(tt.headers[i], strings.Replace(tt.headers[i+1], "HOST", tt.host, 1))
			}
			w := serve(t, cfg, credentials["the peer"](r))
			if w.Code != tt.status || (len(f.calls) > 0) != (tt.status == 200) {
				t.Errorf("%s with Host %q, %q: status %d, want %d: %s", method, tt.host, tt.headers, w.Code, tt.status, w.Body)
			}
			if w.Code == 403 && !strings.Contains(w.Body.String(), "SCHEDRESTD_HOSTS") {
				t.Errorf("no hint: %s", w.Body)
			}
		}
	}
	f := demo()
	r := request(http.MethodGet, "/slurm/v0.0.43/job/12", "")
	r.Host = "gw.example.org"
	if w := serve(t, config(f), r); w.Code != 200 {
		t.Errorf("with a token: status %d", w.Code)
	}
}

// TestUndeclaredChange checks that an operation that is not declared as a change
// can make none, because its requests are not checked for their cause.
func TestUndeclaredChange(t *testing.T) {
	f := demo()
	s := New(config(f))
	api.GetJobRequeue.Endpoint.ChangingGET = false
	defer func() { api.GetJobRequeue.Endpoint.ChangingGET = true }()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request(http.MethodGet, "/slurm/v0.0.45/job/12/requeue", ""))
	if w.Code != http.StatusInternalServerError || len(f.calls) > 1 {
		t.Errorf("status %d, the daemons were asked %q: %s", w.Code, f.calls, w.Body)
	}
}
