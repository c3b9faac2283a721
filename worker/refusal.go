package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/errs"
	"schedrestd/handlers"
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
	header   int                                             // limit of a request's header, bytes
	refusing func(http.ResponseWriter, *http.Request, error) // answers a request that is not let in
	offences *offences
}

func newRefusals(setup *ipc.Setup) *refusals {
	r := &refusals{layout: schema.Layout(setup.JSON), cluster: setup.Cluster, storage: len(setup.Accounting) > 0, header: int(setup.Limits.Header)}
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

// The refusals. Each ends its connection: where the next request would begin is not known.
var (
	malformed     = refusal{http.StatusBadRequest, errs.Malformed, "the request can't be read as HTTP/1.1"}
	cutOff        = refusal{http.StatusBadRequest, errs.Malformed, "the request ends within its header; an empty line ends a header"}
	isTLS         = refusal{http.StatusBadRequest, errs.Malformed, "a TLS handshake came where plain HTTP is served; use http://"}
	isPlain       = refusal{http.StatusBadRequest, errs.Malformed, "plain HTTP came where TLS is served; use https://"}
	lateHeader    = refusal{http.StatusRequestTimeout, errs.RequestTimeout, "the rest of the request's header did not come in time"}
	lineTooLong   = refusal{http.StatusRequestURITooLong, errs.URITooLong, "the request's first line is too long"}
	headerTooLong = refusal{http.StatusRequestHeaderFieldsTooLarge, errs.HeaderTooLarge, "the request's header is too long"}
	noExpectation = refusal{http.StatusExpectationFailed, errs.Unsupported, "the only thing to expect is 100-continue"}
	noCoding      = refusal{http.StatusNotImplemented, errs.Unsupported, "the only transfer coding that is read is chunked"}
	noVersion     = refusal{http.StatusHTTPVersionNotSupported, errs.Unsupported, "the versions of HTTP that are read here are 1.1 and 1.0"}
	stopping      = refusal{http.StatusServiceUnavailable, errs.Unavailable, "this connection ends before the rest of the request came"}
)

// wrong tells whether no client that means well is refused so. What is late or in vain is no offence, nor is a connection that
// breaks within a header.
func (r refusal) wrong() bool {
	return r != cutOff && r.kind != errs.RequestTimeout && r.kind != errs.Unavailable
}

// errCrowded is what a request is told that could be read, and finds no room.
var errCrowded = errs.New(errs.Unavailable, "as many requests as may be are being answered, and none came to its end in time")

// instead is what is said in place of an answer that http.Server wrote by itself.
func instead(of []byte) refusal {
	status := 0
	if line, _, ok := bytes.Cut(of, []byte("\r\n")); ok && bytes.HasPrefix(line, []byte("HTTP/1.")) && len(line) > len("HTTP/1.1 400") {
		status, _ = strconv.Atoi(string(line[len("HTTP/1.1 "):len("HTTP/1.1 400")]))
	}
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		return headerTooLong
	case http.StatusExpectationFailed:
		return noExpectation
	case http.StatusNotImplemented:
		return noCoding
	case http.StatusHTTPVersionNotSupported:
		return noVersion
	}
	r := malformed
	for _, known := range []string{"missing required Host header", "malformed Host header", "invalid header name", "invalid header value"} {
		if bytes.Contains(of, []byte(known)) {
			r.text += ": " + known
		}
	}
	return r
}

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
		Errors: []api.Error{{Description: why.text, Name: http.StatusText(why.status), Code: why.kind.String(), Retryable: retry}},
	}}
	var text bytes.Buffer
	w := schema.NewJSONWriter(&text, schema.Compact)
	api.Empty.Renderer(r.view)(w, &body)
	_ = w.Flush() // into memory
	return text.Bytes()
}
