package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"schedrestd/api"
)

// An answer is the answer to a request, and how far it is.
type answer struct {
	w         *response
	ctx       context.Context // of the requests to the daemons; notes how old their data in the answer is (package origin)
	media     string          // media type
	coding    chosenCoding    // content coding
	warnings  []api.Warning
	out       *sink // renders the answer
	keepAlive bool  // whether the connection may stay open once the body has been read

	unwatch func() // ends the watch for a revocation of the token; nil for none

	waiting waiting
	idle    time.Duration // how long the request has waited for changes, or followed them

	// For the log.
	reason      string // why the request is refused; "" if it is not
	claimedUser string // user that a rejected credential names
}

// Context returns the context of the request.
func (a *answer) Context() context.Context { return a.ctx }

// Header returns the header of the answer.
func (a *answer) Header() http.Header { return a.w.Header() }

// resetHeader undoes changes of the header of the answer.
func (a *answer) resetHeader(to http.Header) {
	h := a.Header()
	clear(h)
	for name, values := range to {
		h[name] = values
	}
}

// SetContentType sets the header fields of an answer whose body has the given
// media type.
func (a *answer) SetContentType(media string) {
	a.setAge()
	h := a.w.Header()
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("ETag") == "" {
		h.Set("Cache-Control", "no-store")
	}
}

// SendHeader sends the header of an answer whose body follows later. The body is
// then not compressed, and its length is not announced.
func (a *answer) SendHeader(status int) error {
	a.SetContentType(a.media)
	a.w.WriteHeader(status)
	return http.NewResponseController(a.w).Flush()
}

// SendText answers with a short text.
func (a *answer) SendText(status int, text string) error {
	a.SetContentType("text/plain; charset=utf-8")
	a.Header().Set("Content-Length", strconv.Itoa(len(text)))
	a.w.WriteHeader(status)
	_, err := io.WriteString(a.w, text)
	return err
}

// Warn adds a warning about a place in the request.
func (a *answer) Warn(source, format string, args ...any) {
	a.warnings = append(a.warnings, api.Warning{Description: fmt.Sprintf(format, args...), Source: source})
}

// NumWarnings returns the number of warnings so far.
func (a *answer) NumWarnings() int { return len(a.warnings) }

// KeepWarnings discards all but the first n warnings.
func (a *answer) KeepWarnings(n int) { a.warnings = a.warnings[:n] }
