package handlers

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// outputFile is a file of alice, and stands for the process that reads it.
type outputFile struct {
	mu     sync.Mutex
	text   string
	inode  uint64
	err    error
	paths  []string
	unsure error // why the user is not known; nil if it is
	asked  int   // how often this was the answer
}

func (o *outputFile) Of(context.Context, auth.Credential) (UserFiles, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsure != nil {
		o.asked++
		return nil, o.unsure
	}
	return o, nil
}

func (o *outputFile) Owner() uint32 { return 20001 }

func (o *outputFile) ReadOutput(_ context.Context, p OutputPart) (d OutputData, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.paths = append(o.paths, p.Path); o.err != nil {
		return d, o.err
	}
	d = OutputData{File: OutputFile{1, o.inode}, Size: uint64(len(o.text)), Offset: p.Offset}
	if p.Lines > 0 {
		lines := strings.SplitAfter(strings.TrimSuffix(o.text, "\n"), "\n")
		d.Offset = uint64(len(strings.Join(lines[:max(0, len(lines)-int(p.Lines))], "")))
	}
	if d.Offset < d.Size {
		text := o.text[d.Offset:]
		d.Data = []byte(text[:min(len(text), p.Max)])
	}
	return d, nil
}

func (o *outputFile) set(text string, inode uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text, o.inode, o.err = text, inode, err
}

// outputJob returns the job 7 of alice, which runs.
func outputJob() model.Job {
	return model.Job{StepID: model.StepID{JobID: 7}, UserID: 20001, BatchFlag: 1, State: model.JobRunning, WorkDir: "/home/alice", StdErr: "e-%j"}
}

// withSteps gives accounting the steps of the job of outputJob.
func withSteps(f *fake) {
	step := func(n uint32, stdout, stderr string) model.AccountingStep {
		return model.AccountingStep{StepID: model.StepID{JobID: 7, Step: model.Some(n)}, StdOut: stdout, StdErr: stderr, WorkDir: "/home/alice"}
	}
	f.recorded.jobs = []model.AccountingJob{{JobID: 7, Cluster: "demo", UserID: 20001, WorkDir: "/home/alice",
		Steps: []model.AccountingStep{step(0, "/scratch/step-%J", "e%s"), step(1, "one", ""), step(2, "", "")}}}
}

// TestOutput checks which file is read for a request, and what is sent of it.
func TestOutput(t *testing.T) {
	const text = "one\ntwo\nthree\n"
	long := strings.Repeat("0123456789", 20_000)
	is := func(change func(*model.Job)) func(*fake) { return func(f *fake) { change(&f.jobs[0]) } }
	tests := []struct {
		name, target string
		method       string // "": GET
		header       [2]string
		set          func(*fake)
		file         *outputFile
		off          bool
		status       int
		want         string // the answer, or a part of its first error
		path         string
		headers      map[string]string
	}{
		{name: "whole", target: "7/stdout", file: &outputFile{text: text}, status: 200, want: text, path: "/home/alice/slurm-7.out",
			headers: map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Accept-Ranges": "bytes", "Content-Length": "14"}},
		{name: "errors", target: "7/stderr", file: &outputFile{text: text}, status: 200, want: text, path: "/home/alice/e-7"},
		{name: "empty", target: "7/stdout", status: 200},
		{name: "in several parts", target: "7/stdout", file: &outputFile{text: long}, status: 200, want: long},
		{name: "hostile bytes", target: "7/stdout", file: &outputFile{text: "<script>\x00\xff\x1b]0;x\a"}, status: 200, want: "<script>\x00\xff\x1b]0;x\a"},
		{name: "the last lines", target: "7/stdout?tail=2", file: &outputFile{text: text}, status: 200, want: "two\nthree\n"},
		{name: "more lines than there are", target: "7/stdout?tail=9", file: &outputFile{text: text}, status: 200, want: text},
		{name: "a range", target: "7/stdout", header: [2]string{"Range", "bytes=4-6"}, file: &outputFile{text: text}, status: 206, want: "two", headers: map[string]string{"Content-Range": "bytes 4-6/14"}},
		{name: "a unit in another case", target: "7/stdout", header: [2]string{"Range", "Bytes=4-6"}, file: &outputFile{text: text}, status: 206, want: "two"},
		{name: "from a place on", target: "7/stdout", header: [2]string{"Range", "bytes=8-"}, file: &outputFile{text: text}, status: 206, want: "three\n"},
		{name: "the last bytes", target: "7/stdout", header: [2]string{"Range", "bytes=-6"}, file: &outputFile{text: text}, status: 206, want: "three\n", headers: map[string]string{"Content-Range": "bytes 8-13/14"}},
		{name: "a range beyond the end", target: "7/stdout", header: [2]string{"Range", "bytes=4-99"}, file: &outputFile{text: text}, status: 206, want: "two\nthree\n"},
		{name: "a range after the end", target: "7/stdout", header: [2]string{"Range", "bytes=14-"}, file: &outputFile{text: text}, status: 416, want: "only 14 bytes", headers: map[string]string{"Content-Range": "bytes */14"}},
		{name: "the last bytes of a short file", target: "7/stdout", header: [2]string{"Range", "bytes=-99"}, file: &outputFile{text: text}, status: 206, want: text},
		{name: "the last bytes of an empty file", target: "7/stdout", header: [2]string{"Range", "bytes=-99"}, status: 200},
		{name: "no last bytes", target: "7/stdout", header: [2]string{"Range", "bytes=-0"}, file: &outputFile{text: text}, status: 416, want: "only 14 bytes"},
		{name: "several ranges", target: "7/stdout", header: [2]string{"Range", "bytes=0-1,4-5"}, file: &outputFile{text: text}, status: 200, want: text},
		{name: "a range that is none", target: "7/stdout", header: [2]string{"Range", "bytes=6-4"}, file: &outputFile{text: text}, status: 200, want: text},
		{name: "a range in a HEAD", method: "HEAD", target: "7/stdout", header: [2]string{"Range", "bytes=4-6"}, file: &outputFile{text: text}, status: 200, headers: map[string]string{"Content-Length": "14"}},
		{name: "a step", target: "7/stdout?step=0", set: withSteps, file: &outputFile{text: text}, status: 200, want: text, path: "/scratch/step-7.0"},
		{name: "errors of a step", target: "7/stderr?step=0", set: withSteps, file: &outputFile{text: text}, status: 200, want: text, path: "/home/alice/e0"},
		{name: "errors of a step that go with its output", target: "7/stderr?step=1", set: withSteps, file: &outputFile{text: text}, status: 200, want: text, path: "/home/alice/one"},
		{name: "a step of which accounting has no file", target: "7/stdout?step=2", set: withSteps, status: 404, want: "no such file of step 2; from Slurm 25.05 on it names"},
		{name: "a step that does not exist", target: "7/stdout?step=9", set: withSteps, status: 404, want: "no such file of step 9"},
		{name: "a step of another user's job", target: "7/stdout?step=0", set: func(f *fake) { withSteps(f); f.jobs[0].UserID = 20002 }, status: 403, want: "only the user of a job"},
		{name: "a step without accounting", target: "7/stdout?step=0", status: 501, want: "only accounting"},
		{name: "a step with a name", target: "7/stdout?step=batch", status: 422, want: "expected the number of a step"},
		{name: "another unit", target: "7/stdout", header: [2]string{"Range", "lines=1-2"}, file: &outputFile{text: text}, status: 200, want: text},
		{name: "a task", target: "7_3/stdout", set: is(func(j *model.Job) { j.ArrayJobID, j.ArrayTaskID = 7, model.Some[uint32](3) }), file: &outputFile{text: text}, status: 200, want: text, path: "/home/alice/slurm-7_3.out"},
		{name: "a task that waits", target: "7_5/stdout", set: is(func(j *model.Job) { j.ArrayJobID, j.ArrayTasks, j.State = 7, "0x20", model.JobPending }), file: &outputFile{err: errs.New(errs.NotFound, "no file")}, status: 404,
			want: "has not started", path: "/home/alice/slurm-7_5.out"},
		{name: "an array", target: "7/stdout", set: is(func(j *model.Job) { j.ArrayJobID, j.ArrayTasks = 7, "0x20" }), status: 422, want: "each of its tasks"},
		{name: "before the start", target: "7/stdout", set: is(func(j *model.Job) { j.State = model.JobPending }), file: &outputFile{err: errs.New(errs.NotFound, "no file").WithHint("look there")}, status: 404, want: "has not started, so it has no output yet"},
		{name: "missing", target: "7/stdout", file: &outputFile{err: errs.New(errs.NotFound, "there is no such file")}, status: 404, want: "/home/alice/slurm-7.out: there is no such file"},
		{name: "refused", target: "7/stdout", file: &outputFile{err: errs.New(errs.Denied, "it is not a regular file")}, status: 403, want: "slurm-7.out: it is not"},
		{name: "refused when it is followed", target: "7/stdout?follow=true", file: &outputFile{err: errs.New(errs.Denied, "it is not a regular file")}, status: 403, want: "slurm-7.out: it is not"},
		{name: "a file system that hangs", target: "7/stdout", file: &outputFile{err: errs.New(errs.Timeout, "the file system did not answer")}, status: 504, want: "did not answer"},
		{name: "of another user", target: "7/stdout", set: is(func(j *model.Job) { j.UserID = 20002 }), status: 403, want: "only the user of a job"},
		{name: "no such job", target: "8/stdout", status: 404, want: "there is no job 8"},
		{name: "no file", target: "7/stdout", set: is(func(j *model.Job) { j.BatchFlag = 0 }), status: 404, want: "no batch script; srun and salloc show the output"},
		{name: "to /dev/null", target: "7/stdout", set: is(func(j *model.Job) { j.StdOut = "/dev/null" }), status: 403, want: "nothing to read"},
		{name: "a component without the script", target: "7+1/stdout", set: is(func(j *model.Job) { j.HetJobID, j.HetJobOffset = 7, 1 }), status: 404, want: "runs the script; name job 7"},
		{name: "the component with the script", target: "7+0/stdout", set: is(func(j *model.Job) { j.HetJobID = 7 }), file: &outputFile{text: text}, status: 200, want: text},
		{name: "not read here", target: "7/stdout", off: true, status: 501, want: "does not read"},
		{name: "no lines", target: "7/stdout?tail=0", status: 422, want: "from 1 to 100000"},
		{name: "a format that text has not", target: "7/stdout", header: [2]string{"Accept", "application/yaml"}, status: 406, want: "text/plain, text/event-stream"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			if f.jobs = []model.Job{outputJob()}; tt.set != nil {
				tt.set(f)
			}
			cfg := config(f)
			if tt.file == nil {
				tt.file = new(outputFile)
			}
			if !tt.off {
				cfg.Output = tt.file
			}
			if !strings.Contains(tt.target, "step=") || tt.set == nil {
				cfg.Accounting = nil
			}
			if tt.header[0] == "" {
				tt.header[0] = "X-Nothing"
			}
			r := request(cmp.Or(tt.method, http.MethodGet), "/sched/v0.0.45/job/"+tt.target, "")
			r.Header.Set(tt.header[0], tt.header[1])
			w := httptest.NewRecorder()
			New(cfg).ServeHTTP(w, r)
			body := w.Body.String()
			if tt.status >= 400 && tt.status != 0 {
				body = firstError(w)
			}
			if strings.Contains(body, "look there") {
				t.Errorf("a hint about a file that does not exist yet: %s", body)
			}
			if w.Code != tt.status || tt.status < 400 && body != tt.want || !strings.Contains(body, tt.want) {
				t.Fatalf("status %d: %.300q", w.Code, body)
			}
			for name, want := range tt.headers {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %s", name, got)
				}
			}
			if tt.path != "" && (len(tt.file.paths) == 0 || tt.file.paths[0] != tt.path) {
				t.Errorf("read %q", tt.file.paths)
			}
			if tt.status == 403 && strings.Contains(tt.name, "another") && tt.file.paths != nil {
				t.Errorf("read %q", tt.file.paths)
			}
		})
	}
}

func firstError(w *httptest.ResponseRecorder) string {
	var answer struct {
		Errors []struct{ Description string }
	}
	if json.Unmarshal(w.Body.Bytes(), &answer) != nil || len(answer.Errors) == 0 {
		return w.Body.String()
	}
	return answer.Errors[0].Description
}

// TestOutputOfOthers checks that a client reads only the output of its own jobs,
// even if the controller shows it those of others.
func TestOutputOfOthers(t *testing.T) {
	f := demo()
	f.jobs = []model.Job{outputJob()}
	file := &outputFile{text: "secret"}
	cfg := config(f)
	cfg.Output, cfg.Auth = file, auth.Options{Local: true, UID: 20001}
	for uid, want := range map[uint32]int{20001: 200, 20002: 403, 0: 403} {
		r := newRequest(http.MethodGet, "/sched/v0.0.45/job/7/stdout", "")
		r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "unix", UID: uid, Verified: true}))
		file.paths = nil
		cfg.Auth.UID = uid // such a worker serves this user
		w := httptest.NewRecorder()
		New(cfg).ServeHTTP(w, r)
		if w.Code != want || want == 403 && file.paths != nil {
			t.Errorf("uid %d: status %d, read %q: %s", uid, w.Code, file.paths, w.Body)
		}
	}
}

// controllerOfOne is a controller with one job, which several requests may ask
// for at once.
type controllerOfOne struct {
	*fake
	mu  sync.Mutex
	job model.Job
}

func (c *controllerOfOne) Job(_ context.Context, _ model.Credential, _ uint32, _ model.Query, each func(*model.Job) error) (t model.ListTimes, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t, each(&c.job)
}

func (c *controllerOfOne) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.job.State = model.JobComplete
}

// TestOutputPoll checks how long a client waits for what a job writes after a pause.
func TestOutputPoll(t *testing.T) {
	o := &output{handler: new(handler)}
	o.WatchInterval = time.Second
	for quiet, want := range map[time.Duration]time.Duration{0: time.Second / 4, 2 * time.Second: time.Second / 4, 4 * time.Second: time.Second / 2, 8 * time.Second: 3 * time.Second / 4, time.Hour: 3 * time.Second / 4} {
		if got := o.poll(quiet); got != want {
			t.Errorf("after %v: %v, want %v", quiet, got, want)
		}
	}
}

// TestFollowedOutput checks what a client that follows a file gets: what is there,
// what is added, that the file was replaced, and the end.
func TestFollowedOutput(t *testing.T) {
	controller := &controllerOfOne{fake: demo(), job: outputJob()}
	cfg := config(controller.fake)
	cfg.Controller = controller
	file := &outputFile{inode: 1, text: "one\ntwo\nh\xc3"}
	cfg.Output, cfg.WatchInterval = file, 40*time.Millisecond
	server := httptest.NewServer(New(cfg))
	defer server.Close()
	events := func(target, id string) (next func() string) {
		t.Helper()
		r := requestTo(server, "/sched/v0.0.45/job/7/stdout"+target)
		r.Header.Set("Accept", "text/event-stream")
		if id != "" {
			r.Header.Set("Last-Event-ID", id)
		}
		answer, err := server.Client().Do(r)
		if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(answer, err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		lines := bufio.NewScanner(answer.Body)
		return func() string {
			var event []string
			for lines.Scan() {
				if line := lines.Text(); line != "" && line != ":" && !strings.HasPrefix(line, "retry") {
					event = append(event, line)
				} else if event != nil {
					break
				}
			}
			return strings.Join(event, "|")
		}
	}
	expect := func(next func() string, want string) {
		t.Helper()
		got := strings.ReplaceAll(next(), "\ufffd", `\ufffd`) // Go 1.27 does not escape it
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	next := events("?tail=2", "")
	expect(next, `event: output|id: 1-1-9|data: {"offset":4,"text":"two\nh"}`)
	file.set("one\ntwo\nh\xc3\xa4\xff<\n", 1, nil)
	expect(next, `event: output|id: 1-1-14|data: {"offset":9,"text":"ä\ufffd\u003c\n"}`)

	resumed := events("", "1-1-11")
	expect(resumed, `event: output|id: 1-1-14|data: {"offset":11,"text":"\ufffd\u003c\n"}`)
	for _, id := range []string{"x", "1-1-", "1-1--1", "1-1-99999999999999999999", "01-1-3"} {
		expect(events("", id), `event: output|id: 1-1-14|data: {"offset":0,"text":"one\ntwo\nhä\ufffd\u003c\n"}`)
	}

	file.set("", 0, errs.New(errs.NotFound, "no file"))
	time.Sleep(3 * cfg.WatchInterval) // the file is looked at meanwhile, and its absence is not its end
	file.set("new\n", 2, nil)
	for _, n := range []func() string{next, resumed} {
		expect(n, `event: reset|data: {}`)
		expect(n, `event: output|id: 1-2-4|data: {"offset":0,"text":"new\n"}`)
	}
	file.set("ne", 2, nil)
	expect(next, `event: reset|data: {}`)
	expect(next, `event: output|id: 1-2-2|data: {"offset":0,"text":"ne"}`)
	expect(events("", "1-1-14"), `event: reset|data: {}`)

	text := make(chan string)
	go func() {
		r := requestTo(server, "/sched/v0.0.45/job/7/stdout?follow=true")
		answer, err := server.Client().Do(r)
		if err != nil {
			text <- err.Error()
			return
		}
		defer answer.Body.Close()
		var all strings.Builder
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			fmt.Fprintln(&all, s.Text())
		}
		text <- all.String()
	}()
	time.Sleep(3 * cfg.WatchInterval)
	file.set("ne, and the end\n", 2, nil)
	controller.end()
	expect(next, `event: output|id: 1-2-16|data: {"offset":2,"text":", and the end\n"}`)
	expect(next, `event: end|data: {"reason":"the job has ended"}`)
	if got := <-text; got != "ne, and the end\n" {
		t.Errorf("without events: %q", got)
	}

	long := "a" + strings.Repeat("é", maxOutputPart)
	file.set(long, 3, nil)
	all, parts := "", events("", "")
	for range 10 {
		event := parts()
		if strings.HasPrefix(event, "event: end") {
			break
		}
		var part struct{ Text string }
		if _, data, ok := strings.Cut(event, "data: "); !ok || json.Unmarshal([]byte(data), &part) != nil {
			t.Errorf("got %.100s", event)
		}
		all += part.Text
	}
	if all != long {
		t.Errorf("a long text with characters on the edges of parts is %d bytes, want %d", len(all), len(long))
	}

	file.set("", 0, errs.New(errs.Denied, "it belongs to another user"))
	if w := httptest.NewRecorder(); true {
		r := request(http.MethodGet, "/sched/v0.0.45/job/7/stdout", "")
		r.Header.Set("Accept", "text/event-stream")
		if New(cfg).ServeHTTP(w, r); w.Code != 403 {
			t.Errorf("status %d", w.Code)
		}
	}
}

// busyAccounting is an accounting daemon that may be out of reach.
type busyAccounting struct {
	Accounting
	away  atomic.Bool
	asked atomic.Int32 // while it was away
}

func (a *busyAccounting) List(ctx context.Context, cred model.Credential, l model.Listing) error {
	if a.away.Load() {
		a.asked.Add(1)
		return errs.New(errs.Unavailable, "the accounting daemon is not reached")
	}
	return a.Accounting.List(ctx, cred, l)
}

// TestOutputGoesOn checks that a client follows a file although for a while the keeper
// does not name the user, and accounting does not name the file.
func TestOutputGoesOn(t *testing.T) {
	f := demo()
	withSteps(f)
	controller := &controllerOfOne{fake: f, job: outputJob()}
	cfg := config(f)
	file, accounting := &outputFile{inode: 1, text: "one\n"}, &busyAccounting{Accounting: cfg.Accounting}
	cfg.Controller, cfg.Accounting, cfg.Output, cfg.WatchInterval = controller, accounting, file, 5*time.Millisecond
	server := httptest.NewServer(New(cfg))
	defer server.Close()
	answer, err := server.Client().Do(requestTo(server, "/sched/v0.0.45/job/7/stdout?step=0&follow=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
	expect("one")
	until := func(asked func() int) {
		t.Helper()
		for begun := time.Now(); asked() == 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatal("not asked again")
			}
		}
	}
	setUnsure := func(err error) {
		file.mu.Lock()
		defer file.mu.Unlock()
		file.unsure = err
	}
	setUnsure(errs.New(errs.Unavailable, "the keeper does not answer"))
	until(func() int { file.mu.Lock(); defer file.mu.Unlock(); return file.asked })
	file.set("one\ntwo\n", 1, nil)
	expect("two")

	setUnsure(nil)
	accounting.away.Store(true)
	until(func() int { return int(accounting.asked.Load()) })
	file.set("one\ntwo\nthree\n", 1, nil)
	expect("three")

	accounting.away.Store(false)
	controller.end()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
	}
	file.mu.Lock()
	defer file.mu.Unlock()
	for _, path := range file.paths {
		if path != "/scratch/step-7.0" {
			t.Fatalf("read %q", path)
		}
	}
}
