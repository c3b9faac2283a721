package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// tokenWorker is a worker whose gateway tokens end when the test says so.
type tokenWorker struct {
	rest.NoWorker
	ended atomic.Pointer[func(auth.Answer)] // of the last request that watches its token
}

func (w *tokenWorker) WatchToken(_, _ string, ended func(auth.Answer)) (end func()) {
	w.ended.Store(&ended)
	return func() {}
}

// gatewayServer returns a server that accepts gateway tokens, and a function that
// makes a request with a token of these scopes. What it counts in excused are
// requests without a penalty.
func gatewayServer(t *testing.T, excused *atomic.Int32, options ...func(*Config)) (w *tokenWorker, l *living, server http.Handler, request func(s scope.Set, method, url, body string, changes ...func(*gatewaytoken.Token)) *http.Request) {
	t.Helper()
	w = &tokenWorker{}
	l, server, _ = newLiving(t, append(options, func(c *Config) {
		c.Auth.Rules.Gateway = "demo"
		c.Worker = w
		c.Authenticator = &auth.Authenticator{Now: c.Auth.Now, Gateway: func(context.Context, auth.Signature, string) auth.Answer { return auth.Good },
			Excuse: func(context.Context) { excused.Add(1) }}
	})...)
	return w, l, server, func(s scope.Set, method, url, body string, changes ...func(*gatewaytoken.Token)) *http.Request {
		uid := uint32(1000)
		made := gatewaytoken.Token{Cluster: "demo", User: "alice", UID: &uid, Scopes: s, Issued: now.Add(-time.Minute), Expires: now.Add(time.Hour),
			ID: gatewaytoken.NewID()}
		for _, change := range changes {
			change(&made)
		}
		token, err := gatewaytoken.Sign(made, []byte(strings.Repeat("k", 32)))
		if err != nil {
			t.Fatal(err)
		}
		r := newRequest(method, url, body)
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		return r
	}
}

// TestSubmissionWaitsWithScope checks that a token that only submits is refused
// before the submission if it also asks for the job's record.
func TestSubmissionWaitsWithScope(t *testing.T) {
	_, _, server, request := gatewayServer(t, new(atomic.Int32))
	const job = `{"job":{"script":"#!/bin/sh\n"}}`
	for _, tt := range []struct {
		scopes scope.Set
		query  string
		status int
	}{
		{scope.ComputeCreate, "", 200}, {scope.ComputeCreate, "?wait=1s", 403}, {scope.ComputeCreate | scope.ComputeRead, "?wait=1s", 200},
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, request(tt.scopes, "POST", "/sched/v0.0.43/job/submit"+tt.query, job))
		if w.Code != tt.status || (tt.status == 403) != strings.Contains(w.Header().Get("WWW-Authenticate"), `scope="compute.read"`) {
			t.Errorf("%s%s: %d, %s", tt.scopes, tt.query, w.Code, w.Body)
		}
		if got := w.Header().Get("X-OAuth-Scopes"); got != strings.ReplaceAll(tt.scopes.String(), "+", ", ") {
			t.Errorf("%s%s: X-OAuth-Scopes: %s", tt.scopes, tt.query, got)
		}
	}
}

// callingWriter calls a function with what is written.
type callingWriter struct {
	header http.Header
	write  func(text string)
}

func (w *callingWriter) Header() http.Header         { return w.header }
func (w *callingWriter) WriteHeader(int)             {}
func (w *callingWriter) Write(b []byte) (int, error) { w.write(string(b)); return len(b), nil }
func (w *callingWriter) FlushError() error           { return nil }

// TestTokenEndsInSnapshot checks that a stream ends at once, with the reason, if
// its token is no longer accepted while a long list is sent.
func TestTokenEndsInSnapshot(t *testing.T) {
	for _, tt := range []struct {
		why    auth.Answer
		reason string
	}{
		{auth.Revoked, "the gateway token is no longer accepted"},
		{auth.NotForUser, "the gateway token no longer acts for this user"},
		{auth.Unknown, "gateway tokens can't be verified at present"},
	} {
		worker, l, server, request := gatewayServer(t, new(atomic.Int32))
		l.change(func(f *fake) {
			f.jobs = nil
			for i := range 2000 {
				f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: uint32(i + 1)}, Name: fmt.Sprint("job ", i, strings.Repeat("x", 200)), State: model.JobRunning})
			}
		})
		r := request(scope.ComputeRead, "GET", "/sched/v0.0.43/jobs/", "")
		r.Header.Set("Accept", rest.MediaEvents)
		begun, after := false, ""
		server.ServeHTTP(&callingWriter{http.Header{}, func(text string) {
			if begun {
				after += text
			} else if strings.Contains(text, "event: snapshot") {
				begun = true
				(*worker.ended.Load())(tt.why)
			}
		}}, r)
		if !begun || strings.Contains(after, "event: snapshot") || !strings.Contains(after, "event: end\ndata: {\"reason\":\""+tt.reason) {
			t.Errorf("answer %d: after the first piece, %d bytes: %.300s", tt.why, len(after), after)
		}
	}
}

// TestTokenEndsInWait checks the answer to a request that waits when its token is
// no longer accepted, and that it causes no penalty.
func TestTokenEndsInWait(t *testing.T) {
	for _, tt := range []struct {
		why     auth.Answer
		status  int
		excused int32
	}{
		{auth.Revoked, 401, 1}, {auth.NotForUser, 403, 0}, {auth.Unknown, 503, 0},
	} {
		var excused atomic.Int32
		worker, _, server, request := gatewayServer(t, &excused)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, request(scope.ComputeRead, "GET", "/sched/v0.0.43/jobs/", ""))
		r := request(scope.ComputeRead, "GET", "/sched/v0.0.43/jobs/?wait=60s", "")
		r.Header.Set("If-None-Match", w.Header().Get("ETag"))
		time.AfterFunc(100*time.Millisecond, func() { (*worker.ended.Load())(tt.why) })
		w = httptest.NewRecorder()
		if server.ServeHTTP(w, r); w.Code != tt.status || excused.Load() != tt.excused {
			t.Errorf("answer %d: %d, excused %d times: %s", tt.why, w.Code, excused.Load(), w.Body)
		}
	}
}
