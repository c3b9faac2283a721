package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"schedrestd/internal/errs"
)

// TestAppliedWait checks what an answer's header says about waiting.
func TestAppliedWait(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   time.Duration
	}{
		{nil, 0},
		{[]string{"wait=45"}, 45 * time.Second},
		{[]string{"return=minimal", "respond-async, wait=7"}, 7 * time.Second},
		{[]string{"wait=3600"}, maxWait},
		{[]string{"wait=0"}, 0},
		{[]string{"wait=-1"}, 0},
		{[]string{"wait", "wait=soon"}, 0},
	} {
		if got := appliedWait(http.Header{"Preference-Applied": tt.values}); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.values, got, tt.want)
		}
	}
}

// TestWait checks what the client sends to servers that can wait, and to servers
// that can't. It may send the parameter until, which other servers would refuse,
// only to a server that can wait.
func TestWait(t *testing.T) {
	for _, tt := range []struct {
		name    string
		applied string   // Preference-Applied; "" for none
		tag     string   // ETag; "" for none
		waits   []bool   // List.Wait of each request
		want    []string // query and headers of each request
		can     []time.Duration
	}{
		{"can wait", "wait=20", `W/"1"`, []bool{true, true, false, true},
			[]string{"fields=job_id wait=45 ", `fields=job_id&until=ended wait=45 W/"1"`, `fields=job_id  W/"1"`, `fields=job_id&until=ended wait=45 W/"1"`},
			[]time.Duration{20 * time.Second, 20 * time.Second, 0, 20 * time.Second}},
		{"without a tag", "wait=45", "", []bool{true, true},
			[]string{"fields=job_id wait=45 ", "fields=job_id&until=ended&update_time=9 wait=45 "}, []time.Duration{maxWait, maxWait}},
		{"can't wait", "", `W/"1"`, []bool{true, true},
			[]string{"fields=job_id wait=45 ", `fields=job_id&update_time=9 wait=45 W/"1"`}, []time.Duration{0, 0}},
		{"may not wait", "wait=0", "", []bool{true, true},
			[]string{"fields=job_id wait=45 ", "fields=job_id&update_time=9 wait=45 "}, []time.Duration{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent []string
			c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, fmt.Sprintf("%s %s %s", r.URL.RawQuery, r.Header.Get("Prefer"), r.Header.Get("If-None-Match")))
				for name, value := range map[string]string{"Preference-Applied": tt.applied, "ETag": tt.tag} {
					if value != "" {
						w.Header().Set(name, value)
					}
				}
				reply(200, `{"jobs": [{"job_id": 7}], "last_update": {"set": true, "number": 9}}`)(w, r)
			}, "/slurm/v0.0.44/"))
			l := &List{Fields: []string{"job_id"}, Until: UntilEnded}
			for i, wait := range tt.waits {
				l.Wait = wait
				_, m, err := c.PollJob(t.Context(), "7", l)
				if err != nil || m.Wait != tt.can[i] {
					t.Errorf("request %d: can wait %s, want %s; %v", i, m.Wait, tt.can[i], err)
				}
				l.Since = m.LastUpdate
			}
			if !slices.Equal(sent, tt.want) {
				t.Errorf("sent\n%q, want\n%q", sent, tt.want)
			}
		})
	}
}

// TestWaitTimeout checks that a server that waits may take longer than the time
// limit for answers.
func TestWaitTimeout(t *testing.T) {
	t.Parallel()
	const limit = time.Second // the other answers must arrive in this time
	s := httptest.NewServer(apiHandler(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Prefer") == "" {
			<-r.Context().Done()
			return
		}
		time.Sleep(2 * limit)
		reply(200, `{"jobs": []}`)(w, r)
	}, "/slurm/v0.0.44/"))
	defer s.Close()
	c, err := Dial(t.Context(), Config{URL: s.URL + "/slurm/v0.0.44", Timeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	l := &List{Wait: true}
	if _, err := c.Jobs(t.Context(), l, func(*Job) error { return nil }); err != nil {
		t.Errorf("the server waits: %v", err)
	}
	l.Wait = false
	if _, err := c.Jobs(t.Context(), l, func(*Job) error { return nil }); errs.KindOf(err) != errs.Timeout {
		t.Errorf("the server does not answer: %v", err)
	}
}

// TestRetryAfter checks the time after which a request may be repeated.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		status int
		header string
		want   time.Duration
		kind   errs.Kind
	}{
		{503, "2", 2 * time.Second, errs.Unavailable},
		{429, "10", 10 * time.Second, errs.TooMany},
		{503, "", 0, errs.Unavailable},
		{503, "Fri, 27 Nov 2026 13:00:00 GMT", 0, errs.Unavailable},
		{503, "-1", 0, errs.Unavailable},
		{503, "86400", maxRetryAfter, errs.Unavailable},
	} {
		c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", tt.header)
			reply(tt.status, `{"errors": []}`)(w, r)
		}, "/slurm/v0.0.44/"))
		_, err := c.Jobs(t.Context(), nil, func(*Job) error { return nil })
		if got := RetryAfter(err); got != tt.want || errs.KindOf(err) != tt.kind {
			t.Errorf("%d, Retry-After %q: %s, want %s; %v", tt.status, tt.header, got, tt.want, err)
		}
	}
}
