package handlers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"schedrestd/handlers/rest"
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

func TestCompressedAnswers(t *testing.T) {
	list, small := big(), demo()
	small.jobs, small.nodes = small.jobs[:0], small.nodes[:0]
	tests := []struct {
		name, accept, path string
		f                  *fake
		status             int
		want               string
	}{
		{"a list", "gzip", "/sched/v0.0.43/jobs", list, 200, "gzip"},
		{"a list, better", "gzip, zstd", "/sched/v0.0.43/jobs", list, 200, "zstd"},
		{"a list as it is", "", "/sched/v0.0.43/jobs", list, 200, ""},
		{"one job", "gzip", "/sched/v0.0.43/job/12", list, 200, "gzip"},
		{"little", "gzip", "/sched/v0.0.43/nodes", small, 200, ""},
		{"little, and nothing else taken", "gzip, *;q=0", "/sched/v0.0.43/nodes", small, 200, "gzip"},
		{"an error", "gzip", "/sched/v0.0.43/node/n9", list, 404, ""},
		{"a long error", "gzip", "/sched/v0.0.43/nodes?flags=NOPE&a=&b=&c=&d=&e=&f=&g=&h=&i=&j=&k=&l=&m=&n=", list, 422, ""},
		{"an error, and nothing else taken", "zstd, *;q=0", "/sched/v0.0.43/node/n9", list, 404, "zstd"},
		{"none of ours", "*;q=0", "/sched/v0.0.43/nodes", list, 406, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(New(config(tt.f)))
			defer server.Close()
			for range 3 { // a reused encoder must work like a new one
				r := requestTo(server, tt.path)
				r.Header["Accept-Encoding"] = []string{tt.accept}
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				if got := answer.Header.Get("Content-Encoding"); got != tt.want || answer.StatusCode != tt.status {
					t.Fatalf("status %d, Content-Encoding %q, want %q", answer.StatusCode, got, tt.want)
				}
				b, err := decompress(t, tt.want, answer.Body)
				if err != nil {
					t.Fatal(err)
				}
				envelope(t, b)
				if tt.want != "" {
					continue
				}
				plain := serve(t, config(tt.f), request(http.MethodGet, tt.path, ""))
				if tt.status == http.StatusOK && !bytes.Equal(b, plain.Body.Bytes()) {
					t.Error(cmp.Diff(string(b), plain.Body.String()))
				}
				if length := plain.Header().Get("Content-Length"); plain.Body.Len() < 30_000 && length != strconv.Itoa(plain.Body.Len()) {
					t.Errorf("Content-Length %q of %d bytes", length, plain.Body.Len())
				}
			}
		})
	}
}

// TestCompressedListThatBreaksOff checks that a client notices a truncated
// list, even if it is compressed.
func TestCompressedListThatBreaksOff(t *testing.T) {
	f := big()
	f.midwayErr = errs.Wrap(errors.New("connection reset"), errs.BadAnswer, "the controller's answer broke off")
	server := httptest.NewServer(New(config(f)))
	defer server.Close()
	for _, coding := range []string{"zstd", "gzip"} {
		r := requestTo(server, "/sched/v0.0.43/jobs")
		r.Header.Set("Accept-Encoding", coding)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			continue // aborted before the header was sent, so there is no list
		}
		defer answer.Body.Close()
		var got bytes.Buffer
		if _, err := io.Copy(&got, answer.Body); err == nil {
			t.Errorf("%s: a broken list looks whole: %d bytes", coding, got.Len())
		}
	}
}

func TestHeadHasTheHeaders(t *testing.T) {
	server := httptest.NewServer(New(config(demo())))
	defer server.Close()
	for _, path := range []string{"/sched/v0.0.43/ping", "/sched/v0.0.43/node/n9", "/healthz"} {
		get, head := requestTo(server, path), requestTo(server, path)
		head.Method = http.MethodHead
		var headers []http.Header
		for _, r := range []*http.Request{get, head} {
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if (len(b) == 0) != (r.Method == http.MethodHead) {
				t.Errorf("%s %s: %d bytes", r.Method, path, len(b))
			}
			answer.Header.Del("Date")
			answer.Header.Del("X-Request-Id")
			headers = append(headers, answer.Header)
		}
		if d := cmp.Diff(headers[0], headers[1]); d != "" || headers[0].Get("Content-Length") == "" {
			t.Errorf("%s: %s: %v", path, d, headers[0])
		}
	}
}

// BenchmarkCodings measures answers with a compressed list of 500 jobs.
// BenchmarkJobs measures the same list without compression.
func BenchmarkCodings(b *testing.B) {
	f := demo()
	for range 499 {
		f.jobs = append(f.jobs, f.jobs[0])
	}
	h := New(config(f))
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		for _, media := range []string{rest.MediaJSON, rest.MediaYAML} {
			b.Run(accept+" "+strings.TrimPrefix(media, "application/"), func(b *testing.B) {
				r := request(http.MethodGet, "/sched/v0.0.43/jobs", "")
				r.Header.Set("Accept-Encoding", accept)
				r.Header.Set("Accept", media)
				b.ReportAllocs()
				for b.Loop() {
					h.ServeHTTP(discard{http.Header{}}, r)
				}
			})
		}
	}
}

// TestCompressedDocument checks that the OpenAPI document has the same content
// in each coding. The gateway caches the compressed document, so the test
// requests each coding twice.
func TestCompressedDocument(t *testing.T) {
	server := httptest.NewServer(New(config(demo())))
	defer server.Close()
	for _, path := range []string{"/openapi.json", "/openapi.yaml"} {
		var plain []byte
		for _, coding := range []string{"identity", "zstd", "gzip", "zstd", "gzip"} {
			r := requestTo(server, path)
			r.Header.Set("Accept-Encoding", coding)
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decompress(t, answer.Header.Get("Content-Encoding"), answer.Body)
			answer.Body.Close()
			if coding == "identity" {
				plain = got
				continue
			}
			if err != nil || !bytes.Equal(got, plain) || answer.Header.Get("Content-Encoding") != coding || answer.ContentLength <= 0 {
				t.Errorf("%s, %s: %d bytes of %d, %v; %v", path, coding, len(got), len(plain), err, answer.Header)
			}
		}
	}
}

// BenchmarkDocumentCodings measures the compressed document; see
// BenchmarkDocument.
func BenchmarkDocumentCodings(b *testing.B) {
	h := New(config(demo()))
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		b.Run(accept, func(b *testing.B) {
			r := request(http.MethodGet, "/openapi.json", "")
			r.Header.Set("Accept-Encoding", accept)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}
