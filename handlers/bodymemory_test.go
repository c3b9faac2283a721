package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"schedrestd/handlers/rest"
)

// TestLargeBodies checks that only a few large bodies are accepted
// concurrently. A client that sends another large body must be asked to retry,
// but small bodies must be accepted. When the requests with large bodies have
// ended, a large body must be accepted again.
func TestLargeBodies(t *testing.T) {
	cfg := config(demo())
	cfg.MaxBody = 2 * stepBody
	const fewBodies = 4
	memory := newPot(fewBodies * 2 * stepBody)
	cfg.Worker = memory
	handler := New(cfg)
	post := func(body io.Reader, length int64) *httptest.ResponseRecorder {
		r := request(http.MethodPost, "/sched/v0.0.43/job/submit", "")
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
	if memory.used() != 0 {
		t.Errorf("%d bytes are still reserved", memory.used())
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
		{"enough memory", rest.MediaJSON, values, 32 << 20, 0, 0},
		{"a few values of the same length", rest.MediaJSON, long, 0, freeBody, 0},
		{"memory for the text alone", rest.MediaJSON, values, stepBody, 0, http.StatusServiceUnavailable},
		{"more than a user may ever use", rest.MediaJSON, values, 32 << 20, 4 << 20, http.StatusRequestEntityTooLarge},
		{"YAML", rest.MediaYAML, values, 4 * stepBody, 0, http.StatusServiceUnavailable},
	} {
		cfg := config(demo())
		cfg.MaxBody, cfg.MaxParsed = 2*stepBody, tt.maxParsed
		memory := newPot(tt.memory)
		cfg.Worker = memory
		r := request(http.MethodPost, "/sched/v0.0.43/job/submit", tt.body)
		r.Header.Set("Content-Type", tt.media)
		w := httptest.NewRecorder()
		New(cfg).ServeHTTP(w, r)
		if refused := w.Code == http.StatusServiceUnavailable || w.Code == http.StatusRequestEntityTooLarge; refused != (tt.refused != 0) || refused && w.Code != tt.refused {
			t.Errorf("%s: status %d: %.200s", tt.name, w.Code, w.Body)
		}
		if memory.used() != 0 {
			t.Errorf("%s: %d of %d bytes are still reserved", tt.name, memory.used(), tt.memory)
		}
	}
}
