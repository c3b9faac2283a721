package handlers

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// untouched is a request body that must not be read. Reading it fails the test.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (untouched) Close() error { return nil }

// TestNobodyUnknownIsServed checks requests without a valid credential. A
// daemon may be asked only to verify the credential, the body must not be read,
// and all answers must be the same.
func TestNobodyUnknownIsServed(t *testing.T) {
	forged := &errs.Error{Kind: errs.Unauthenticated, Message: "protocol authentication error", Number: 1007}
	tests := []struct {
		name   string
		change func(*http.Request, *fake)
		calls  []string
	}{
		{"nothing sent", func(r *http.Request, _ *fake) { r.Header.Del("X-SCHED-USER-TOKEN") }, nil},
		{"no token", func(r *http.Request, _ *fake) { r.Header.Set("X-SCHED-USER-TOKEN", "garbage") }, nil},
		{"name in Connection", func(r *http.Request, _ *fake) { r.Header.Set("Connection", "X-Sched-User-Name") }, nil},
		{"signature", func(_ *http.Request, f *fake) { f.callErr = forged }, []string{"verify"}},
	}
	var first string
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := request(http.MethodPost, "/sched/v0.0.42/job/submit", "")
			r.Body, r.ContentLength = untouched{t}, 1000
			tt.change(r, f)
			w := serve(t, config(f), r)
			if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("status %d, WWW-Authenticate %q", w.Code, w.Header().Get("WWW-Authenticate"))
			}
			if d := cmp.Diff(tt.calls, f.calls); d != "" {
				t.Errorf("calls: %s", d)
			}
			body := envelope(t, w.Body.Bytes())
			if len(body.Errors) != 1 || body.Errors[0].Description != auth.Refused+"; send a token in X-SCHED-USER-TOKEN or in Authorization: Bearer, and in X-SCHED-USER-NAME only the name of a user for whom its user may act; the gateway's log has the reason under X-Request-Id" {
				t.Errorf("errors: %+v", body.Errors)
			}
			if first == "" {
				first = w.Body.String()
			}
			if d := cmp.Diff(first, w.Body.String()); d != "" {
				t.Errorf("the answer names the part that was wrong: %s", d)
			}
		})
	}
}

// TestCredentialReachesTheDaemon checks that the daemon gets the token and the
// name to act as. The first question, whether the token is genuine, has no name.
func TestCredentialReachesTheDaemon(t *testing.T) {
	f := demo()
	r := request(http.MethodGet, "/sched/v0.0.42/nodes", "")
	r.Header.Set("X-SCHED-USER-NAME", "bob")
	if w := serve(t, config(f), r); w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	for i, cred := range f.creds {
		if cred.Token != token || (cred.ActAs == "bob") != (i > 0) {
			t.Errorf("the daemon saw %v", cred)
		}
	}
}

func TestLocalUser(t *testing.T) {
	cfg := config(demo())
	cfg.Auth = auth.Options{Local: true, UID: 20001, User: func() string { return "alice" }}
	peer := auth.Peer{Network: "unix", UID: 20001, GID: 20002, Verified: true, Listener: "unix:/run/schedrestd.sock"}
	r := newRequest(http.MethodGet, "/sched/v0.0.42/ping", "")
	w := serve(t, cfg, r.WithContext(auth.WithPeer(r.Context(), peer)))
	want := map[string]any{"source": "unix:/run/schedrestd.sock", "user": "alice", "group": "bob"}
	if d := cmp.Diff(any(want), envelope(t, w.Body.Bytes()).Meta["client"]); d != "" {
		t.Error(d)
	}
	peer.UID = 20002
	if w := serve(t, cfg, r.WithContext(auth.WithPeer(r.Context(), peer))); w.Code != http.StatusUnauthorized {
		t.Errorf("status %d for another user", w.Code)
	}
}

// TestNoTokenInAnyLog puts a token into every part of a request, and checks
// that the token is not logged. To verify its own search, it first looks for a
// token that was logged on purpose.
func TestNoTokenInAnyLog(t *testing.T) {
	var log bytes.Buffer
	cfg := config(demo())
	cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.Log.Info("planted", "token", token)
	if !strings.Contains(log.String(), token) {
		t.Fatal("a planted token can't be found")
	}
	log.Reset()
	f := demo()
	cfg.Controller, cfg.Accounting = f, accounts{f}
	for _, end := range []error{nil, errors.New("inner cause"), &errs.Error{Kind: errs.Unauthenticated, Message: "m"}} {
		f.callErr = end
		for _, path := range []string{"/sched/v0.0.42/nodes?token=" + token, "/sched/v0.0.42/ping", "/nowhere"} {
			r := request(http.MethodGet, path, "")
			r.Header.Set("X-SCHED-USER-NAME", "bob")
			serve(t, cfg, r)
		}
		bearer := newRequest(http.MethodPost, "/sched/v0.0.42/job/submit", `{"job":{"script":"x","environment":["SCHED_JWT=`+token+`"]}}`)
		bearer.Header.Set("Authorization", "Bearer "+token)
		serve(t, cfg, bearer)
		serve(t, cfg, request(http.MethodGet, "/sched/v0.0.42/ping", "")).Result()
	}
	if strings.Contains(log.String(), token) || strings.Contains(log.String(), strings.Split(token, ".")[2]) {
		t.Errorf("a token was logged:\n%s", log.String())
	}
	for _, want := range []string{"inner cause", "route=get_nodes", "status=401", `user="bob by alice"`, "method=POST"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log.String())
		}
	}
}

// TestPanicIsAnswered checks that a panic is answered with a 500 and the usual
// envelope, and that the next request is served.
func TestPanicIsAnswered(t *testing.T) {
	cfg := config(demo())
	cfg.Controller = nil
	h := New(cfg)
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(http.MethodGet, "/sched/v0.0.42/nodes", ""))
		if w.Code != http.StatusInternalServerError || envelope(t, w.Body.Bytes()).Errors[0].Code != "internal" {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	}
}
