package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/integration/harness"
)

// The clients of TestMonth together send about as many requests, however many they are.
const (
	monthPolls       = 50 // a second
	monthSubmissions = 2  // a second
)

// monthClient is a client of TestMonth. Its requests have the user's token.
type monthClient struct {
	*month
	user   *monthUser
	proxy  string
	number int
	kind   string
}

// monthFollower is a stream of events, whose client comes back when it ends.
type monthFollower struct {
	*harness.Follower
	user *monthUser
}

// RoundTrip sends a request with the user's token, counts the answer, and pauses after a
// failure for as long as the answer says.
func (c *monthClient) RoundTrip(r *http.Request) (*http.Response, error) {
	token, changing := c.user.token.Load(), c.changingKey.Load()
	r = r.Clone(r.Context())
	r.Header.Del("X-SCHED-USER-TOKEN")
	r.Header.Set("X-SLURM-USER-TOKEN", token.text)
	leave := func() {}
	if c.kind == "stream" || r.URL.Query().Has("wait") {
		token.parked.Add(1)
		leave = sync.OnceFunc(func() { token.parked.Add(-1) })
	}
	begun := time.Now()
	w, err := c.user.transport.RoundTrip(r)
	if err != nil {
		leave()
		if r.Context().Err() == nil {
			c.meter.count(c.kind, "no answer", 0)
			pause(r.Context(), time.Second)
		}
		return nil, err
	}
	c.meter.count(c.kind, strconv.Itoa(w.StatusCode), time.Since(begun))
	w.Body = &leavingBody{w.Body, leave}
	if w.StatusCode == http.StatusOK || w.StatusCode == http.StatusNotModified {
		return w, nil
	}
	text, _ := io.ReadAll(w.Body)
	w.Body.Close()
	w.Body = io.NopCloser(bytes.NewReader(text))
	var failed struct {
		Errors []struct {
			Code      string
			Retryable bool
		}
	}
	_ = json.Unmarshal(text, &failed)
	code, retryable := "", false
	if len(failed.Errors) > 0 {
		code, retryable = failed.Errors[0].Code, failed.Errors[0].Retryable
	}
	switch after, numeric := strconv.Atoi(w.Header.Get("Retry-After")); {
	case (w.StatusCode == 503 || w.StatusCode == 429) && numeric == nil:
		pause(r.Context(), time.Duration(after)*time.Second)
	case w.StatusCode == 401 && token.revoked.Load():
		select {
		case <-r.Context().Done():
		case <-token.replaced:
		}
	case w.StatusCode == 401 && (changing || c.changingKey.Load() || token != c.user.token.Load()):
		select { // until the user has another token
		case <-r.Context().Done():
		case <-token.replaced:
			pause(r.Context(), time.Second)
		case <-time.After(5 * time.Second):
		}
	case w.StatusCode == 409 && code == "in_progress", w.StatusCode == 502 && code == "outcome_unknown" && r.Method == http.MethodPost:
		pause(r.Context(), time.Second)
	case w.StatusCode == 504 && retryable: // the second controller does not answer while it takes over
		pause(r.Context(), time.Second)
	case w.StatusCode == 502 && len(failed.Errors) == 0: // HAProxy's own, which CLIENTS.md calls a lost answer
		pause(r.Context(), time.Second)
	case w.StatusCode == 404 && c.kind == "wait for a job": // the caller checks it
	default:
		_, reason, _ := bytes.Cut(text, []byte(`"errors":`))
		c.fault("%s %s: %d, Retry-After %q, %.300s", c.kind, r.Method, w.StatusCode, w.Header.Get("Retry-After"), reason)
		pause(r.Context(), time.Second)
	}
	if c.kind == "stream" {
		return nil, errors.New(w.Status) // the client comes back
	}
	return w, nil
}

// leavingBody is a body at whose end a request is no longer parked.
type leavingBody struct {
	io.ReadCloser
	leave func()
}

func (b *leavingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.leave()
	}
	return n, err
}

func (b *leavingBody) Close() error {
	b.leave()
	return b.ReadCloser.Close()
}

// url returns the address of a path below the API's version.
func (c *monthClient) url(path string) string {
	return "http://" + c.proxy + "/slurm/" + watchedVersion + "/" + path
}

var answeredUser = regexp.MustCompile(`"client": ?\{[^}]*"user": ?"([^"]*)"`)

// send sends a request, and repeats it until it is answered. It returns a zero answer when
// ctx has ended.
func (c *monthClient) send(ctx context.Context, kind, method, url, body string, headers ...string) answer {
	c.kind = kind
	client := &http.Client{Transport: c}
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			c.fault("%v", err)
			return answer{}
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		w, err := client.Do(r)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(w.Body)
		w.Body.Close()
		switch w.StatusCode {
		case http.StatusOK, http.StatusNotModified, http.StatusNotFound:
			if err != nil {
				c.meter.count(kind, "cut off", 0)
				continue
			}
			if m := answeredUser.FindSubmatch(text); m != nil && string(m[1]) != c.user.name {
				c.fault("%s gets an answer of %s: %s %.300s", c.user.name, m[1], url, text)
			}
			return answer{w.StatusCode, w.Header, text}
		}
	}
	return answer{}
}

type monthRecord struct {
	ID    int      `json:"job_id"`
	Name  string   `json:"name"`
	User  string   `json:"user_name"`
	State []string `json:"job_state"`
}

// records returns the jobs in an answer, which must be the user's own.
func (c *monthClient) records(a answer, url string) []monthRecord {
	if a.status != http.StatusOK {
		return nil
	}
	var list struct {
		Jobs []monthRecord `json:"jobs"`
		Meta struct {
			Client struct{ User string }
		}
	}
	if err := json.Unmarshal(a.body, &list); err != nil {
		c.fault("%s: %v: %.300s", url, err, a.body)
	}
	if list.Meta.Client.User != c.user.name {
		c.fault("%s gets an answer of %q: %s %.300s", c.user.name, list.Meta.Client.User, url, a.body)
	}
	for _, j := range list.Jobs {
		if j.User != c.user.name {
			c.fault("%s gets a job of %q: %s", c.user.name, j.User, url)
		}
	}
	return list.Jobs
}

const monthFields = "fields=job_id,job_state,name,user_name"

func (c *monthClient) stream(ctx context.Context) {
	c.kind = "stream"
	f := &harness.Follower{Client: &http.Client{Transport: c}, URL: c.url("jobs/?" + monthFields), List: "jobs", Key: "job_id",
		Forbidden: func(job map[string]any) bool { return job["user_name"] != c.user.name }}
	c.mu.Lock()
	c.followers = append(c.followers, monthFollower{f, c.user})
	c.mu.Unlock()
	f.Run(ctx)
}

// newest returns one of the user's newest jobs that are submitted, or nil.
func (u *monthUser) newest() *monthJob {
	u.mu.Lock()
	defer u.mu.Unlock()
	var candidates []*monthJob
	for _, j := range slices.Backward(u.jobs) {
		if !j.answered.IsZero() {
			candidates = append(candidates, j)
		}
		if len(candidates) == 2 {
			break
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[rand.IntN(len(candidates))]
}

// wait waits for a job and for changes of the list in turn. A job that has ended already is
// not waited for again, as the answer would come at once.
func (c *monthClient) wait(ctx context.Context) {
	tag, seen := "", map[int]bool{}
	for ctx.Err() == nil {
		if job := c.user.newest(); job != nil && c.number/monthUsers%2 == 0 && !seen[job.id] {
			url := c.url(fmt.Sprintf("job/%d?wait=60s&until=ended&%s", job.id, monthFields))
			a := c.send(ctx, "wait for a job", "GET", url, "")
			if a.status == http.StatusNotFound {
				c.mu.Lock()
				c.unknown = append(c.unknown, job)
				c.mu.Unlock()
				seen[job.id] = true
			}
			for _, r := range c.records(a, url) {
				if r.ID != job.id || r.Name != job.name && !c.exposed(job) {
					c.fault("%s: %v instead of %s", url, r, job.name)
				}
				seen[job.id] = !slices.Contains(r.State, "PENDING") && !slices.Contains(r.State, "RUNNING")
			}
			continue
		}
		url := c.url("jobs/?wait=60s&" + monthFields)
		var headers []string
		if tag != "" { // otherwise the answer comes at once
			headers = []string{"If-None-Match: " + tag}
		}
		a := c.send(ctx, "wait for a change", "GET", url, "", headers...)
		c.records(a, url)
		if a.status == http.StatusOK {
			if tag = a.header.Get("ETag"); tag == "" {
				c.fault("%s: no ETag", url)
				pause(ctx, time.Second)
			}
		}
	}
}

// poll sends requests of several kinds, with pauses.
func (c *monthClient) poll(ctx context.Context) {
	tags, period := map[string]string{}, time.Duration(c.clients/4)*time.Second/monthPolls
	for pause(ctx, period/2+time.Duration(rand.Int64N(int64(period)))) {
		path := [...]string{"jobs/?" + monthFields, "jobs/?limit=10&" + monthFields, "nodes/?fields=name,state,cpus", "partitions/", "ping/", "jobs/?state=RUNNING&" + monthFields}[rand.IntN(6)]
		if strings.Contains(path, "limit=") {
			c.pages(ctx, path)
			continue
		}
		var headers []string
		if tags[path] != "" {
			headers = []string{"If-None-Match: " + tags[path]}
		}
		a := c.send(ctx, "poll", "GET", c.url(path), "", headers...)
		if a.status == http.StatusNotModified && headers == nil {
			c.fault("%s: 304 without a condition", path)
		}
		if a.status == http.StatusOK && path != "ping/" {
			tags[path] = a.header.Get("ETag")
		}
		if strings.HasPrefix(path, "jobs/") {
			c.records(a, path)
		}
	}
}

var nextPage = regexp.MustCompile(`<(\?[^>]*)>; rel="next"`)

// pages reads all pages of a list. Each job that was submitted before must be in one of them.
func (c *monthClient) pages(ctx context.Context, path string) {
	var before []*monthJob
	c.user.mu.Lock()
	for _, j := range c.user.jobs {
		if !j.answered.IsZero() {
			before = append(before, j)
		}
	}
	c.user.mu.Unlock()
	seen := map[int]int{}
	for path != "" {
		a := c.send(ctx, "poll", "GET", c.url(path), "")
		if a.status != http.StatusOK {
			return
		}
		for _, r := range c.records(a, path) {
			seen[r.ID]++
		}
		path = ""
		if next := nextPage.FindStringSubmatch(a.header.Get("Link")); next != nil {
			path = "jobs/" + next[1]
		}
	}
	for _, j := range before {
		if seen[j.id] != 1 && !c.exposed(j) {
			c.fault("job %d of %s is in %d pages", j.id, c.user.name, seen[j.id])
		}
	}
}

// submit submits jobs with keys, and repeats some of the submissions that were answered.
func (c *monthClient) submit(ctx context.Context) {
	period := max(time.Second, time.Duration(c.clients/20)*time.Second/monthSubmissions)
	length := time.Duration(rand.Int64N(int64(period))) // so that the clients do not begin together
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-c.submitting:
			return
		case <-time.After(length):
		}
		length = period/2 + time.Duration(rand.Int64N(int64(period)))
		job := &monthJob{name: fmt.Sprintf("month-%d-%d", c.number, n), asked: time.Now()}
		job.key = "key of " + job.name
		c.user.mu.Lock()
		c.user.jobs = append(c.user.jobs, job)
		c.user.mu.Unlock()
		body := fmt.Sprintf(`{"job": {"name": %q, "script": "#!/bin/sh\nexec sleep %d", "current_working_directory": "/tmp", "environment": ["A=b"], "standard_output": "/dev/null", "time_limit": 5}}`,
			job.name, rand.IntN(10))
		id, _ := c.submitOnce(ctx, "submission", body, job.key)
		if id == 0 {
			return
		}
		c.user.mu.Lock()
		job.id, job.answered = id, time.Now()
		c.user.mu.Unlock()
		if n%4 == 0 {
			if again, replayed := c.submitOnce(ctx, "repetition", body, job.key); again != 0 && (again != id || !replayed) && !c.exposed(job) {
				c.fault("%s: job %d, and %d when it is repeated (replayed: %t)", job.key, id, again, replayed)
			}
		}
	}
}

// submitOnce returns the number of the job, or 0 when ctx has ended.
func (c *monthClient) submitOnce(ctx context.Context, kind, body, key string) (id int, replayed bool) {
	a := c.send(ctx, kind, "POST", c.url("job/submit"), body, "Idempotency-Key: "+key)
	if a.status != http.StatusOK {
		return 0, false
	}
	var answered struct {
		ID int `json:"job_id"`
	}
	if err := json.Unmarshal(a.body, &answered); err != nil || answered.ID == 0 {
		c.fault("%s: %v %.300s", key, err, a.body)
	}
	return answered.ID, a.header.Get(api.HeaderReplayed) == "true"
}

// exposed reports whether the controller that was killed may have accepted the job without
// saving it. Then Slurm itself may lose the job, or give its number to another one.
func (x *month) exposed(j *monthJob) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.unsaved[1].IsZero() && j.asked.Before(x.unsaved[1]) && (j.answered.IsZero() || j.answered.After(x.unsaved[0]))
}

// unrecorded reports whether slurmdbd may lack the job: in 26.05 it learns nothing of the jobs
// that the second controller has accepted, although the first one knows them when it is back.
func (x *month) unrecorded(j *monthJob) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.m.release == "26.05" && j.asked.Before(x.backupServed[1]) && (j.answered.IsZero() || j.answered.After(x.backupServed[0]))
}
