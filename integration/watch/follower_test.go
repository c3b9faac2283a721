package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"schedrestd/integration/harness"
)

// A follower follows a list of jobs, applies the events, and checks that each
// fits what it knows. It comes back whenever the stream breaks.
type follower struct {
	lab   *harness.Lab
	path  string // with the query
	token string

	mu       sync.Mutex // guards the fields below
	jobs     map[float64]string
	faults   []string
	resumed  int // streams that went on without a snapshot
	resets   int
	ends     map[string]int // reasons of end events
	leave    context.CancelFunc
	lastID   string
	snapshot bool // the last snapshot is complete
}

// list is the data of a snapshot.
type list struct {
	Jobs []map[string]any `json:"jobs"`
	More bool             `json:"more"`
}

// run follows the list until ctx ends.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		f.leave = cancel
		f.mu.Unlock()
		if err := f.follow(one); err != nil && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}
}

// follow follows the list over one connection.
func (f *follower) follow(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.lab.URL+f.path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-SCHED-USER-TOKEN", f.token)
	r.Header.Set("Accept", "text/event-stream")
	f.mu.Lock()
	id := f.lastID
	f.mu.Unlock()
	if id != "" {
		r.Header.Set("Last-Event-ID", id)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode < 500 {
			f.fault("status %d: %s", answer.StatusCode, text)
		}
		return errors.New(answer.Status)
	}
	lines := bufio.NewReader(answer.Body)
	fields, first := map[string]string{}, id != ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if line != "\n" {
			fields[name] = value
			continue
		}
		if fields["event"] != "" {
			f.apply(fields["event"], fields["data"], fields["id"], first)
			first = false
		}
		clear(fields)
	}
}

// apply applies an event. The argument first says that it is the first one after
// the client has come back with an id.
func (f *follower) apply(event, data, id string, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first && event != "reset" && event != "end" {
		f.resumed++
	}
	if id != "" {
		f.lastID = id
	}
	switch event {
	case "snapshot":
		var l list
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			f.faults = append(f.faults, err.Error())
		}
		if f.snapshot || f.jobs == nil {
			f.jobs = map[float64]string{}
		}
		for _, job := range l.Jobs {
			f.jobs[job["job_id"].(float64)] = fmt.Sprint(job)
		}
		f.snapshot = !l.More
		return
	case "reset":
		f.resets++
		f.snapshot = true // the next snapshot replaces what is known
		return
	case "end":
		f.ends[data]++
		return
	}
	var job map[string]any
	if err := json.Unmarshal([]byte(data), &job); err != nil {
		f.faults = append(f.faults, err.Error())
		return
	}
	number := job["job_id"].(float64)
	old, known := f.jobs[number]
	switch {
	case known == (event == "added"), event == "changed" && old == fmt.Sprint(job):
		f.faults = append(f.faults, fmt.Sprintf("%s %v, but the client has %q", event, job, old))
	case event == "removed":
		delete(f.jobs, number)
	default:
		f.jobs[number] = fmt.Sprint(job)
	}
}

func (f *follower) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// missing compares what the client knows with the list as it is now. It returns
// "" if they are the same.
func (f *follower) missing() string {
	a := f.lab.Request("GET", f.path, "", "X-SCHED-USER-TOKEN: "+f.token)
	var l list
	if err := json.Unmarshal([]byte(a.Text), &l); err != nil || a.Status != http.StatusOK {
		return fmt.Sprint(a.Status, " ", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, job := range l.Jobs {
		if got := f.jobs[job["job_id"].(float64)]; got != fmt.Sprint(job) {
			return fmt.Sprintf("the client has %q instead of %v", got, job)
		}
	}
	if len(f.jobs) != len(l.Jobs) {
		return fmt.Sprintf("the client has %d jobs instead of %d", len(f.jobs), len(l.Jobs))
	}
	return ""
}
