package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"schedrestd/internal/errs"
)

// decompress returns the decompressed body of an answer.
func decompress(t *testing.T, coding string, body io.Reader) ([]byte, error) {
	t.Helper()
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = z
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderMaxWindow(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		body = z
	}
	return io.ReadAll(body)
}

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
	for _, path := range []string{"/sched/v0.0.43/jobs", "/sched/v0.0.43/job/12", "/sched/v0.0.43/job/9"} {
		for _, media := range []string{MediaJSON, MediaYAML} {
			for _, coding := range []string{"", "gzip", "zstd"} {
				t.Run(strings.Join([]string{path, media, coding}, " "), func(t *testing.T) {
					get := func(site *site, old bool) (*httptest.ResponseRecorder, []byte) {
						r := newRequest(http.MethodGet, path, "")
						r.Header.Set("Accept", media)
						r.Header.Set("Accept-Encoding", coding)
						if old {
							asHTTP10(r)
						}
						w := site.serve(r)
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
					want, plain := get(newSite(500), false)
					for i, n := range []int{1 << 20, 1 << 20, spoolPiece, 0} {
						site, memory := newSite(500), newMeter(n)
						site.Worker, site.SendLength = memory, i == 0
						w, got := get(site, i > 0)
						if !bytes.Equal(got, plain) || w.Code != want.Code || w.Header().Get("Content-Encoding") != want.Header().Get("Content-Encoding") {
							t.Errorf("room for %d: status %d, %d bytes instead of %d, %v", n, w.Code, len(got), len(plain), w.Header())
						}
						if w.Header().Get("Content-Length") == "" && n > spoolPiece {
							t.Error("no Content-Length")
						}
						if memory.Held("ann") != 0 {
							t.Errorf("%d bytes were not given back", memory.Held("ann"))
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
	site := newSite(500)
	site.SendLength = true
	server := httptest.NewServer(site.server())
	defer server.Close()
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		r := newRequest(http.MethodGet, "/", "")
		r.URL.Host, r.URL.Path = server.Listener.Addr().String(), "/sched/v0.0.43/jobs"
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
	broken := errs.Wrap(errors.New("connection reset"), errs.BadAnswer, "the controller's answer broke off")
	for _, coding := range []string{"", "gzip"} {
		for _, n := range []int{1 << 20, 0} {
			site, memory := newSite(500), newMeter(n)
			site.Worker, site.midway = memory, broken
			r := asHTTP10(newRequest(http.MethodGet, "/sched/v0.0.43/jobs", ""))
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
				site.server().ServeHTTP(w, r)
			}()
			if n > 0 && (w.Code != http.StatusBadGateway || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len())) {
				t.Errorf("coding %q: status %d, Content-Length %q of %d bytes", coding, w.Code, w.Header().Get("Content-Length"), w.Body.Len())
			}
			if memory.Held("ann") != 0 {
				t.Errorf("%d bytes were not given back", memory.Held("ann"))
			}
		}
	}
}
