package cli

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/auth"
	"schedrestd/handlers"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A site is a controller with a gateway: the real handlers of the REST API. The
// support field says how the gateway treats parameters with which a client asks
// for a part of a list.
type site struct {
	handlers.Controller // nil: the methods below are all that the tests need
	support             support

	mu         sync.Mutex // guards the fields below
	jobs       []model.Job
	nodes      []model.Node
	partitions []model.Partition
	requests   []request
	each       func(request int) // called with the number of each request for a list, from 1; nil for none
	read       func(n int)       // called with the number of each list of jobs, or job, that the controller sends; nil for none
	reads      int
	queries    []model.Query // of lists of jobs
	killed     []string
	count      int // of requests for lists

	waiting atomic.Int32 // requests that wait for a change
}

type support int

const (
	supports support = iota // as this project's gateway does
	ignores                 // as slurmrestd does
	refuses
	waits // as supports, and requests can wait for changes
)

func (s support) String() string { return [...]string{"supports", "ignores", "refuses", "waits"}[s] }

// A request is a request for a list or a job, with its answer.
type request struct {
	list   string // "jobs", or "job" for one job
	query  url.Values
	tag    string // If-None-Match
	cache  string // Cache-Control
	prefer string
	events bool // the answer is a stream of events
	status int
	body   []byte
}

var uids = map[string]uint32{"ann": 1001, "bob": 1002, "carol": 1003}

type names struct{}

func (names) Group(gid uint32) string { return fmt.Sprint(gid) }

func (names) User(uid uint32) string {
	for name, id := range uids {
		if id == uid {
			return name
		}
	}
	return fmt.Sprint(uid)
}

func (names) UserID(_ context.Context, name string) (uint32, error) {
	if uid, ok := uids[name]; ok {
		return uid, nil
	}
	return 0, errs.New(errs.NotFound, "no user %s", name)
}

func (n names) GroupID(ctx context.Context, name string) (uint32, error) { return n.UserID(ctx, name) }

func (s *site) Verify(context.Context, model.Credential) error               { return nil }
func (s *site) Release(context.Context, model.Credential) string             { return "26.05.0" }
func (s *site) Ping(context.Context, model.Credential) ([]model.Ping, error) { return nil, nil }

// Jobs passes on the jobs or, like a controller, those of one user.
func (s *site) Jobs(_ context.Context, _ model.Credential, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, q)
	s.begin()
	for i := range s.jobs {
		if q.User.Set && s.jobs[i].UserID != q.User.Number {
			continue
		}
		digest(q, s.jobs[i])
		if err := each(&s.jobs[i]); err != nil {
			return model.ListTimes{}, err
		}
	}
	return model.ListTimes{LastUpdate: 5}, nil
}

// Job passes on a job or, like a controller, all tasks of its array.
func (s *site) Job(_ context.Context, _ model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	found := false
	for i := range s.jobs {
		if j := &s.jobs[i]; j.StepID.JobID == id || j.ArrayJobID == id {
			found = true
			digest(q, *j)
			if err := each(j); err != nil {
				return model.ListTimes{}, err
			}
		}
	}
	if !found {
		return model.ListTimes{}, errs.New(errs.NotFound, "no job %d", id).WithNumber(2017)
	}
	return model.ListTimes{LastUpdate: 5}, nil
}

// begin begins a list of jobs.
func (s *site) begin() {
	s.reads++
	if s.read != nil {
		s.read(s.reads)
	}
}

var seed = maphash.MakeSeed()

// digest sets the digest of a record that is passed on.
func digest(q model.Query, record any) {
	if q.Digest != nil {
		*q.Digest = maphash.String(seed, fmt.Sprintf("%+v", record))
	}
}

func (s *site) Nodes(_ context.Context, _ model.Credential, q model.Query, each func(*model.Node) error) (model.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 5, eachOf(s.nodes, func(n *model.Node) error {
		digest(q, *n)
		return each(n)
	})
}

func (s *site) Node(_ context.Context, _ model.Credential, name string, _ model.Query) (*model.Node, model.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.nodes, func(n model.Node) bool { return n.Name == name })
	if i < 0 {
		return nil, 0, errs.New(errs.NotFound, "no node %s", name).WithNumber(2018)
	}
	n := s.nodes[i]
	return &n, 5, nil
}

func (s *site) Partitions(_ context.Context, _ model.Credential, _ model.Query, each func(*model.Partition) error) (model.Time, error) {
	return 5, eachOf(s.partitions, each)
}

func (s *site) Kill(_ context.Context, _ model.Credential, id string, _ uint16, _ model.Kill) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = append(s.killed, id)
	return nil
}

func eachOf[T any](list []T, each func(*T) error) error {
	for i := range list {
		if err := each(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// A waitCounter is a worker that counts the requests that wait for a change.
type waitCounter struct {
	rest.NoWorker
	waiting *atomic.Int32
}

func (w waitCounter) CountWatch(what feed.Count, n int) {
	if what == feed.Waits {
		w.waiting.Add(int32(n))
	}
}

// handler returns the gateway.
func (s *site) handler() http.Handler {
	cfg := rest.Config{Auth: auth.Options{JWT: true}, Names: api.NamesBoth, Users: names{}, Release: "1"}
	if s.support == waits {
		cfg.MaxWait, cfg.WatchInterval = time.Minute, 10*time.Millisecond
		cfg.Worker = waitCounter{waiting: &s.waiting}
	}
	h := handlers.New(handlers.Config{Controller: s, Resolver: names{}, Config: cfg})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		list := parts[len(parts)-1]
		if parts[len(parts)-2] == "job" && r.Method == http.MethodGet {
			list = "job"
		} else if !slices.Contains([]string{"jobs", "nodes", "partitions"}, list) {
			h.ServeHTTP(w, r)
			return
		}
		s.mu.Lock()
		s.count++
		if s.each != nil {
			s.each(s.count)
		}
		s.mu.Unlock()
		done := request{list, r.URL.Query(), r.Header.Get("If-None-Match"), r.Header.Get("Cache-Control"), r.Header.Get("Prefer"), false, 0, nil}
		known := url.Values{}
		if value := r.URL.Query().Get("update_time"); value != "" {
			known.Set("update_time", value)
		}
		if s.support == waits && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			done.events, done.status = true, http.StatusOK
			s.mu.Lock()
			s.requests = append(s.requests, done)
			s.mu.Unlock()
			h.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		switch {
		case s.support == refuses && len(done.query) > len(known):
			reply(answer, http.StatusUnprocessableEntity, `{"errors": [{"description": "unknown parameter", "error_number": 9202}]}`)
		case s.support == supports || s.support == waits:
			h.ServeHTTP(answer, r)
		default:
			r.URL.RawQuery = known.Encode()
			r.RequestURI = r.URL.RequestURI()
			r.Header.Del("If-None-Match")
			r.Header.Del("Prefer")
			h.ServeHTTP(answer, r)
		}
		done.status, done.body = answer.Code, answer.Body.Bytes()
		if answer.Header().Get("Content-Encoding") != "" {
			done.body = nil
		}
		s.mu.Lock()
		s.requests = append(s.requests, done)
		s.mu.Unlock()
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		bytes.NewReader(answer.Body.Bytes()).WriteTo(w)
	})
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// run runs a command as the user ann against the site.
func (s *site) run(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	s.mu.Lock()
	s.requests, s.queries, s.killed = nil, nil, nil
	s.mu.Unlock()
	return runAgainst(t, s.handler(), args...)
}

// asked returns the queries of the requests for a list, sorted and readable.
func (s *site) asked(list string) (queries []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.list == list {
			text, _ := url.QueryUnescape(r.query.Encode())
			queries = append(queries, text)
		}
	}
	return queries
}
