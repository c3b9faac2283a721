package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestModel changes jobs of two users at random while clients follow and wait for
// several views of them, leave, and come back, and while workers are killed and
// the gateway reads its configuration again. No client may miss a change, get one
// twice, or see a job of the other user. In the end each follower must have the
// list.
func TestModel(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t, func(l *harness.Lab) { l.PrivateData = "jobs" },
		harness.WithOptions(nil, "SCHEDRESTD_WATCH_INTERVAL=100ms"))
	names := [2]string{"root", harness.OrdinaryUser(t).Name}
	tokens := [2]string{l.UserToken(""), l.UserToken(names[1])}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients, changers sync.WaitGroup

	const fields = "fields=job_id,job_state,name,comment"
	var followers []*harness.Follower
	for _, token := range tokens {
		for _, query := range []string{fields, fields + "&state=PENDING", fields + "&users=" + names[1], fields + "&job_name=odd"} {
			f := &harness.Follower{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
				URL: l.URL + "/sched/" + harness.Version + "/jobs?" + query, Token: token, List: "jobs", Key: "job_id"}
			followers = append(followers, f)
			clients.Go(func() { f.Run(ctx) })
		}
	}
	var waits, wakes atomic.Int32
	for range 6 {
		clients.Go(func() { waitAgain(ctx, l, tokens[1], &waits, &wakes) })
	}

	var mu sync.Mutex
	var jobs []string
	for n := range 2 {
		changers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			for i := range 60 {
				user := names[random.IntN(2)]
				header := "X-SCHED-USER-NAME: " + user
				name := "even"
				if i%2 == 1 {
					name = "odd"
				}
				mu.Lock()
				some := append([]string(nil), jobs...)
				mu.Unlock()
				method, path, body := "POST", "job/submit", l.JobRequest("sleep 600", map[string]any{"name": name, "hold": true})
				if kind := random.IntN(4); kind >= 2 && len(some) > 0 {
					header, path, body = "X-Unused: 1", "job/"+some[random.IntN(len(some))], fmt.Sprintf(`{"comment":"%d"}`, random.IntN(3))
					if kind == 3 {
						method, body = "DELETE", ""
					}
				}
				// If the worker has been killed, the outcome is unknown.
				a, err := l.TryRequest(http.DefaultClient, method, "/sched/"+harness.Version+"/"+path, body, header)
				if id, ok := a.Get("job_id").(float64); err == nil && ok {
					mu.Lock()
					jobs = append(jobs, fmt.Sprint(id))
					mu.Unlock()
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
			}
		})
	}
	changers.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for n := range 6 {
			time.Sleep(400 * time.Millisecond)
			switch n % 3 {
			case 0:
				if workers := l.Workers(); len(workers) > 0 {
					_ = syscall.Kill(workers[random.IntN(len(workers))], syscall.SIGKILL)
				}
			case 1:
				harness.Must(t, syscall.Kill(l.Daemons["schedrestd"].PID(), syscall.SIGHUP))
			default:
				for _, f := range followers[:len(followers)/2] {
					f.Leave()
				}
			}
		}
	})
	changers.Wait()

	allHaveTheList := func() {
		t.Helper()
		for n, f := range followers {
			difference := ""
			harness.Eventually(t, fmt.Sprintf("follower %d has the list", n), func() bool { difference = f.Missing(); return difference == "" })
		}
	}
	allHaveTheList()
	// Whether a stream has gone on up to here depends on the machine: one that
	// comes back to another worker, or finds new settings, begins again.
	harness.Eventually(t, "a stream went on, and a wait has ended with a change", func() bool {
		for _, f := range followers {
			f.Leave()
		}
		l.Submit("sleep 600", map[string]any{"hold": true})
		allHaveTheList()
		return wakes.Load() > 0 && slices.ContainsFunc(followers, func(f *harness.Follower) bool { return f.Seen().Resumed > 0 })
	})
	cancel()
	clients.Wait()
	resumed, resets := 0, 0
	ends := map[string]int{}
	for n, f := range followers {
		seen := f.Seen()
		for _, text := range seen.Faults {
			t.Errorf("follower %d (%s): %s", n, f.URL, text)
		}
		resumed, resets = resumed+seen.Resumed, resets+seen.Resets
		for reason, count := range seen.Ends {
			ends[reason] += count
		}
	}
	t.Logf("%d streams went on, %d began again, ends %v; %d waits, %d with a change", resumed, resets, ends, waits.Load(), wakes.Load())
}

// waitAgain waits for changes of a list again and again, and checks that the tag
// of each answer differs from the one before.
func waitAgain(ctx context.Context, l *harness.Lab, token string, waits, wakes *atomic.Int32) {
	tag := ""
	for ctx.Err() == nil {
		a, err := l.TryRequest(harness.NewClient(harness.DialFunc("tcp", strings.TrimPrefix(l.URL, "http://"))), "GET",
			"/sched/"+harness.Version+"/jobs?fields=job_state,comment&wait=2s", "", "X-SCHED-USER-TOKEN: "+token, "If-None-Match: "+tag)
		if err != nil || a.Status >= 500 { // the worker was killed
			time.Sleep(20 * time.Millisecond)
			continue
		}
		waits.Add(1)
		switch now := a.Header.Get("ETag"); {
		case a.Status == 200 && now == tag:
			l.T.Errorf("a wait has ended with the tag %s that the client had", tag)
		case a.Status == 200:
			wakes.Add(1)
			tag = now
		case a.Status != 304:
			l.T.Errorf("status %d: %s", a.Status, a.Text)
		}
	}
}

// TestJobWaits checks the waits for one job with the real daemons: a submission
// that waits, a wait for the end of a job whose record only accounting has, and a
// client that leaves.
func TestJobWaits(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_WATCH_INTERVAL=100ms"))
	a := l.Request("POST", "/sched/"+harness.Version+"/job/submit?wait=60s", l.JobRequest("sleep 1; exit 3", nil)).Want(t, 200)
	if got := fmt.Sprint(a.Get("jobs", 0, "job_state"), a.Get("jobs", 0, "exit_code", "return_code", "number")); got != "[FAILED] 3" {
		t.Errorf("after the submission the job is %s: %s", got, a.Text)
	}
	id := l.Submit("sleep 1", nil)
	a = l.Request("GET", fmt.Sprintf("/sched/%s/job/%d?wait=60s&until=running", harness.Version, id), "").Want(t, 200)
	if got := a.State(); got != "RUNNING" && got != "COMPLETED" {
		t.Errorf("running: %s", got)
	}
	a = l.Request("GET", fmt.Sprintf("/sched/%s/job/%d?wait=60s&until=ended", harness.Version, id), "").Want(t, 200)
	if got := a.State(); got != "COMPLETED" {
		t.Errorf("ended: %s", got)
	}
	tag := a.Header.Get("ETag")
	if a := l.Request("GET", fmt.Sprintf("/sched/%s/job/%d?wait=60s&until=ended", harness.Version, id), "", "If-None-Match: "+tag); a.Status != 304 {
		t.Errorf("with the tag: %d: %s", a.Status, a.Text)
	}
	if os.Geteuid() == 0 {
		other := l.UserToken(harness.OrdinaryUser(t).Name)
		l.Request("GET", "/sched/"+harness.Version+"/jobs?wait=100ms", "", "X-SCHED-USER-TOKEN: "+other, "If-None-Match: "+tag).Want(t, 200)
	}
}
