package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/model"
)

// newJobs returns pending jobs of ann with ids from 1 to n.
func newJobs(n int) (jobs []model.Job) {
	for id := 1; id <= n; id++ {
		jobs = append(jobs, model.Job{StepID: model.StepID{JobID: uint32(id)}, Name: fmt.Sprint("job", id), UserID: 1001, State: model.JobPending})
	}
	return jobs
}

// hurry makes the pauses between requests short until the test ends.
func hurry(t *testing.T) {
	job, list := jobSchedule, listSchedule
	t.Cleanup(func() { jobSchedule, listSchedule = job, list })
	jobSchedule = schedule{time.Millisecond, 10 * time.Millisecond, retryTimeout}
	listSchedule = jobSchedule
}

// TestAwait checks that wait, watch and submit --wait exit when the jobs have
// ended, and with which status. If the server can wait, they send one request,
// and then one for each change; and one list stands for many jobs.
func TestAwait(t *testing.T) {
	hurry(t)
	const many = "1 2 3 4 5 6 7 8 9"
	run := func(s *site) { s.jobs[0].State = model.JobRunning }
	end := func(s *site) {
		for i := range s.jobs {
			s.jobs[i].State = model.JobComplete
		}
	}
	fail := func(s *site) {
		end(s)
		s.jobs[1].State, s.jobs[1].ExitCode = model.JobFailed, 7<<8
		s.jobs[2].State, s.jobs[2].ExitCode = model.JobFailed, 8<<8
	}
	endMost := func(s *site) {
		end(s)
		s.jobs[1].State = model.JobRunning
	}
	forget := func(s *site) {
		fail(s)
		s.jobs = s.jobs[:8]
	}
	for _, tt := range []struct {
		args    string
		changes []func(*site)
		status  int
		asked   string // lists that are requested from a server that waits
		until   string // parameter of the second request
		text    string // in the output or the error
	}{
		{"wait 1", []func(*site){run, end}, 0, "job job", "ended", ""},
		{"wait 2", []func(*site){fail}, 7, "job job", "ended", ""},
		{"wait 3 2", []func(*site){fail}, 8, "", "", ""},
		{"wait --until running 1", []func(*site){run}, 0, "job job", "running", ""},
		{"wait --until running 2", []func(*site){run, fail}, 7, "job job", "running", ""},
		{"wait " + many, []func(*site){run, fail}, 7, "job jobs jobs jobs", "", ""},
		{"wait " + many, []func(*site){endMost, fail}, 7, "job jobs jobs jobs jobs", "", ""},
		{"wait --until running " + many, []func(*site){run, fail}, 7, "job jobs jobs jobs", "", ""},
		{"watch " + many, []func(*site){run, fail}, 7, "job jobs jobs jobs", "", "  job2          FAILED, exit code 7\n"},
		{"watch 1", []func(*site){run, end}, 0, "job job job", "", "  job1          COMPLETED\n"},
		{"wait 99 " + many, []func(*site){fail}, statusUnknown, "job job job jobs job job jobs", "", "wait for job 99: job 99 is unknown"},
		{"wait " + many, []func(*site){forget}, statusUnknown, "job jobs jobs job job", "", "wait for job 9: job 9 is unknown"},
	} {
		for _, support := range []support{waits, supports, ignores, refuses} {
			s := &site{support: support, jobs: newJobs(9)}
			left := tt.changes
			requests, changed, reads := 0, 0, 0 // requests until now and until the last change, and reads since then
			s.each = func(n int) { requests = n }
			s.read = func(int) {
				reads++
				if support == waits && s.waiting.Load() == 0 {
					return // the answer to the next request would contain two changes
				}
				if len(left) > 0 && reads >= 4 && (requests > changed || tt.until != "") {
					left[0](s)
					left, changed, reads = left[1:], requests, 0
				}
			}
			status, out, errOut := s.run(t, strings.Fields(tt.args)...)
			if status != tt.status || !strings.Contains(out+errOut, tt.text) || strings.HasPrefix(tt.args, "wait") && out != "" {
				t.Errorf("%s, server %s: status %d, %s%s", tt.args, support, status, out, errOut)
			}
			var lists []string
			for i, r := range s.requests {
				lists = append(lists, r.list)
				until := r.query.Get("until")
				if support == waits && (i == 1 && tt.asked != "" && until != tt.until || r.list == "jobs" && r.prefer != "wait=45") || support != waits && (until != "" || r.list == "jobs") {
					t.Errorf("%s, server %s: request %d: %s, until %q, Prefer %q", tt.args, support, i, r.list, until, r.prefer)
				}
			}
			if last := s.requests[len(s.requests)-1].query.Get("job_id"); len(lists) == 5 && lists[4] == "jobs" && last != "2" {
				t.Errorf("%s: the last request is for %s", tt.args, last)
			}
			if got := strings.Join(lists, " "); support == waits && tt.asked != "" && got != tt.asked {
				t.Errorf("%s: requests for %s, want %s", tt.args, got, tt.asked)
			}
		}
	}
}

// TestMaxWait checks that wait gives up in time, on servers that can wait and on
// others.
func TestMaxWait(t *testing.T) {
	hurry(t)
	for _, support := range []support{waits, ignores} {
		s := &site{support: support, jobs: newJobs(9)}
		for _, ids := range []string{"1", "1 2 3 4 5 6 7 8 9"} {
			status, out, errOut := s.run(t, strings.Fields("wait --max-wait 100ms "+ids)...)
			if status != statusTimeout || out != "" || !strings.Contains(errOut, "not reached the state ended within 100ms") {
				t.Errorf("%s: status %d, %s%s", support, status, out, errOut)
			}
		}
	}
}

// TestBrokenWait checks that commands that wait ask again if a proxy breaks the
// connection, and that the answer is still found.
func TestBrokenWait(t *testing.T) {
	hurry(t)
	s := &site{support: waits, jobs: newJobs(1)}
	h, requests := s.handler(), 0
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Prefer") != "" {
			if requests++; requests == 2 {
				s.mu.Lock()
				s.jobs[0].State = model.JobComplete
				s.mu.Unlock()
				reply(w, http.StatusOK, `{"jobs": [`)
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}
		h.ServeHTTP(w, r)
	})
	if status, out, errOut := runAgainst(t, broken, "wait", "1"); status != 0 || out+errOut != "" || requests != 2 {
		t.Errorf("status %d after %d requests, %s%s", status, requests, out, errOut)
	}
}

// TestTopFollows checks that top shows a change of jobs or nodes without its
// asking again, if the server can wait.
func TestTopFollows(t *testing.T) {
	s := &site{support: waits, jobs: newJobs(1), nodes: []model.Node{{Name: "n1", State: model.NodeIdle, CPUs: 8}}}
	server := httptest.NewServer(s.handler())
	defer server.Close()
	client, err := rest.Dial(t.Context(), rest.Config{URL: server.URL, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	o := newOverview(&connection{Client: client, log: func(string, ...any) {}}, &filter{})
	if err := o.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, failed := o.follow(ctx, time.Millisecond)
	for _, tt := range []struct {
		change func()
		want   string
	}{
		{func() {}, "Jobs 0 running, 1 pending"},
		{func() { s.jobs[0].State = model.JobRunning }, "Jobs 1 running, 0 pending"},
		{func() { s.nodes[0].EffectiveCPUs = 64 }, "0 of 64"},
		{func() { s.jobs = nil }, "Jobs 0 running, 0 pending"},
	} {
		s.mu.Lock()
		tt.change()
		s.mu.Unlock()
		for deadline := time.After(time.Minute); ; {
			var b strings.Builder
			if err := o.print(&b, table.Style{}, 10); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), tt.want) {
				break
			}
			select {
			case <-changed:
			case err := <-failed:
				t.Fatal(err)
			case <-deadline:
				t.Fatalf("no %q in\n%s", tt.want, b.String())
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.requests); n > 12 {
		t.Errorf("%d requests for 3 changes", n)
	}
}
