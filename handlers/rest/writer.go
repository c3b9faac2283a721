package rest

import "net/http"

// response is the http.ResponseWriter of a call. It counts the bytes that are
// sent.
type response struct {
	http.ResponseWriter
	status int // 0 before the header is sent
	bytes  int

	variesByOrigin bool         // the header has to say so
	stopped        func() error // why nothing more may be sent; nil for no such reason
}

func (w *response) WriteHeader(status int) {
	w.status = status
	w.vary(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *response) Write(b []byte) (int, error) {
	if w.stopped != nil && (w.status == 0 || w.status == http.StatusOK) {
		if err := w.stopped(); err != nil {
			return 0, err
		}
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += n
	return n, err
}

// Unwrap returns the underlying http.ResponseWriter, for
// http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
