package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
)

// TestReadiness checks that only authenticated clients learn why the gateway is
// not ready. A client that guesses tokens at /readyz must get the usual
// penalty.
func TestReadiness(t *testing.T) {
	const reasons = "keys: expired\ncontroller: unreachable\n"
	for _, tt := range []struct {
		name, token, connection string
		verify                  error
		status                  int
		body                    string
	}{
		{"a load balancer", "", "", nil, 503, unready},
		{"a user", token, "", nil, 503, unready + reasons},
		{"no key and no daemon to ask", token, "", errs.New(errs.Unavailable, "down"), 503, unready},
		{"a guess", token, "", errs.New(errs.Unauthenticated, "forged"), 401, ""},
		{"no token at all", "x", "", nil, 401, ""},
		{"a header that a proxy would strip", "", "X-SCHED-USER-TOKEN", nil, 401, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			if tt.verify != nil {
				f.callErr = tt.verify
			}
			cfg := config(f)
			cfg.Ready = func(context.Context) []Check {
				return []Check{{"draining", ""}, {"keys", "expired"}, {"controller", "unreachable"}}
			}
			r := httptest.NewRequest("GET", "/readyz", nil)
			if tt.token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", tt.token)
			}
			if tt.connection != "" {
				r.Header.Set("Connection", tt.connection)
			}
			w := serve(t, cfg, r)
			if w.Code != tt.status || tt.body != "" && w.Body.String() != tt.body || strings.Contains(w.Body.String(), "expired") != strings.Contains(tt.body, "expired") {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if tt.status == 503 && w.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

// TestVerboseReadiness checks that only root and SchedUser get the results of
// the checks.
func TestVerboseReadiness(t *testing.T) {
	good := []Check{{"draining", ""}, {"controller", ""}}
	bad := []Check{{"draining", ""}, {"controller", "unreachable"}}
	for _, tt := range []struct {
		name, query, token string
		administers        bool
		checks             []Check
		status             int
		body               string
	}{
		{"root", "?verbose", token, true, good, 200, "ok\ndraining: ok\ncontroller: ok\n"},
		{"root, unready", "?verbose", token, true, bad, 503, "unready\ndraining: ok\ncontroller: unreachable\n"},
		{"root, with a value", "?verbose=1", token, true, good, 200, "ok\ndraining: ok\ncontroller: ok\n"},
		{"root, not verbose", "", token, true, good, 200, "ok\n"},
		{"a user", "?verbose", token, false, good, 403, ""},
		{"a user, unready", "?verbose", token, false, bad, 403, ""},
		{"no token", "?verbose", "", true, good, 401, ""},
		{"a guess", "?verbose", "x", true, good, 401, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(demo())
			cfg.Ready = func(context.Context) []Check { return tt.checks }
			cfg.Administers = func(c auth.Credential) bool { return tt.administers }
			r := httptest.NewRequest("GET", "/readyz"+tt.query, nil)
			if tt.token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", tt.token)
			}
			w := serve(t, cfg, r)
			if w.Code != tt.status || tt.body != "" && w.Body.String() != tt.body || tt.body == "" && strings.Contains(w.Body.String(), "draining") {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

// TestProxyRequestID checks that the request id of a trusted proxy is in the
// answer, in the log and in the audit log. In the logs it must differ from the
// gateway's own ids.
func TestProxyRequestID(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		used     bool
	}{
		{"the proxy's", "0af7651916cd43dd8448eb211c80319c", true},
		{"one that looks like the gateway's", "LHFVPXGNT3VZHLFHWXB45M4D6U", true},
		{"one with quotes", `"a"=\n`, true},
		{"none", "", false},
		{"a token", token, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			var audit intended
			cfg := config(demo())
			cfg.Log, cfg.Worker = slog.New(slog.NewTextHandler(&log, nil)), &audit
			r := request("DELETE", "/sched/v0.0.43/job/7", "")
			w := serve(t, cfg, r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: "192.0.2.1:5", RequestID: tt.id})))
			id := w.Header().Get("X-Request-Id")
			if (id == tt.id) != tt.used || id == "" {
				t.Errorf("the answer has the id %q", id)
			}
			want := id
			if tt.used {
				want = "proxy:" + id
			}
			if w.Code != http.StatusOK || audit.request != want {
				t.Errorf("status %d; the audit log has the id %q, want %q", w.Code, audit.request, want)
			}
			if strings.Contains(log.String(), " id_from=proxy") != tt.used || strings.Count(log.String(), "\n") != 1 || strings.Contains(log.String(), "eyJ") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// intended is an audit log that keeps only the request id of a change.
type intended struct {
	rest.NoWorker
	request string
}

func (a *intended) Intend(_ context.Context, c rest.Change) (func(rest.Result), error) {
	a.request = c.Request
	return func(rest.Result) {}, nil
}
