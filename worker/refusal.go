package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/errs"
	"schedrestd/errs/errcode"
	"schedrestd/handlers"
	"schedrestd/http1"
	"schedrestd/ipc"
	"schedrestd/release"
)

// refusals answers what never becomes a request: http.Server would do it in plain text, without
// an id and without a line in the log.
type refusals struct {
	view     schema.View
	layout   schema.Layout
	cluster  string
	storage  bool
	refusing func(http.ResponseWriter, *http.Request, error) // answers a request that is not let in
	offences *offences

	maxHead    int           // bytes of a request line and header
	maxBody    int64         // bytes of a body in chunks
	readHeader time.Duration // for a header, from its first byte on
	typed      bool          // a person may write the requests
}

func newRefusals(setup *ipc.Setup) *refusals {
	l := setup.Limits
	r := &refusals{layout: schema.Layout(setup.JSON), cluster: setup.Cluster, storage: len(setup.Accounting) > 0,
		maxHead: int(l.Header), maxBody: int64(l.Body), readHeader: l.ReadHeader, typed: setup.Inetd}
	r.refusing = handlers.Refusing(answers(*setup))
	r.view.Version = api.Versions[len(api.Versions)-1]
	if n := len(setup.Parsers); n > 0 {
		r.view.Version = schema.Version(setup.Parsers[n-1].Version)
	}
	if list := spellings(setup.Names).Spellings(); len(list) > 0 {
		r.view.Names = list[0]
	}
	return r
}

// refusal is one of them, as the client and the log are told.
type refusal struct {
	status int
	kind   errs.Kind
	text   string
}

// The refusals that no lexer decides. Each ends its connection: where the next
// request would begin is not known.
var (
	cutOff     = refusal{http.StatusBadRequest, errs.Malformed, "the request ends within its header; an empty line ends a header"}
	isPlain    = refusal{http.StatusBadRequest, errs.Malformed, "plain HTTP came where TLS is served; use https://"}
	lateHeader = refusal{http.StatusRequestTimeout, errs.RequestTimeout, "the rest of the request's header did not come in time"}
	stopping   = refusal{http.StatusServiceUnavailable, errs.Unavailable, "this connection ends before the rest of the request came"}
)

// unreadable returns the refusal of a request that the lexer, or another
// parser, does not accept.
func unreadable(err error) refusal {
	e, ok := errors.AsType[*http1.Error](err)
	if !ok || e.Status == http.StatusBadRequest {
		return refusal{http.StatusBadRequest, errs.Malformed, "the request can't be read as HTTP/1.1: " + err.Error()}
	}
	kind := errs.Unsupported
	switch e.Status {
	case http.StatusRequestURITooLong:
		kind = errs.URITooLong
	case http.StatusRequestHeaderFieldsTooLarge:
		kind = errs.HeaderTooLarge
	}
	return refusal{e.Status, kind, e.Reason}
}

// errDisagree is for a request that the lexer accepts and http.Server does not.
var errDisagree = errors.New("its parts contradict each other")

// wrong tells whether no client that means well is refused so. What is late or in vain is no offence, nor is a connection that
// breaks within a header.
func (r refusal) wrong() bool {
	return r != cutOff && r.kind != errs.RequestTimeout && r.kind != errs.Unavailable
}

// errCrowded is what a request is told that could be read, and finds no room.
var errCrowded = errs.New(errs.Unavailable, "as many requests as may be are being answered, and none came to its end in time")

// answer is the whole answer of a refusal, with the envelope as its body. It is logged as
// one request.
func (r *refusals) answer(why refusal, peer auth.Peer, begun time.Time) []byte {
	var out bytes.Buffer
	id, text := rand.Text(), r.body(why, peer)
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\nContent-Type: application/json\r\nDate: %s\r\n",
		why.status, http.StatusText(why.status), len(text), time.Now().UTC().Format(http.TimeFormat))
	if why.status == http.StatusServiceUnavailable {
		out.WriteString("Retry-After: 5\r\n")
	}
	fmt.Fprintf(&out, "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n\r\n", id)
	handlers.Access{ID: id, Peer: peer, Status: why.status, Bytes: len(text), Took: time.Since(begun), Because: why.text}.
		Log(context.Background(), slog.Default(), slog.LevelInfo)
	out.Write(text)
	return out.Bytes()
}

// body is the envelope of a refusal.
func (r *refusals) body(why refusal, peer auth.Peer) []byte {
	retry := why.kind == errs.RequestTimeout || why.kind == errs.Unavailable
	body := api.EmptyAnswer{Envelope: api.Envelope{
		Meta:   api.Meta{Version: r.view.Version.String(), Storage: r.storage, Source: peer.Addr, Release: release.Version, Cluster: r.cluster},
		Errors: []api.Error{{Description: why.text, Name: http.StatusText(why.status), Code: errcode.Of(why.kind), Retryable: retry}},
	}}
	var text bytes.Buffer
	w := schema.NewJSONWriter(&text, schema.Compact)
	api.Empty.Renderer(r.view)(w, &body)
	_ = w.Flush() // into memory
	return text.Bytes()
}
