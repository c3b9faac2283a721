package handlers

import (
	"net/http"
	"strconv"
	"sync"

	"schedrestd/api/schema"
)

// response is the client's side of a call: it counts what is sent.
type response struct {
	http.ResponseWriter
	status int // 0: nothing was sent yet
	bytes  int
}

// WriteHeader sends the status.
func (w *response) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a piece of the body.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += n
	return n, err
}

// Unwrap gives the http.ResponseWriter below to http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// maxKept is the largest buffer that is kept for the next answer: one job with a huge text must
// not cost memory for good.
const maxKept = 256 << 10

var writers = sync.Pool{New: func() any { return schema.NewJSONWriter(nil) }}

// send renders body as the answer. When rendering fails before anything was sent, it
// returns why and the caller may still answer otherwise. When it fails later, the
// connection is broken off: an answer that is not whole must not look whole.
func send[T any](c *call, status int, table *schema.ObjectType[T], body *T) error {
	out := writers.Get().(*schema.JSONWriter)
	defer func() {
		if out.Reset(nil); out.Capacity() <= maxKept {
			writers.Put(out)
		}
	}()
	out.Reset(&started{c, status})
	table.Renderer(c.view)(out, body)
	if err := out.Err(); err != nil {
		if c.w.status == 0 {
			return err
		}
		c.logFailure(err)
		panic(http.ErrAbortHandler)
	}
	if c.w.status == 0 {
		c.w.Header().Set("Content-Length", strconv.Itoa(out.Buffered()))
	}
	if err := out.Flush(); err != nil {
		c.logFailure(err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// started writes to a call, status and headers first.
type started struct {
	c      *call
	status int
}

func (s *started) Write(b []byte) (int, error) {
	if s.c.w.status == 0 {
		h := s.c.w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		s.c.w.WriteHeader(s.status)
	}
	return s.c.w.Write(b)
}
