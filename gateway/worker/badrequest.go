package worker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"schedrestd/auth"
	"schedrestd/handlers"
	"schedrestd/internal/errs"
	"schedrestd/internal/http1"
	"schedrestd/ipc/work"
)

// badRequests answers input that is not a valid request. The answers look like
// those of the handlers, and are recorded in the access log.
type badRequests struct {
	answerError func(http.ResponseWriter, *http.Request, error) // answers a request that is not admitted
	offences    *offences

	maxHead       int           // maximum size of a request line and header, in bytes
	maxBody       int64         // maximum size of a chunked body, in bytes
	headerTimeout time.Duration // time limit for receiving a header, counted from its first byte
	typed         bool          // whether a person may type the requests
}

func newBadRequests(setup *work.Setup) *badRequests {
	l := setup.Limits
	return &badRequests{
		answerError:   handlers.New(handlerConfig(*setup)).ServeError,
		maxHead:       int(l.Header),
		maxBody:       int64(l.Body),
		headerTimeout: l.ReadHeader,
		typed:         setup.Inetd,
	}
}

// Errors for input that this package itself refuses, without the lexer. Each of
// them closes the connection, because it is unknown where the next request
// starts.
var (
	errIncomplete    = errs.New(errs.Malformed, "incomplete request header: it must end with an empty line")
	errPlainHTTP     = errs.New(errs.Malformed, "received plain HTTP where TLS is served; use https://")
	errHeaderTimeout = errs.New(errs.RequestTimeout, "request header not received in time")
	errStopping      = errs.New(errs.Unavailable, "connection closed before the request was complete")
)

// lexerError returns the error for a request that the lexer refuses.
func lexerError(err error) error {
	e, ok := errors.AsType[*http1.Error](err)
	switch {
	case !ok || e.Status == http.StatusBadRequest:
		return errs.New(errs.Malformed, "invalid HTTP/1.1 request: %v", err)
	case e.Status == http.StatusRequestURITooLong:
		return errs.New(errs.URITooLong, "%s", e.Reason)
	case e.Status == http.StatusRequestHeaderFieldsTooLarge:
		return errs.New(errs.HeaderTooLarge, "%s", e.Reason)
	}
	return errs.Wrap(&http1.Error{Status: e.Status, Reason: http.StatusText(e.Status)}, errs.Unsupported, "%s", e.Reason)
}

// isMalformed reports whether an error proves that the client broke the HTTP
// protocol. A slow client proves nothing. Neither does a connection that breaks
// within a header.
func isMalformed(err error) bool {
	kind := errs.KindOf(err)
	return err != error(errIncomplete) && kind != errs.RequestTimeout && kind != errs.Unavailable
}

// errOverloaded is the answer to a request that is well-formed, but has waited
// too long because too many requests were in progress.
var errOverloaded = errs.New(errs.Unavailable, "server busy: concurrency limit reached")

// refuse sends err as the answer to the client of c, whose input is invalid.
func (b *badRequests) refuse(c net.Conn, peer auth.Peer, err error) error {
	r := (&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, URL: new(url.URL), Header: http.Header{}, Body: http.NoBody}).
		WithContext(auth.WithPeer(context.Background(), peer))
	w := newResponseWriter(c, r)
	w.closeAfter = true
	b.answerError(w, r, err)
	return w.finish()
}
