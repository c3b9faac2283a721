package handlers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/model"
)

// TestScopes sends a request for each operation, in the first and the last version and both spellings, to
// listeners with each scope. Exactly those whose operation has the scope, or needs
// none, must pass. The others must be refused before a daemon is asked for
// anything but the user.
func TestScopes(t *testing.T) {
	f := demo()
	cfg := config(f)
	cfg.Scopes = nil
	all := []scope.Set{scope.ComputeRead, scope.ComputeCreate, scope.ComputeModify, scope.ComputeCancel, scope.SlurmdbRead, scope.SlurmdbWrite, scope.ClusterAdmin,
		scope.ComputeRead | scope.SlurmdbRead}
	for _, s := range all {
		cfg.Scopes = append(cfg.Scopes, s.String()+"="+s.String())
	}
	server := newTestServer(cfg)
	send := func(listener, method, url string) (status int, header http.Header, body string) {
		r := request(method, url, "")
		r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: "192.0.2.7:40000", Listener: listener}))
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Code, w.Header(), w.Body.String()
	}
	refused := 0
	for _, e := range api.Endpoints {
		for _, version := range []schema.Version{api.Versions[0], api.Versions[len(api.Versions)-1]} {
			for _, spelling := range []schema.Spelling{schema.Sched, schema.Slurm} {
				v := schema.View{Version: version, Spelling: spelling}
				if !e.InView(v) {
					continue
				}
				url := strings.NewReplacer("{", "", "}", "").Replace(e.URL(v))
				for _, s := range all {
					status, header, body := send(s.String(), e.Method, url)
					if permitted := s&e.Scope == e.Scope; permitted == (status == http.StatusForbidden) {
						t.Errorf("%s %s with %s: %d", e.Method, url, s, status)
					}
					if status != http.StatusForbidden {
						continue
					}
					refused++
					if want := `scope="` + e.Scope.String() + `"`; !strings.Contains(header.Get("WWW-Authenticate"), want) || !strings.Contains(body, s.String()) {
						t.Errorf("%s %s with %s: %q, %s", e.Method, url, s, header.Get("WWW-Authenticate"), body)
					}
				}
				if status, _, body := send("other", e.Method, url); status == http.StatusForbidden {
					t.Errorf("%s %s, of a listener without a scope: %s", e.Method, url, body)
				}
			}
		}
	}
	for _, s := range all {
		if status, _, body := send(s.String(), "GET", "/metrics/cluster"); (status == http.StatusForbidden) == s.Permit(scope.ComputeRead) {
			t.Errorf("/metrics/cluster with %s: %d, %s", s, status, body)
		}
		if status, _, body := send(s.String(), "GET", "/openapi.json"); status != http.StatusOK {
			t.Errorf("/openapi.json with %s: %d, %s", s, status, body)
		}
	}
	if refused < 1000 {
		t.Errorf("only %d requests were refused", refused)
	}
}

// TestScopeOfEach checks that the scope of an operation agrees with what it does.
func TestScopeOfEach(t *testing.T) {
	const reading = scope.ComputeRead | scope.SlurmdbRead
	for _, e := range api.Endpoints {
		if strings.HasPrefix(e.Path, "token") { // the keeper decides what a token may do with tokens
			if e.Scope != scope.None {
				t.Errorf("%s %s needs %q", e.Method, e.Path, e.Scope)
			}
			continue
		}
		if e.Util != (e.Scope == scope.None) || !e.Util && e.Changing() == (e.Scope&reading != 0) || e.Accounting != (e.Scope&(scope.SlurmdbRead|scope.SlurmdbWrite) != 0) {
			t.Errorf("%s %s needs %q", e.Method, e.Path, e.Scope)
		}
	}
}

// TestScopesOfWait checks that a request that waits for the end of a job reads the
// job in accounting only if the client may read accounting records.
func TestScopesOfWait(t *testing.T) {
	l, server, _ := newLiving(t, func(c *Config) {
		c.Scopes = []string{"compute.read=jobs", "compute.read+slurmdb.read=records"}
	})
	l.change(func(f *fake) { f.jobs[2].State = model.JobComplete })
	for _, tt := range []struct {
		listener, job string
		status        int
		recorded      bool // the answer has a record from accounting
	}{
		{"jobs", "11", http.StatusNotFound, false},
		{"records", "11", http.StatusOK, true},
		{"jobs", "9", http.StatusOK, false},
		{"records", "9", http.StatusOK, true},
	} {
		r := request("GET", "/sched/v0.0.43/job/"+tt.job+"?wait=60s&until=ended", "")
		r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: "192.0.2.7:40000", Listener: tt.listener}))
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if recorded := strings.Contains(w.Body.String(), "TIMEOUT"); w.Code != tt.status || recorded != tt.recorded {
			t.Errorf("job %s with %s: %d, %s", tt.job, tt.listener, w.Code, w.Body)
		}
	}
}
