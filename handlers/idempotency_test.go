package handlers

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
)

// keyMemory stores keys like the auditor.
type keyMemory struct {
	rest.NoWorker
	log    rest.Audit // nil for none
	states map[[32]byte]*keyEntry
	claims []rest.KeyClaim
	err    error
}

func (*keyMemory) KeepsKeys() bool { return true }

type keyEntry struct {
	body   [32]byte
	state  keystate.State
	answer []byte
}

func (m *keyMemory) Intend(ctx context.Context, c rest.Change) (report func(rest.Result), err error) {
	k := *c.Key
	m.claims = append(m.claims, k)
	if m.err != nil {
		return nil, m.err
	}
	switch e := m.states[k.Key]; {
	case e == nil || e.state == keystate.NotDone:
	case e.body != k.Body:
		return nil, &rest.KeyError{State: keystate.Mismatch}
	case k.Search && e.state == keystate.Unknown:
	default:
		return nil, &rest.KeyError{State: e.state, Answer: e.answer}
	}
	e := &keyEntry{body: k.Body, state: keystate.Running}
	if m.states == nil {
		m.states = map[[32]byte]*keyEntry{}
	}
	m.states[k.Key] = e
	logResult := func(rest.Result) {}
	if m.log != nil {
		logResult, err = m.log.Intend(ctx, c)
	}
	return func(r rest.Result) { e.state, e.answer = r.KeyState(), r.Answer; logResult(r) }, err
}

const keyedBody = `{"job": {"script": "x", "name": "n", "colour": "red"}}`

// keyed returns a request to submit a job, with one Idempotency-Key header for
// each of the keys.
func keyed(body string, keys ...string) *http.Request {
	r := request(http.MethodPost, "/sched/v0.0.42/job/submit", body)
	r.Header[api.HeaderKey] = keys
	return r
}

// TestIdempotencyKey checks the answer to a second request with the same key.
// This answer depends on the outcome of the first request.
func TestIdempotencyKey(t *testing.T) {
	several := `{"jobs": [{"script": "x"}, {"name": "second"}]}`
	tests := []struct {
		name          string
		first, second string
		err           error // of the first submission
		status        int   // status of the second answer
		code          string
		jobs          int // total number of submitted jobs
	}{
		{name: "the same request", first: keyedBody, second: keyedBody, status: 200, jobs: 1},
		{name: "a heterogeneous job", first: several, second: several, status: 200, jobs: 2},
		{name: "another body", first: keyedBody, second: several, status: 422, code: "idempotency_key_reused", jobs: 1},
		{name: "refused by the controller", first: keyedBody, second: keyedBody, err: &errs.Error{Kind: errs.Denied, Number: 2002}, status: 200, jobs: 1},
		{name: "refused, then corrected", first: keyedBody, second: several, err: &errs.Error{Kind: errs.Invalid, Number: 2015}, status: 200, jobs: 2},
		{name: "not answered", first: keyedBody, second: keyedBody, err: &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown}, status: 502, code: errs.OutcomeUnknown},
		{name: "not answered, another body", first: keyedBody, second: several, err: &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown}, status: 422, code: "idempotency_key_reused"},
		{name: "not understood", first: `{"job": {}}`, second: keyedBody, status: 200, jobs: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			log := new(recorder)
			cfg.Worker = &keyMemory{log: log}
			f.submitErr = tt.err
			first := serve(t, cfg, keyed(tt.first, "k"))
			f.submitErr = nil
			intents := len(log.changes)
			second := serve(t, cfg, keyed(tt.second, "k"))
			if second.Code != tt.status || tt.code != "" && envelope(t, second.Body.Bytes()).Errors[0].Code != tt.code {
				t.Fatalf("%d %s", second.Code, second.Body)
			}
			if len(f.submitted) != tt.jobs {
				t.Errorf("%d jobs", len(f.submitted))
			}
			replayed := second.Header().Get(api.HeaderReplayed) == "true"
			if want := first.Code == 200 && second.Code == 200; replayed != want || first.Header().Get(api.HeaderReplayed) != "" {
				t.Errorf("replayed: %v, want %v", replayed, want)
			}
			if replayed {
				if d := cmp.Diff(first.Body.String(), second.Body.String()); d != "" {
					t.Error(d)
				}
			}
			if logged := len(log.changes) > intents; logged != (second.Code == 200 && !replayed) {
				t.Errorf("%d intents, then %d", intents, len(log.changes))
			}
		})
	}
}

// TestIdempotencyKeyOfOthers checks that each user has their own keys. A
// request with a known key must be refused if it differs from the first request
// in anything that determines the submitted job.
func TestIdempotencyKeyOfOthers(t *testing.T) {
	f := demo()
	cfg := config(f)
	m := new(keyMemory)
	cfg.Worker = m
	requests := []*http.Request{keyed(keyedBody, "k"), keyed(keyedBody, "another"), keyed(keyedBody, "k"), keyed(keyedBody, "k"), keyed(keyedBody, "k")}
	requests[2].Header.Set("X-SCHED-USER-NAME", "bob")
	requests[3].Header.Set("Content-Type", "application/yaml")
	requests[4].URL.Path, requests[4].RequestURI = "/sched/v0.0.43/job/submit", "/sched/v0.0.43/job/submit"
	for i, want := range []int{200, 200, 200, 422, 422} {
		if w := serve(t, cfg, requests[i]); w.Code != want {
			t.Errorf("request %d: %d %s", i, w.Code, w.Body)
		}
	}
	if len(f.submitted) != 3 || m.claims[0].User != m.claims[1].User || m.claims[0].User == m.claims[2].User || m.claims[0].Key == m.claims[2].Key {
		t.Errorf("%d jobs, %+v", len(f.submitted), m.claims)
	}
}

// TestIdempotencyKeyRefused checks that a request is refused if its key is
// invalid or can't be stored. No job may be submitted.
func TestIdempotencyKeyRefused(t *testing.T) {
	tests := []struct {
		name   string
		keys   []string
		store  rest.Worker
		status int
	}{
		{"empty", []string{""}, new(keyMemory), 400},
		{"as long as possible", []string{strings.Repeat("k", 255)}, new(keyMemory), 200},
		{"too long", []string{strings.Repeat("k", 256)}, new(keyMemory), 400},
		{"a control character", []string{"a\tb"}, new(keyMemory), 400},
		{"not ASCII", []string{"schlüssel"}, new(keyMemory), 400},
		{"two", []string{"a", "a"}, new(keyMemory), 400},
		{"none are kept", []string{"a"}, nil, 501},
		{"none can be kept now", []string{"a"}, &keyMemory{err: errs.New(errs.Unavailable, "gone")}, 503},
		{"no room", []string{"a"}, new(full), 503},
		{"no line in the audit log", []string{"a"}, &keyMemory{log: &recorder{err: errs.New(errs.Unavailable, "no room")}}, 503},
	}
	for _, tt := range tests {
		f := demo()
		cfg := config(f)
		cfg.Worker = tt.store
		w := serve(t, cfg, keyed(keyedBody, tt.keys...))
		if w.Code != tt.status || (len(f.submitted) > 0) != (tt.status == 200) || (w.Header().Get("Retry-After") != "") != (tt.status == 503) {
			t.Errorf("%s: %d %v %s", tt.name, w.Code, w.Header(), w.Body)
		}
	}
	r := request(http.MethodPost, "/sched/v0.0.42/job/allocate", `{"job": {"name": "n"}}`)
	r.Header.Set(api.HeaderKey, "k")
	if w := serve(t, config(demo()), r); w.Code != 501 {
		t.Errorf("allocate: %d %s", w.Code, w.Body)
	}
}

// full can't store any key.
type full struct{ keyMemory }

func (*full) Intend(context.Context, rest.Change) (func(rest.Result), error) {
	return nil, &rest.KeyError{State: keystate.Full}
}

// busy is a keyMemory. A key is Running as many times as the field
// remaining says. After that busy behaves like keyMemory.
type busy struct {
	remaining int
	keyMemory
}

func (b *busy) Intend(ctx context.Context, c rest.Change) (func(rest.Result), error) {
	if b.remaining--; b.remaining >= 0 {
		return nil, &rest.KeyError{State: keystate.Running}
	}
	return b.keyMemory.Intend(ctx, c)
}

// TestIdempotencyKeyInProgress checks that a request waits while another
// request with the same key is in progress, but not for long.
func TestIdempotencyKeyInProgress(t *testing.T) {
	for busyClaims, want := range map[int]int{3: 200, 1000: 409} {
		synctest.Test(t, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			cfg.Worker = &busy{remaining: busyClaims}
			w := serve(t, cfg, keyed(keyedBody, "k"))
			if w.Code != want || want == 409 && (w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "in_progress")) {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
		})
	}
}
