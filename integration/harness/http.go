package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Answer is an answer of the gateway.
type Answer struct {
	Status int
	Header http.Header
	Text   string
	Body   map[string]any // nil if the body is not a JSON object
}

// Request sends a request with the token of this process's user. Each element
// of headers is "Name: value", or "Name:" to remove a header. An element with
// X-SCHED-USER-TOKEN or Authorization replaces the token.
func (l *Lab) Request(method, path, body string, headers ...string) Answer {
	l.T.Helper()
	a, err := l.TryRequest(http.DefaultClient, method, path, body, headers...)
	Must(l.T, err)
	return a
}

// TryRequest does the same as Request, but with the client c. It returns an
// error if there is no answer.
func (l *Lab) TryRequest(c *http.Client, method, path, body string, headers ...string) (Answer, error) {
	req, err := http.NewRequest(method, l.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("X-SCHED-USER-TOKEN", l.OwnToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, _, _ := strings.Cut(h, ":")
		if name == "X-SCHED-USER-TOKEN" || name == "Authorization" {
			req.Header.Del("X-SCHED-USER-TOKEN")
		}
	}
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok { // "Name:" only removes the header
			req.Header.Add(name, value)
		}
	}
	resp, err := c.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}
	json.Unmarshal(text, &a.Body)
	checkDocumented(l.T, req, a)
	return a, nil
}

// Get returns the value at path in the answer's body. For example, Get("nodes",
// 0, "name") returns the name of the first node. If there is no such value, Get
// returns nil.
func (a Answer) Get(path ...any) any {
	var v any = a.Body
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				return nil
			}
			v = list[s]
		}
	}
	return v
}

// List returns the array at path.
func (a Answer) List(path ...any) []any {
	l, _ := a.Get(path...).([]any)
	return l
}

// Want fails the test unless the answer has the given status and a complete
// envelope: meta, errors and warnings.
func (a Answer) Want(t *testing.T, status int) Answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Text)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if _, ok := a.Get("meta").(map[string]any); !ok {
		t.Errorf("no meta in %s", a.Text)
	}
	for _, name := range []string{"errors", "warnings"} {
		if _, ok := a.Get(name).([]any); !ok {
			t.Errorf("no array %s in %s", name, a.Text)
		}
	}
	if n := len(a.List("errors")); (status == http.StatusOK) != (n == 0) {
		t.Errorf("status %d with %d errors: %s", status, n, a.Text)
	}
	return a
}

// Version is the API version that tests use when any version would do.
const Version = "v0.0.43"

// JobRequest returns the body of a submission. The job has the fields that
// every job needs and the given fields, which take precedence.
func (l *Lab) JobRequest(script string, fields map[string]any) string {
	job := map[string]any{
		"name": "test", "script": "#!/bin/sh\n" + script + "\n", "current_working_directory": l.Work,
		"environment": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "time_limit": 5,
	}
	for name, value := range fields {
		job[name] = value
	}
	text, err := json.Marshal(map[string]any{"job": job})
	Must(l.T, err)
	return string(text)
}

// Submit submits a job and returns its number.
func (l *Lab) Submit(script string, fields map[string]any, headers ...string) int {
	l.T.Helper()
	a := l.Request("POST", "/sched/"+Version+"/job/submit", l.JobRequest(script, fields), headers...).Want(l.T, 200)
	id, ok := a.Get("job_id").(float64)
	if !ok || id < 1 {
		l.T.Fatalf("no job_id in %s", a.Text)
	}
	return int(id)
}

// Job returns the controller's view of a job.
func (l *Lab) Job(id int) Answer {
	l.T.Helper()
	return l.Request("GET", fmt.Sprintf("/sched/%s/job/%d", Version, id), "").Want(l.T, 200)
}

// State returns the words of a job's state, joined by "+".
func (a Answer) State() string {
	var words []string
	for _, w := range a.List("jobs", 0, "job_state") {
		words = append(words, fmt.Sprint(w))
	}
	return strings.Join(words, "+")
}

// AwaitEnd waits until a job has ended, and returns the controller's last view
// of it.
func (l *Lab) AwaitEnd(id int) Answer {
	l.T.Helper()
	var last Answer
	Eventually(l.T, fmt.Sprintf("the end of job %d", id), func() bool {
		last = l.Job(id)
		s := last.State()
		return s != "PENDING" && !strings.Contains(s, "RUNNING") && !strings.Contains(s, "COMPLETING")
	})
	return last
}
