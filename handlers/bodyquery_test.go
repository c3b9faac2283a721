package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const form = "application/x-www-form-urlencoded"

// TestParametersInBody checks that the parameters in the body of an operation
// without a body of its own have the effect of those in the query, as in
// slurmrestd. Apache Airavata's client lists jobs in this way.
func TestParametersInBody(t *testing.T) {
	for _, tt := range []struct{ query, mediaType, body string }{
		{"users=alice&start_time=1700000000", "application/json", `{"users": ["alice"], "start_time": {"set": true, "infinite": false, "number": 1700000000}}`},
		{"users=alice&users=bob&skip_steps=true", "", `{"users": ["alice", "bob"], "skip_steps": true, "account": null, "end_time": {"set": false, "number": 0}}`},
		{"users=alice", "application/yaml", "users: alice\n"},
		{"users=alice&partition=long", form, "users=alice&partition=long"},
		{"", "application/json", `{}`},
		{"", "application/json", `null`},
		{"", "application/json", `[]`},
	} {
		for _, spelling := range []string{"slurmdb", "scheddb"} {
			f := demo()
			serve(t, config(f), request(http.MethodGet, "/"+spelling+"/v0.0.44/jobs?"+tt.query, ""))
			r := request(http.MethodGet, "/"+spelling+"/v0.0.44/jobs", tt.body)
			r.Header.Del("Content-Type")
			if tt.mediaType != "" {
				r.Header.Set("Content-Type", tt.mediaType)
			}
			if w := serve(t, config(f), r); w.Code != http.StatusOK {
				t.Errorf("%s: status %d: %s", tt.body, w.Code, w.Body)
			}
			filters := f.recorded.filters
			if d := cmp.Diff(filters[:len(filters)/2], filters[len(filters)/2:]); len(filters) == 0 || d != "" {
				t.Errorf("%s: %s", tt.body, d)
			}
		}
	}
}

// TestDeleteWithBody checks that a signal in the body reaches the job: without
// it, the job would be killed. A body that can't be read must change nothing.
func TestDeleteWithBody(t *testing.T) {
	for _, tt := range []struct {
		name, path, mediaType, body string
		status                      int
		source                      string
	}{
		{"a signal", "job/12", "application/json", `{"signal": "USR1", "flags": ["BATCH_JOB"]}`, 200, ""},
		{"a form", "job/12", form, "signal=USR1&flags=BATCH_JOB", 200, ""},
		{"a misspelt name", "job/12", "application/json", `{"signl": "USR1"}`, 422, "query/signl"},
		{"an unknown signal", "job/12", "application/json", `{"signal": "BANG"}`, 422, "query/signal"},
		{"no signal", "job/12", "application/json", `{"signal": null}`, 422, "query/signal"},
		{"an object", "job/12", "application/json", `{"signal": {"name": "USR1"}}`, 422, "#/signal"},
		{"a text", "job/12", "application/json", `"USR1"`, 422, "#"},
		{"also a query", "job/12?signal=USR1", "application/json", `{"flags": "BATCH_JOB"}`, 400, "#"},
		{"not JSON", "job/12", "application/json", `signal=USR1`, 400, "#"},
		{"another format", "job/12", "text/plain", `signal=USR1`, 415, ""},
		{"too long", "job/12", form, "signal=USR1&x=" + strings.Repeat("x", 9000), 413, ""},
	} {
		for _, chunked := range []bool{false, true} {
			f := demo()
			r := request(http.MethodDelete, "/slurm/v0.0.44/"+tt.path, tt.body)
			r.Header.Set("Content-Type", tt.mediaType)
			if chunked {
				r.ContentLength = -1
			}
			w := serve(t, config(f), r)
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status || len(body.Errors) > 0 && body.Errors[0].Source != tt.source {
				t.Errorf("%s, chunked %v: status %d, errors %+v", tt.name, chunked, w.Code, body.Errors)
			}
			var want [][2]uint16
			if tt.status == http.StatusOK {
				want = [][2]uint16{{10, 1}}
			}
			if d := cmp.Diff(want, f.killArgs); d != "" {
				t.Errorf("%s, chunked %v: %s", tt.name, chunked, d)
			}
		}
	}
}

// TestHarmfulParametersInBody checks what the body of a GET must not do: contain a
// token, which the answer could show, be longer as a query than a query may be, or be
// compressed, so that the parameters in it have no effect.
func TestHarmfulParametersInBody(t *testing.T) {
	for _, tt := range []struct {
		name, mediaType, coding, body string
		status                        int
	}{
		{"a token", form, "", "users=eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhbGljZSJ9.c2lnbmF0dXJl", http.StatusUnauthorized},
		{"a token's parameter", "application/json", "", `{"token": "x"}`, http.StatusUnauthorized},
		{"much that is escaped", "application/json", "", `{"users": "` + strings.Repeat("é", 2000) + `"}`, http.StatusRequestEntityTooLarge},
		{"a compressed form", form, "gzip", "users=alice", http.StatusUnsupportedMediaType},
		{"a form of two types", form + ", application/json", "", "users=alice", http.StatusUnsupportedMediaType},
	} {
		f := demo()
		r := request(http.MethodGet, "/slurmdb/v0.0.44/jobs", tt.body)
		r.Header.Set("Content-Type", tt.mediaType)
		if tt.coding != "" {
			r.Header.Set("Content-Encoding", tt.coding)
		}
		if w := serve(t, config(f), r); w.Code != tt.status {
			t.Errorf("%s: status %d: %s", tt.name, w.Code, w.Body)
		}
	}
}

// TestPlaceOfAnswerToBody checks that the Content-Location of an answer has the
// parameters that were in the body: other records are at the URL without them.
func TestPlaceOfAnswerToBody(t *testing.T) {
	w := serve(t, config(demo()), request(http.MethodGet, "/slurmdb/latest/jobs", `{"users": "alice"}`))
	if place := w.Header().Get("Content-Location"); w.Code != http.StatusOK || !strings.HasSuffix(place, "/jobs?users=alice") {
		t.Errorf("status %d, at %q", w.Code, place)
	}
}

// TestConnectionAfterParametersInBody checks that the connection ends after a GET
// or DELETE with a body over HTTP/1.1, where a proxy may take the body for another
// request, and stays open over HTTP/2, whose frames say where each request ends.
func TestConnectionAfterParametersInBody(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, tt := range []struct{ method, path, body string }{
			{http.MethodGet, "/slurmdb/v0.0.44/jobs", `{"users": "alice"}`},
			{http.MethodDelete, "/slurm/v0.0.44/job/12", `{"signal": "USR1"}`},
		} {
			server := httptest.NewUnstartedServer(New(config(demo())))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			for i := range 2 {
				var reused bool
				trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
				r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), tt.method, server.URL+tt.path, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-SCHED-USER-TOKEN", token)
				r.Header.Set("Content-Type", "application/json")
				answer, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil {
					t.Error(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK || answer.ProtoAtLeast(2, 0) != http2 {
					t.Fatalf("%s over %s: %s", tt.method, answer.Proto, answer.Status)
				}
				if want := http2 && i > 0; reused != want {
					t.Errorf("%s %d over %s: on the same connection %v, want %v", tt.method, i, answer.Proto, reused, want)
				}
			}
		}
	}
}
