package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is what the gateway said.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any // nil when it is not a JSON object
}

// ask sends a request with the token of this process's user. Each of headers is "Name: value"; one
// of X-SCHED-USER-TOKEN or Authorization takes the token's place.
func (l *lab) ask(method, path, body string, headers ...string) answer {
	l.t.Helper()
	a, err := l.try(http.DefaultClient, method, path, body, headers...)
	must(l.t, err)
	return a
}

// try is ask for a request that may fail, by a client of the caller's choice.
func (l *lab) try(c *http.Client, method, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, l.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("X-SCHED-USER-TOKEN", l.userToken)
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
		if name, value, ok := strings.Cut(h, ": "); ok { // "Name:" only takes the header away
			req.Header.Add(name, value)
		}
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: resp.StatusCode, header: resp.Header, text: string(text)}
	json.Unmarshal(text, &a.body)
	asDocumented(l.t, req, a)
	return a, nil
}

// get is the value at path in the answer's body, "nodes", 0, "name"; nil when there is none.
func (a answer) get(path ...any) any {
	var v any = a.body
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

// list is the array at path.
func (a answer) list(path ...any) []any {
	l, _ := a.get(path...).([]any)
	return l
}

// want fails the test unless the answer has that status and the envelope.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.text)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if _, ok := a.get("meta").(map[string]any); !ok {
		t.Errorf("no meta in %s", a.text)
	}
	for _, name := range []string{"errors", "warnings"} {
		if _, ok := a.get(name).([]any); !ok {
			t.Errorf("no array %s in %s", name, a.text)
		}
	}
	if n := len(a.list("errors")); (status == http.StatusOK) != (n == 0) {
		t.Errorf("status %d with %d errors: %s", status, n, a.text)
	}
	return a
}

// version is the API version that tests use when it does not matter.
const version = "v0.0.43"

// jobRequest is the body of a submission; fields overrule and add to what every job needs.
func (l *lab) jobRequest(script string, fields map[string]any) string {
	job := map[string]any{
		"name": "test", "script": "#!/bin/sh\n" + script + "\n", "current_working_directory": l.work,
		"environment": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "time_limit": 5,
	}
	for name, value := range fields {
		job[name] = value
	}
	text, err := json.Marshal(map[string]any{"job": job})
	must(l.t, err)
	return string(text)
}

// submit hands in a job and returns its number.
func (l *lab) submit(script string, fields map[string]any, headers ...string) int {
	l.t.Helper()
	a := l.ask("POST", "/sched/"+version+"/job/submit", l.jobRequest(script, fields), headers...).want(l.t, 200)
	id, ok := a.get("job_id").(float64)
	if !ok || id < 1 {
		l.t.Fatalf("no job_id in %s", a.text)
	}
	return int(id)
}

// job is the controller's view of a job.
func (l *lab) job(id int) answer {
	l.t.Helper()
	return l.ask("GET", fmt.Sprintf("/sched/%s/job/%d", version, id), "").want(l.t, 200)
}

// state is the words of a job's state, joined by plus signs.
func (a answer) state() string {
	var words []string
	for _, w := range a.list("jobs", 0, "job_state") {
		words = append(words, fmt.Sprint(w))
	}
	return strings.Join(words, "+")
}

// end waits for a job's end and returns the controller's last view of it.
func (l *lab) end(id int) answer {
	l.t.Helper()
	var last answer
	eventually(l.t, fmt.Sprintf("the end of job %d", id), func() bool {
		last = l.job(id)
		s := last.state()
		return s != "PENDING" && !strings.Contains(s, "RUNNING") && !strings.Contains(s, "COMPLETING")
	})
	return last
}
