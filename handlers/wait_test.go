package handlers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	data "schedrestd/internal/origin"
	"schedrestd/model"
)

// living is a controller whose objects change while requests wait. It compares
// times as slurmctld does. It is safe for concurrent use.
type living struct {
	*fake
	mu      sync.Mutex
	refused bool
	down    bool
	forgets bool // submitted jobs
	reads   int  // lists and jobs that were read
}

func (l *living) change(f func(*fake)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fake.lastUpdate++
	f(l.fake)
}

func (l *living) Verify(context.Context, model.Credential) error   { return nil }
func (l *living) Release(context.Context, model.Credential) string { return "24.11.5" }

// copyOf returns a copy of the fake, whose lists a call can read without a lock.
func (l *living) copyOf(q model.Query) (*fake, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	switch {
	case l.refused:
		return nil, errs.New(errs.Unauthenticated, "the token was revoked")
	case l.down:
		return nil, errs.New(errs.Unavailable, "the controller does not answer")
	case q.Since != 0 && l.lastUpdate < q.Since:
		return nil, errs.New(errs.Unchanged, "no change")
	}
	return &fake{lastUpdate: l.fake.lastUpdate, jobs: append([]model.Job(nil), l.fake.jobs...), nodes: append([]model.Node(nil), l.fake.nodes...),
		partitions: append([]model.Partition(nil), l.fake.partitions...), reservations: append([]model.Reservation(nil), l.fake.reservations...),
		licenses: append([]model.License(nil), l.fake.licenses...)}, nil
}

// digested returns a function that sets the digest of each record, and adds the
// digest of the list to the origin.
func digested[T any](ctx context.Context, q model.Query, list []T, each func(*T) error) func(*T) error {
	data.From(ctx).Add(0, func() ([sha256.Size]byte, bool) { return sha256.Sum256(fmt.Appendf(nil, "%+v", list)), true })
	return func(one *T) error {
		if q.Digest != nil {
			h := fnv.New64()
			fmt.Fprintf(h, "%+v", *one)
			*q.Digest = h.Sum64()
		}
		return each(one)
	}
}

func (l *living) Reservation(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return nil, 0, err
	}
	return f.Reservation(ctx, cred, name, q)
}

func (l *living) Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return model.ListTimes{}, err
	}
	return f.Jobs(ctx, cred, q, digested(ctx, q, f.jobs, each))
}

func (l *living) Job(ctx context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return model.ListTimes{}, err
	}
	return f.Job(ctx, cred, id, q, digested(ctx, q, f.jobs, each))
}

func (l *living) Nodes(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return 0, err
	}
	return f.Nodes(ctx, cred, q, digested(ctx, q, f.nodes, each))
}

func (l *living) Node(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return nil, 0, err
	}
	node, last, err := f.Node(ctx, cred, name, q)
	if err == nil {
		err = digested(ctx, q, []model.Node{*node}, func(*model.Node) error { return nil })(node)
	}
	return node, last, err
}

func (l *living) Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return 0, err
	}
	return f.Partitions(ctx, cred, q, digested(ctx, q, f.partitions, each))
}

func (l *living) Partition(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return nil, 0, err
	}
	return f.Partition(ctx, cred, name, q)
}

func (l *living) Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return 0, err
	}
	return f.Reservations(ctx, cred, q, digested(ctx, q, f.reservations, each))
}

func (l *living) Licenses(ctx context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (model.Time, error) {
	f, err := l.copyOf(q)
	if err != nil {
		return 0, err
	}
	return f.Licenses(ctx, cred, q, each)
}

func (l *living) Priorities(context.Context, model.Credential, func(*model.JobPriority) error) error {
	return errs.New(errs.Unsupported, "no factors")
}

// newLiving returns a server with a job that runs, one that waits, and one of an
// array.
func newLiving(t *testing.T, options ...func(*Config)) (*living, *rest.Server, string) {
	t.Helper()
	f := demo()
	f.jobs = []model.Job{
		{StepID: model.StepID{JobID: 7}, Name: "seven", State: model.JobRunning, Partition: "debug", UserID: 20001},
		{StepID: model.StepID{JobID: 8}, Name: "eight", State: model.JobPending, Partition: "long", UserID: 20002},
		{StepID: model.StepID{JobID: 9}, ArrayJobID: 9, ArrayTaskID: model.Some[uint32](1), Name: "nine", State: model.JobRunning, Partition: "long"},
		{StepID: model.StepID{JobID: 10}, ArrayJobID: 9, ArrayTaskID: model.Some[uint32](2), Name: "nine", State: model.JobFailed, Partition: "long"},
	}
	f.recorded.jobs = []model.AccountingJob{ // the controller no longer has one of them
		{JobID: 9, ArrayJobID: 9, ArrayTaskID: model.Some[uint32](1), Cluster: "demo", State: model.JobRunning},
		{JobID: 10, ArrayJobID: 9, ArrayTaskID: model.Some[uint32](2), Cluster: "demo", State: model.JobFailed},
		{JobID: 11, ArrayJobID: 9, ArrayTaskID: model.Some[uint32](3), Cluster: "demo", State: model.JobTimeout},
	}
	l := &living{fake: f}
	cfg := config(f)
	cfg.Controller = l
	cfg.MaxWait, cfg.WatchInterval = time.Minute, 5*time.Millisecond
	for _, set := range options {
		set(&cfg)
	}
	h := New(cfg)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return l, h, server.URL
}

// get sends a request and returns its answer and body.
func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-SCHED-USER-TOKEN", token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// TestWait checks requests that wait: what they answer, and that they answer only
// when something has changed that they show. "TAG" stands for the tag of the
// current answer, and "NOW" for the controller's time.
func TestWait(t *testing.T) {
	t.Parallel()
	end := func(i int) func(*fake) { return func(f *fake) { f.jobs[i].State = model.JobComplete } }
	for _, tt := range []struct {
		name, path string
		header     []string
		unrelated  func(*fake) // a change that must not be answered
		change     func(*fake) // a change that must be; nil if the request does not wait
		status     int
		contains   string
	}{
		{"list", "jobs?wait=60s", []string{"If-None-Match", "TAG"}, nil, end(0), 200, `"COMPLETED"`},
		{"filter", "jobs?wait=60s&partition=debug", []string{"If-None-Match", "TAG"}, end(2), end(0), 200, `"COMPLETED"`},
		{"fields", "jobs?wait=60&fields=job_id,job_state", []string{"If-None-Match", "TAG"}, func(f *fake) { f.jobs[0].Name = "x" }, end(0), 200, `"COMPLETED"`},
		{"page", "jobs?wait=60s&limit=1&fields=job_state", []string{"If-None-Match", "TAG"}, nil, end(0), 200, `"COMPLETED"`},
		{"update time", "jobs?wait=60s&update_time=NOW", nil, nil, end(0), 200, `"COMPLETED"`},
		{"preference", "jobs?partition=debug", []string{"If-None-Match", "TAG", "Prefer", "respond-async, wait=60"}, end(1), end(0), 200, `"COMPLETED"`},
		{"job", "job/7?wait=60s", []string{"If-None-Match", "TAG"}, end(1), end(0), 200, `"COMPLETED"`},
		{"explanations", "jobs?wait=60s&explain=true&partition=long&fields=job_id,explanation", []string{"If-None-Match", "TAG"}, end(0),
			func(f *fake) { f.jobs[1].StateReason, f.jobs[1].Priority = 3, 5 }, 200, "no other job that you can see waits in the partition \\\"long\\\""},
		{"explanation", "job/8?wait=60s&explain=true&fields=explanation", []string{"If-None-Match", "TAG"}, func(f *fake) { f.jobs[1].Name = "x" },
			func(f *fake) { f.jobs[1].StateReason, f.jobs[1].Priority = 3, 5 }, 200, "no other job that you can see waits in the partition \\\"long\\\""},
		{"nodes", "nodes?wait=60s", []string{"If-None-Match", "TAG"}, nil, func(f *fake) { f.nodes[1].State = model.NodeDown }, 200, `"DOWN"`},
		{"partition of a node", "nodes?wait=60s&fields=partitions", []string{"If-None-Match", "TAG"}, func(f *fake) { f.nodes[1].State = model.NodeDown },
			func(f *fake) { f.partitions[0].Nodes = "n1" }, 200, `"partitions"`},
		{"node", "node/n2?wait=60s", []string{"If-None-Match", "TAG"}, func(f *fake) { f.nodes[0].State = model.NodeDown }, func(f *fake) { f.nodes[1].State = model.NodeDown }, 200, `"DOWN"`},
		{"partitions", "partitions?wait=60s", []string{"If-None-Match", "TAG"}, end(0), func(f *fake) { f.partitions[0].TotalCPUs = 77 }, 200, "77"},
		{"partition", "partition/long?wait=60s", []string{"If-None-Match", "TAG"}, func(f *fake) { f.partitions[0].TotalCPUs = 77 }, func(f *fake) { f.partitions[1].TotalCPUs = 78 }, 200, "78"},
		{"reservations", "reservations?wait=60s", []string{"If-None-Match", "TAG"}, end(0), func(f *fake) { f.reservations[0].Cores = 99 }, 200, "99"},
		{"reservation", "reservation/maint?wait=60s", []string{"If-None-Match", "TAG"}, func(f *fake) { f.reservations[1].Cores = 99 }, func(f *fake) { f.reservations[0].Cores = 98 }, 200, "98"},
		{"without a feed", "licenses?wait=60s", []string{"If-None-Match", "TAG"}, end(0), func(f *fake) { f.licenses[0].InUse = 9 }, 200, "matlab"},
		{"it disappears", "job/7?wait=60s", []string{"If-None-Match", "TAG"}, nil, func(f *fake) { f.jobs = f.jobs[1:] }, 404, "there is no"},
		{"YAML", "jobs?wait=60s&fields=job_state", []string{"If-None-Match", "TAG", "Accept", "application/yaml"}, func(f *fake) { f.jobs[0].Name = "x" }, end(0), 200, "COMPLETED"},

		{"without a condition", "jobs?wait=60s", nil, nil, nil, 200, `"RUNNING"`},
		{"another tag", "jobs?wait=60s", []string{"If-None-Match", `W/"x"`}, nil, nil, 200, `"RUNNING"`},
		{"a time in the future", "jobs?wait=60s&update_time=4000000000", nil, nil, nil, 200, "the time is in the future"},
		{"no time", "jobs?wait=0", []string{"If-None-Match", "TAG"}, nil, nil, 304, ""},
		{"the time is over", "jobs?wait=100ms", []string{"If-None-Match", "TAG"}, nil, nil, 304, ""},
		{"wrong time", "jobs?wait=soon", nil, nil, nil, 422, "expected a time such as \\\"30s\\\", got \\\"soon\\\""},
		{"negative time", "jobs?wait=-1s", nil, nil, nil, 422, "expected a time"},
		{"accounting", "/scheddb/v0.0.43/tres?wait=1s", nil, nil, nil, 200, "unknown parameter"},

		{"end", "job/7?wait=60s&until=ended", nil, func(f *fake) { f.jobs[0].State = model.JobComplete | model.JobCompleting }, end(0), 200, `"COMPLETED"`},
		{"end of all tasks", "job/9?wait=60s&until=ended", nil, end(0), end(2), 200, `"COMPLETED"`},
		{"end of all tasks, one of them forgotten", "job/9?wait=60s&until=ended", nil, nil, end(2), 200, "the controller no longer has 1 of the tasks"},
		{"its record", "job/9?wait=60s&until=ended&fields=job_state", nil, nil, end(2), 200, `"jobs":[{"job_state":["COMPLETED"]},{"job_state":["FAILED"]},{"job_state":["TIMEOUT"]}]`},
		{"end of one task", "job/9_2?wait=60s&until=ended", nil, nil, nil, 200, `"FAILED"`},
		{"requeued, not ended", "job/7?wait=60s&until=ended", nil, func(f *fake) { f.jobs[0].State = model.JobFailed | model.JobRequeued }, end(0), 200, `"COMPLETED"`},
		{"running", "job/8?wait=60s&until=running", nil, end(0), func(f *fake) { f.jobs[1].State = model.JobRunning }, 200, `"RUNNING"`},
		{"runs already", "job/7?wait=60s&until=running", nil, nil, nil, 200, `"RUNNING"`},
		{"not ended in time", "job/7?wait=50ms&until=ended", nil, nil, nil, 200, `"RUNNING"`},
		{"not ended in time, and known", "job/7?wait=50ms&until=ended", []string{"If-None-Match", "TAG"}, nil, nil, 304, ""},
		{"ended, and known", "job/10?wait=60s&until=ended", []string{"If-None-Match", "TAG"}, nil, nil, 304, ""},
		{"until without wait", "job/7?until=ended", nil, nil, nil, 422, "together with wait"},
		{"until something else", "job/7?wait=1s&until=done", nil, nil, nil, 422, `expected \"ended\" or \"running\", got \"done\"`},
		{"no such job", "job/77?wait=60s&until=ended", nil, nil, nil, 404, "there is no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, option := counted()
			l, _, url := newLiving(t, option)
			path := url + "/sched/v0.0.43/" + strings.ReplaceAll(tt.path, "NOW", fmt.Sprint(l.lastUpdate+1))
			if strings.HasPrefix(tt.path, "/") {
				path = url + tt.path
			}
			header := append([]string(nil), tt.header...)
			for i := range header {
				if header[i] == "TAG" {
					plain, _, _ := strings.Cut(path, "?")
					_, query, _ := strings.Cut(path, "?")
					var kept []string
					for one := range strings.SplitSeq(query, "&") {
						if !strings.HasPrefix(one, "wait=") && !strings.HasPrefix(one, "until=") {
							kept = append(kept, one)
						}
					}
					var more []string
					if i := strings.Index(strings.Join(header, "|"), "Accept|"); i >= 0 {
						more = []string{"Accept", "application/yaml"}
					}
					current, _ := get(t, plain+"?"+strings.Join(kept, "&"), more...)
					header[i] = current.Header.Get("ETag")
				}
			}
			var answered sync.WaitGroup
			var answer *http.Response
			var body string
			done := make(chan struct{})
			answered.Go(func() {
				defer close(done)
				answer, body = get(t, path, header...)
			})
			if tt.change != nil {
				n.awaitWait(t)
				if tt.unrelated != nil {
					l.change(tt.unrelated)
				}
				select {
				case <-done:
					t.Fatalf("answered before the change: %d %s", answer.StatusCode, body)
				case <-time.After(50 * time.Millisecond):
				}
				l.change(tt.change)
				n.await(t, feed.WaitChanged, 1) // at the end of its time, it would show the change as well
			}
			answered.Wait()
			if answer.StatusCode != tt.status || !strings.Contains(body, tt.contains) {
				t.Errorf("status %d, want %d with %q: %s", answer.StatusCode, tt.status, tt.contains, body)
			}
			if want := "wait=60"; tt.name == "preference" && answer.Header.Get("Preference-Applied") != want {
				t.Errorf("Preference-Applied %q, want %q", answer.Header.Get("Preference-Applied"), want)
			}
			if tags := answer.Header["Etag"]; len(tags) > 1 || len(answer.Header["Link"]) > 1 {
				t.Errorf("header repeated: %v", answer.Header)
			}
		})
	}
}

// TestStopWaiting checks that a request that waits answers, and a stream ends
// with a reason, when the server stops.
func TestStopWaiting(t *testing.T) {
	t.Parallel()
	n, option := counted()
	_, h, url := newLiving(t, option)
	tag, _ := get(t, url+"/sched/v0.0.43/jobs")
	var waits sync.WaitGroup
	waits.Go(func() {
		answer, body := get(t, url+"/sched/v0.0.43/jobs?wait=60s", "If-None-Match", tag.Header.Get("ETag"))
		if answer.StatusCode != http.StatusNotModified {
			t.Errorf("status %d: %s", answer.StatusCode, body)
		}
	})
	waits.Go(func() {
		_, body := get(t, url+"/sched/v0.0.43/jobs?fields=job_id", "Accept", rest.MediaEvents)
		if want := "event: end\ndata: {\"reason\":\"the gateway stops\"}\n\n"; !strings.HasSuffix(body, want) {
			t.Errorf("the stream is %q, want the end %q", body, want)
		}
	})
	n.await(t, feed.Waits, 1)
	n.await(t, feed.Streams, 1)
	h.StopWaiting("the gateway stops")
	waits.Wait()
}

// events reads the events of a stream, without comments. Each is "name id data".
func events(t *testing.T, url string, header ...string) (next func() string, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-SCHED-USER-TOKEN", token)
	r.Header.Set("Accept", rest.MediaEvents)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); answer.Body.Close() })
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != 200 || got != rest.MediaEvents {
		t.Fatalf("status %d, type %s", answer.StatusCode, got)
	}
	lines := bufio.NewScanner(answer.Body)
	return func() string {
		fields := map[string]string{}
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			if lines.Text() == "" && fields["data"] != "" {
				return strings.TrimSpace(fields["event"] + " " + fields["data"] + " " + fields["id"])
			}
			if name != "" {
				fields[name] = value
			}
		}
		return "END"
	}, cancel
}

// cutID returns an event without its id, and the id.
func cutID(event string) (rest, id string) {
	if i := strings.LastIndexByte(event, ' '); i > strings.LastIndexByte(event, '}') {
		return event[:i], event[i+1:]
	}
	return event, ""
}

// TestEvents checks the events of a stream, and how a client goes on after it has
// lost its connection.
func TestEvents(t *testing.T) {
	t.Parallel()
	l, _, url := newLiving(t)
	path := url + "/sched/v0.0.43/jobs?partition=long&fields=job_id,job_state"
	next, leave := events(t, path)
	want := func(next func() string, text string) (id string) {
		t.Helper()
		got, id := cutID(next())
		if got != text {
			t.Errorf("event %q, want %q", got, text)
		}
		return id
	}
	first := want(next, `snapshot {"jobs":[{"job_id":8,"job_state":["PENDING"]},{"job_id":9,"job_state":["RUNNING"]},{"job_id":10,"job_state":["FAILED"]}],"more":false}`)
	l.change(func(f *fake) { f.jobs[1].State = model.JobRunning })
	second := want(next, `changed {"job_id":8,"job_state":["RUNNING"]}`)
	l.change(func(f *fake) { f.jobs[1].Name = "not shown"; f.jobs[0].Partition = "long" })
	third := want(next, `added {"job_id":7,"job_state":["RUNNING"]}`)
	l.change(func(f *fake) { f.jobs[0].Partition = "debug" })
	if got := want(next, `removed {"job_id":7}`); got != second {
		t.Errorf("the same state has the ids %q and %q", second, got)
	}
	leave()

	l.change(func(f *fake) { f.jobs[1].State = model.JobComplete })
	next, leave = events(t, path, "Last-Event-ID", third)
	want(next, `removed {"job_id":7}`)
	current := want(next, `changed {"job_id":8,"job_state":["COMPLETED"]}`)
	leave()

	_, _, elsewhere := newLiving(t) // another worker, whose list has the first state
	next, leave = events(t, strings.Replace(path, url, elsewhere, 1), "Last-Event-ID", current)
	want(next, `reset {}`)
	if got := want(next, `snapshot {"jobs":[{"job_id":8,"job_state":["PENDING"]},{"job_id":9,"job_state":["RUNNING"]},{"job_id":10,"job_state":["FAILED"]}],"more":false}`); got != first {
		t.Errorf("the state has the id %q, and %q at another worker", first, got)
	}
	leave()
	other, _, elsewhere := newLiving(t)
	next, _ = events(t, strings.Replace(path, url, elsewhere, 1), "Last-Event-ID", first)
	other.change(func(f *fake) { f.jobs[1].State = model.JobRunning })
	want(next, `changed {"job_id":8,"job_state":["RUNNING"]}`) // no snapshot: nothing was missed
}

// TestEventsEnd checks that a stream ends with a reason when its credential is
// refused, and that no list without a collection has streams.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	l, _, url := newLiving(t)
	next, _ := events(t, url+"/sched/v0.0.43/partitions?fields=name")
	if got, _ := cutID(next()); got != `snapshot {"partitions":[{"name":"debug"},{"name":"long"}],"more":false}` {
		t.Errorf("event %q", got)
	}
	l.mu.Lock()
	l.refused = true
	l.mu.Unlock()
	if got := next(); !strings.HasPrefix(got, `end {"reason":"`) {
		t.Errorf("event %q, want the end", got)
	}
	if answer, body := get(t, url+"/sched/v0.0.43/licenses", "Accept", rest.MediaEvents); answer.StatusCode != http.StatusNotAcceptable {
		t.Errorf("status %d: %s", answer.StatusCode, body)
	}
}

// TestManyWait checks that clients that wait for the same list cost the
// controller as much as one.
func TestManyWait(t *testing.T) {
	t.Parallel()
	n, option := counted()
	l, _, url := newLiving(t, option)
	tag, _ := get(t, url+"/sched/v0.0.43/jobs")
	var clients sync.WaitGroup
	for range 50 {
		clients.Go(func() {
			if answer, body := get(t, url+"/sched/v0.0.43/jobs?wait=60s", "If-None-Match", tag.Header.Get("ETag")); answer.StatusCode != 200 {
				t.Errorf("status %d: %s", answer.StatusCode, body)
			}
		})
	}
	// Each client may cost a request when it comes. Then only the looks for changes remain.
	n.await(t, feed.Waits, 50)
	reads := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.reads
	}
	looks, before := n.of(feed.ReadUnchanged), reads()
	for n.of(feed.ReadUnchanged) < looks+100 {
		time.Sleep(time.Millisecond)
	}
	got := reads() - before
	if most := n.of(feed.ReadUnchanged) - looks + 1 + 50; got > most { // one of them may not be finished
		t.Errorf("%d reads while 50 clients waited, want at most %d", got, most)
	}
	// A client that comes while others wait gets what it does not have, and waits otherwise.
	if answer, body := get(t, url+"/sched/v0.0.43/jobs?wait=60s", "If-None-Match", `W/"old"`); answer.StatusCode != 200 {
		t.Errorf("status %d: %s", answer.StatusCode, body)
	}
	if answer, body := get(t, url+"/sched/v0.0.43/jobs?wait=100ms", "If-None-Match", tag.Header.Get("ETag")); answer.StatusCode != 304 {
		t.Errorf("status %d: %s", answer.StatusCode, body)
	}
	l.change(func(f *fake) { f.jobs[0].State = model.JobComplete })
	clients.Wait()
}

// Submit adds a running job.
func (l *living) Submit(context.Context, model.Credential, *model.JobDesc) (*model.Submitted, error) {
	l.change(func(f *fake) {
		if l.forgets {
			return
		}
		f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: 99}, Name: "new", State: model.JobRunning})
	})
	return &model.Submitted{StepID: model.StepID{JobID: 99}}, nil
}

// TestSubmitAndWait checks that a submission that waits sends the job's path
// before the job has ended, and the job afterwards.
func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, query string
		ends        bool
		forgotten   bool // by the controller at once; accounting has not heard of its end yet
		contains    string
	}{
		{"ended", "?wait=60s", true, false, `"jobs":[{`},
		{"running", "?wait=60s&until=running", false, false, `"RUNNING"`},
		{"the time is over", "?wait=100ms", false, false, `"RUNNING"`},
		{"forgotten", "?wait=100ms", false, true, `"warnings":[{"description":"the controller no longer has this job; the answer is from accounting, which lacks some fields","source":"path/job_id"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, _, url := newLiving(t)
			l.forgets = tt.forgotten
			l.recorded.jobs = []model.AccountingJob{{JobID: 99, Cluster: "demo", State: model.JobRunning}}
			r, err := http.NewRequest(http.MethodPost, url+"/slurm/v0.0.43/job/submit"+tt.query,
				strings.NewReader(`{"job":{"script":"#!/bin/sh","current_working_directory":"/","environment":["A=b"]}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-SLURM-USER-TOKEN", token)
			r.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if got, want := answer.Header.Get("Location"), "/slurm/v0.0.43/job/99"; got != want || answer.StatusCode != 200 {
				t.Errorf("status %d, Location %q, want %q", answer.StatusCode, got, want)
			}
			if tt.ends { // the header has arrived before
				l.change(func(f *fake) { f.jobs[len(f.jobs)-1].State = model.JobComplete })
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || !strings.Contains(string(body), tt.contains) || !strings.Contains(string(body), `"job_id":99`) ||
				strings.Contains(string(body), "COMPLETED") != tt.ends {
				t.Errorf("body %s, error %v, want %q", body, err, tt.contains)
			}
		})
	}
}
