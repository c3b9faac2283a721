package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestMemoryOfParameters checks that parameters in a body take memory from the budget
// while they are parsed, and only then: 8 KiB of YAML can take 4 MiB.
func TestMemoryOfParameters(t *testing.T) {
	for size, want := range map[int]int{stepBody - 1: http.StatusServiceUnavailable, stepBody: http.StatusRequestEntityTooLarge} {
		site := newSite(0)
		memory := newMeter(size)
		site.Worker = memory
		r := newRequest(http.MethodGet, "/sched/v0.0.43/jobs", "users: ["+strings.Repeat("a,", 4000)+"]")
		r.Header.Set("Content-Type", MediaYAML)
		if w := site.serve(r); w.Code != want || memory.Held("ann") != 0 {
			t.Errorf("with %d bytes: status %d, %d bytes are reserved: %s", size, w.Code, memory.Held("ann"), w.Body)
		}
	}
}

// TestLargeBodies checks that only a few large bodies are accepted
// concurrently. A client that sends another large body must be asked to retry,
// but small bodies must be accepted. When the requests with large bodies have
// ended, a large body must be accepted again.
func TestLargeBodies(t *testing.T) {
	site := newSite(0)
	site.MaxBody = 2 * stepBody
	const fewBodies, submission = 4, `{"script": "x", "job": {"name": "t"}}`
	memory := newMeter(fewBodies * 2 * stepBody)
	site.Worker = memory
	handler := site.server()
	post := func(body io.Reader, length int64) *httptest.ResponseRecorder {
		r := newRequest(http.MethodPost, "/sched/v0.0.43/job/submit", "")
		r.Body, r.ContentLength = io.NopCloser(body), length
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	var running sync.WaitGroup
	var ends []*io.PipeWriter
	for range fewBodies {
		in, out := io.Pipe()
		ends = append(ends, out)
		running.Go(func() { post(in, 2*stepBody) })
		io.WriteString(out, "{") // the handler has begun to read it
	}
	for name, length := range map[string]int64{"announced": 2 * stepBody, "chunked": -1} {
		w := post(strings.NewReader(strings.Repeat(" ", 2*stepBody)), length)
		body := envelope(t, w.Body.Bytes())
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || len(body.Errors) != 1 || !body.Errors[0].Retryable {
			t.Errorf("%s: status %d: %s", name, w.Code, w.Body)
		}
	}
	if w := post(strings.NewReader(submission), int64(len(submission))); w.Code != http.StatusOK {
		t.Errorf("a small one beside them: status %d: %s", w.Code, w.Body)
	}
	for _, out := range ends {
		out.Close()
	}
	running.Wait()
	if memory.Held("ann") != 0 {
		t.Errorf("%d bytes are still reserved", memory.Held("ann"))
	}
	large := submission + strings.Repeat(" ", 2*stepBody-len(submission))
	if w := post(strings.NewReader(large), -1); w.Code != http.StatusOK {
		t.Errorf("a large one after them: status %d: %s", w.Code, w.Body)
	}
}

// TestBodiesOfManyValues checks that a body counts with the values that are
// parsed from it, not only with its length.
func TestBodiesOfManyValues(t *testing.T) {
	values := `{"script":"x","job":{"argv":[` + strings.Repeat(`"",`, 100_000) + `""]}}`
	long := `{"script":"` + strings.Repeat("x,", len(values)/2) + `"}`
	for _, tt := range []struct {
		name, media, body string
		memory            int
		maxParsed         int64
		refused           int // status; 0 if the body is parsed
	}{
		{"enough memory", MediaJSON, values, 32 << 20, 0, 0},
		{"a few values of the same length", MediaJSON, long, 0, freeBody, 0},
		{"memory for the text alone", MediaJSON, values, stepBody, 0, http.StatusServiceUnavailable},
		{"more than a user may ever use", MediaJSON, values, 32 << 20, 4 << 20, http.StatusRequestEntityTooLarge},
		{"YAML", MediaYAML, values, 4 * stepBody, 0, http.StatusServiceUnavailable},
	} {
		site := newSite(0)
		site.MaxBody, site.MaxParsed = 2*stepBody, tt.maxParsed
		memory := newMeter(tt.memory)
		site.Worker = memory
		r := newRequest(http.MethodPost, "/sched/v0.0.43/job/submit", tt.body)
		r.Header.Set("Content-Type", tt.media)
		w := site.serve(r)
		if refused := w.Code == http.StatusServiceUnavailable || w.Code == http.StatusRequestEntityTooLarge; refused != (tt.refused != 0) || refused && w.Code != tt.refused {
			t.Errorf("%s: status %d: %.200s", tt.name, w.Code, w.Body)
		}
		if memory.Held("ann") != 0 {
			t.Errorf("%s: %d of %d bytes are still reserved", tt.name, memory.Held("ann"), tt.memory)
		}
	}
}
