package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	data "schedrestd/internal/origin"
	"schedrestd/model"
)

// digesting is a controller whose lists of jobs have a digest, as those of
// package rpc/client. It is safe for concurrent use.
type digesting struct {
	*fake
	jobs    []model.Job
	content string       // what the digest depends on; "" for no digest
	fails   atomic.Int32 // number of lists that break off

	passed atomic.Int32 // jobs that were passed on
	lists  atomic.Int32
}

func (d *digesting) Verify(context.Context, model.Credential) error   { return nil }
func (d *digesting) Release(context.Context, model.Credential) string { return "24.11.5" }
func (d *digesting) Jobs(ctx context.Context, _ model.Credential, _ model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	times := model.ListTimes{LastUpdate: model.Time(1000 + d.lists.Add(1))}
	data.From(ctx).Add(0, func() ([sha256.Size]byte, bool) { return sha256.Sum256([]byte(d.content)), d.content != "" })
	fails := d.fails.Add(-1) >= 0
	for i := range d.jobs {
		job := d.jobs[i]
		d.passed.Add(1)
		if err := each(&job); err != nil {
			return times, err
		}
		if fails && i == len(d.jobs)/2 {
			return times, errs.Wrap(errors.New("connection reset"), errs.BadAnswer, "the controller's answer broke off")
		}
	}
	return times, nil
}

// newDigesting returns a controller with n jobs, and a server that may use the
// given memory for records that requests share.
func newDigesting(n, memory int) (*digesting, http.Handler) {
	f := demo()
	d := &digesting{fake: f, content: "first"}
	for i := range n {
		d.jobs = append(d.jobs, model.Job{StepID: model.StepID{JobID: uint32(1000 + i)}, Name: fmt.Sprintf("job %d", i), Partition: "debug"})
	}
	cfg := config(f)
	cfg.Controller, cfg.Renderings = d, memory
	return d, New(cfg)
}

// getFrom requests a path as a client with the given address.
func getFrom(h http.Handler, path, address string, header ...string) *httptest.ResponseRecorder {
	r := request(http.MethodGet, path, "")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: address})))
	return w
}

// TestSharedRecords checks that requests for the same view of the same data get
// the same bodies as without sharing, in every format and coding, that the jobs
// are rendered only once, and that each body names its own client.
func TestSharedRecords(t *testing.T) {
	for _, path := range []string{"/sched/v0.0.45/jobs", "/slurm/v0.0.40/jobs?partition=debug", "/sched/v0.0.45/jobs?limit=300"} {
		for _, accept := range []string{"application/json", "application/yaml"} {
			for _, coding := range []string{"identity", "gzip", "zstd"} {
				t.Run(path+" "+accept+" "+coding, func(t *testing.T) {
					t.Parallel()
					_, unshared := newDigesting(500, 0)
					d, h := newDigesting(500, 64<<20)
					tag := ""
					for i := range 3 {
						address := fmt.Sprintf("192.0.2.%d:5", i)
						w := getFrom(h, path, address, "Accept", accept, "Accept-Encoding", coding)
						want := getFrom(unshared, path, address, "Accept", accept)
						body := decoded(t, w.Header().Get("Content-Encoding"), w.Body)
						if w.Code != http.StatusOK || string(body) != want.Body.String() {
							t.Fatalf("request %d: status %d, %d bytes instead of %d: %s", i, w.Code, len(body), want.Body.Len(), firstDifference(string(body), want.Body.String()))
						}
						if !strings.Contains(string(body), address) {
							t.Errorf("request %d: the body does not name its client", i)
						}
						if got := w.Header().Get("ETag"); got == "" || tag != "" && got != tag {
							t.Errorf("request %d: tag %q, before %q", i, got, tag)
						} else {
							tag = got
						}
						if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Result().ContentLength) || got == "" {
							t.Errorf("request %d: length %q", i, got)
						}
						if w.Header().Get("Link") != want.Header().Get("Link") {
							t.Errorf("request %d: Link %q, want %q", i, w.Header().Get("Link"), want.Header().Get("Link"))
						}
					}
					if rendered := d.passed.Load(); rendered > 502 && !strings.Contains(path, "limit") {
						t.Errorf("%d jobs were rendered", rendered)
					}
					w := getFrom(h, path, "192.0.2.9:5", "Accept", accept, "Accept-Encoding", coding, "If-None-Match", tag)
					if w.Code != http.StatusNotModified || w.Body.Len() != 0 || w.Header().Get("ETag") != tag {
						t.Errorf("with the tag: status %d, %d bytes, tag %q", w.Code, w.Body.Len(), w.Header().Get("ETag"))
					}
				})
			}
		}
	}
}

// firstDifference shows where two texts begin to differ.
func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, min(i, len(s))-40):min(len(s), i+40)] }
	return fmt.Sprintf("at %d: %q, want %q", i, cut(a), cut(b))
}

// TestTagsOfLongLists checks that the tag of a long list depends only on its
// records: not on the coding, the worker, or what else the controller sent.
func TestTagsOfLongLists(t *testing.T) {
	tags := map[string]bool{}
	for i, coding := range []string{"identity", "gzip", "zstd"} {
		d, h := newDigesting(500, 64<<20)
		d.content = fmt.Sprint(i)
		tags[getFrom(h, "/sched/v0.0.45/jobs", "192.0.2.1:5", "Accept-Encoding", coding).Header().Get("ETag")] = true
	}
	if len(tags) != 1 || tags[""] {
		t.Errorf("tags %v", tags)
	}
	d, h := newDigesting(500, 64<<20)
	d.jobs[7].Priority, d.content = 9, "changed"
	if tag := getFrom(h, "/sched/v0.0.45/jobs", "192.0.2.1:5").Header().Get("ETag"); tags[tag] || tag == "" {
		t.Errorf("another job has the tag %q", tag)
	}
}

// TestSharingChangedRecords checks that new data is rendered again.
func TestSharingChangedRecords(t *testing.T) {
	d, h := newDigesting(500, 64<<20)
	getFrom(h, "/sched/v0.0.45/jobs", "192.0.2.1:5")
	d.content, d.jobs[3].Name = "second", "renamed"
	if w := getFrom(h, "/sched/v0.0.45/jobs", "192.0.2.1:5"); !strings.Contains(w.Body.String(), "renamed") {
		t.Error("the client got old records")
	}
}

// TestSharingTogether sends many requests at the same time. Those whose list
// breaks off fail, and the others get whole lists.
func TestSharingTogether(t *testing.T) {
	for _, fails := range []int32{0, 1, 5} {
		d, h := newDigesting(500, 64<<20)
		d.fails.Store(fails)
		_, unshared := newDigesting(500, 0)
		const path = "/sched/v0.0.45/jobs?partition=debug"
		want := getFrom(unshared, path, "192.0.2.0:5").Body.String()
		var wait sync.WaitGroup
		var failed atomic.Int32
		const requests = 40
		for i := range requests {
			wait.Go(func() {
				coding := []string{"gzip", "zstd"}[i%2]
				address := fmt.Sprintf("192.0.2.%d:5", i)
				w := getFrom(h, path, address, "Accept-Encoding", coding)
				if w.Code == http.StatusBadGateway {
					failed.Add(1)
					return
				}
				body := string(decoded(t, w.Header().Get("Content-Encoding"), w.Body))
				wantLen := len(want) + strings.Count(want, "192.0.2.0:5")*(len(address)-len("192.0.2.0:5"))
				if w.Code != http.StatusOK || strings.Count(body, `"job_id"`) != strings.Count(want, `"job_id"`) || len(body) != wantLen || !strings.Contains(body, address) {
					t.Errorf("request %d: status %d, %d bytes", i, w.Code, len(body))
				}
			})
		}
		wait.Wait()
		if failed.Load() > fails {
			t.Errorf("%d requests failed although %d lists broke off", failed.Load(), fails)
		}
		if lists := d.passed.Load(); lists > 500*(2+2*fails)+requests {
			t.Errorf("%d jobs were rendered", lists)
		}
	}
}

// TestRecordsTooLongToShare checks that a list for which there is no memory is
// sent as a whole, without a tag.
func TestRecordsTooLongToShare(t *testing.T) {
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		_, h := newDigesting(3000, 1<<10)
		_, unshared := newDigesting(3000, 0)
		for range 2 {
			w := getFrom(h, "/sched/v0.0.45/jobs", "192.0.2.1:5", "Accept-Encoding", coding)
			want := getFrom(unshared, "/sched/v0.0.45/jobs", "192.0.2.1:5").Body.String()
			body := string(decoded(t, w.Header().Get("Content-Encoding"), w.Body))
			if w.Code != http.StatusOK || len(body) != len(want) || w.Header().Get("ETag") != "" || w.Header().Get("Content-Length") != "" {
				t.Errorf("%s: status %d, %d bytes instead of %d: %v", coding, w.Code, len(body), len(want), w.Header())
			}
		}
	}
}

// TestHeadersOfSharedRecords checks, over a connection, that HEAD, a range and a
// condition get the header of the whole answer, whether its records exist
// already or not, and a body only where there must be one.
func TestHeadersOfSharedRecords(t *testing.T) {
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		_, h := newDigesting(500, 64<<20)
		server := httptest.NewServer(h)
		defer server.Close()
		do := func(method string, header ...string) *http.Response {
			r := requestTo(server, "/sched/v0.0.45/jobs?limit=400")
			r.Method = method
			r.Header.Set("Accept-Encoding", coding)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			w, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Body.Close()
			body, err := io.ReadAll(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if wantBody := method == http.MethodGet && w.StatusCode == http.StatusOK; wantBody != (len(body) > 0) || wantBody && int64(len(body)) != w.ContentLength {
				t.Errorf("%s %s: status %d, %d bytes, length %d", method, header, w.StatusCode, len(body), w.ContentLength)
			}
			return w
		}
		head := do(http.MethodHead) // renders the records
		get := do(http.MethodGet)
		for name, w := range map[string]*http.Response{"HEAD": head, "range": do(http.MethodGet, "Range", "bytes=5-9"), "HEAD again": do(http.MethodHead)} {
			for _, h := range []string{"Content-Length", "Content-Type", "Content-Encoding", "ETag", "Vary", "Cache-Control", "Link"} {
				if w.StatusCode != http.StatusOK || w.Header.Get(h) != get.Header.Get(h) {
					t.Errorf("%s, %s: status %d, %s %q instead of %q", coding, name, w.StatusCode, h, w.Header.Get(h), get.Header.Get(h))
				}
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := do(method, "If-None-Match", get.Header.Get("ETag"))
			if w.StatusCode != http.StatusNotModified || w.Header.Get("Content-Length") != "" || w.Header.Get("Content-Type") != "" {
				t.Errorf("%s with the tag: status %d, %v", method, w.StatusCode, w.Header)
			}
			for _, h := range []string{"ETag", "Cache-Control", "Link"} {
				if w.Header.Get(h) != get.Header.Get(h) || w.Header.Get(h) == "" {
					t.Errorf("%s with the tag: %s %q instead of %q", method, h, w.Header.Get(h), get.Header.Get(h))
				}
			}
			if len(w.Header.Values("Vary")) != len(get.Header.Values("Vary")) {
				t.Errorf("%s with the tag: Vary %q", method, w.Header.Values("Vary"))
			}
		}
	}
}

// held is a client whose connection takes no data before it is released, and
// then either all or none.
type held struct {
	*httptest.ResponseRecorder
	arrived chan struct{} // closed when data arrives
	proceed chan struct{}
	err     error
	once    sync.Once
}

func (w *held) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.arrived) })
	<-w.proceed
	if w.err != nil {
		return 0, w.err
	}
	return w.ResponseRecorder.Write(b)
}

// TestSharingWithSlowClient checks that a client that reads slowly, or leaves,
// while it gets a list that is too long to share, holds up no other client.
func TestSharingWithSlowClient(t *testing.T) {
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		for _, failure := range []error{nil, errors.New("connection reset")} {
			_, h := newDigesting(3000, 1<<10)
			slow := &held{ResponseRecorder: httptest.NewRecorder(), arrived: make(chan struct{}), proceed: make(chan struct{}), err: failure}
			send := func(w http.ResponseWriter) {
				defer func() { _ = recover() }() // the answer to a client that left is aborted
				r := request(http.MethodGet, "/sched/v0.0.45/jobs", "")
				r.Header.Set("Accept-Encoding", coding)
				ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
				defer cancel()
				h.ServeHTTP(w, r.WithContext(ctx))
			}
			var wait sync.WaitGroup
			wait.Go(func() { send(slow) })
			<-slow.arrived
			check := func(name string) {
				w := httptest.NewRecorder()
				send(w)
				if n := strings.Count(string(decoded(t, w.Header().Get("Content-Encoding"), w.Body)), `"name":"job `); w.Code != http.StatusOK || n != 3000 {
					t.Errorf("%s, %v: %s: status %d, %d jobs", coding, failure, name, w.Code, n)
				}
			}
			check("while it reads slowly")
			close(slow.proceed)
			wait.Wait()
			check("afterwards")
		}
	}
}

// decoded returns the decompressed body of an answer.
func decoded(t *testing.T, coding string, body io.Reader) []byte {
	t.Helper()
	b, err := decompress(t, coding, body)
	if err != nil {
		t.Error(err)
	}
	return b
}
