package handlers

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// A pot is a worker with a limit on memory, in bytes.
type pot struct {
	rest.NoWorker
	*semaphore.Semaphore[string]
}

func newPot(n int) pot { return pot{Semaphore: semaphore.New[string](semaphore.Row{Total: n})} }

// Memory implements rest.Worker. All credentials share the pot.
func (p pot) Memory(model.Credential) feed.Reservation { return p.Empty("ann") }

// used returns the number of reserved bytes.
func (p pot) used() int { return p.Held("ann") }

// asHTTP10 turns r into an HTTP/1.0 request.
func asHTTP10(r *http.Request) *http.Request {
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
	return r
}

// TestSized checks answers to HTTP/1.0 clients, and to the clients of an inetd
// gateway. These answers must have a Content-Length, and the same content as
// other answers. If there is not enough memory to store an answer, it has no
// Content-Length.
func TestSized(t *testing.T) {
	f := big()
	for _, path := range []string{"/sched/v0.0.43/jobs", "/sched/v0.0.43/job/12", "/sched/v0.0.43/nodes?flags=NOPE"} {
		for _, media := range []string{rest.MediaJSON, rest.MediaYAML} {
			for _, coding := range []string{"", "gzip", "zstd"} {
				t.Run(strings.Join([]string{path, media, coding}, " "), func(t *testing.T) {
					get := func(cfg Config, old bool) (*httptest.ResponseRecorder, []byte) {
						r := request(http.MethodGet, path, "")
						r.Header.Set("Accept", media)
						r.Header.Set("Accept-Encoding", coding)
						if old {
							asHTTP10(r)
						}
						w := serve(t, cfg, r)
						size := strconv.Itoa(w.Body.Len())
						if length := w.Header().Get("Content-Length"); length != "" && length != size {
							t.Errorf("Content-Length %s of %s bytes", length, size)
						}
						plain, err := decompress(t, w.Header().Get("Content-Encoding"), w.Body)
						if err != nil {
							t.Error(err)
						}
						return w, plain
					}
					want, plain := get(config(f), false)
					for i, n := range []int{1 << 20, 1 << 20, spoolPiece, 0} {
						cfg, memory := config(f), newPot(n)
						cfg.Worker, cfg.SendLength = memory, i == 0
						w, got := get(cfg, i > 0)
						if !bytes.Equal(got, plain) || w.Code != want.Code || w.Header().Get("Content-Encoding") != want.Header().Get("Content-Encoding") {
							t.Errorf("room for %d: status %d, %d bytes instead of %d, %v", n, w.Code, len(got), len(plain), w.Header())
						}
						if w.Header().Get("Content-Length") == "" && n > spoolPiece {
							t.Error("no Content-Length")
						}
						if memory.used() != 0 {
							t.Errorf("%d bytes were not given back", memory.used())
						}
					}
				})
			}
		}
	}
}

// TestSizedOverTheWire checks the Content-Length with http.Server, which aborts
// the connection if the length is wrong.
func TestSizedOverTheWire(t *testing.T) {
	cfg := config(big())
	cfg.SendLength = true
	server := httptest.NewServer(New(cfg))
	defer server.Close()
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		r := requestTo(server, "/sched/v0.0.43/jobs")
		r.Header.Set("Accept-Encoding", coding)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := decompress(t, coding, answer.Body)
		if err != nil || answer.ContentLength <= 0 || bytes.Count(b, []byte(`"job_id":`)) != 501 {
			t.Errorf("%q: Content-Length %d, %d bytes: %v", coding, answer.ContentLength, len(b), err)
		}
	}
}

// TestSizedListThatBreaksOff tests answers that fail midway. If the answer was
// being stored, none of it has been sent, so the client must get the error
// instead. If the answer was sent early because memory was short, the
// connection must be aborted.
func TestSizedListThatBreaksOff(t *testing.T) {
	f := big()
	f.midwayErr = errs.Wrap(errors.New("connection reset"), errs.BadAnswer, "the controller's answer broke off")
	for _, coding := range []string{"", "gzip"} {
		for _, n := range []int{1 << 20, 0} {
			cfg, memory := config(f), newPot(n)
			cfg.Worker = memory
			r := asHTTP10(request(http.MethodGet, "/sched/v0.0.43/jobs", ""))
			r.Header.Set("Accept-Encoding", coding)
			w := httptest.NewRecorder()
			func() {
				defer func() { // as http.Server does
					if p := recover(); p != nil && (p != http.ErrAbortHandler || n > 0) {
						t.Errorf("panic %v", p)
					} else if p == nil && w.Code == http.StatusOK {
						t.Errorf("coding %q, room for %d: it looks whole", coding, n)
					}
				}()
				New(cfg).ServeHTTP(w, r)
			}()
			if n > 0 && (w.Code != http.StatusBadGateway || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len())) {
				t.Errorf("coding %q: status %d, Content-Length %q of %d bytes", coding, w.Code, w.Header().Get("Content-Length"), w.Body.Len())
			}
			if memory.used() != 0 {
				t.Errorf("%d bytes were not given back", memory.used())
			}
		}
	}
}
