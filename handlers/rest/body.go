package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/internal/http1"
)

// ReadBody reads and parses a request's body. It must be called after
// Authenticate. It adds the warnings about the body to the call's warnings.
func ReadBody[T any](c *Call, table *schema.ObjectType[T]) (*T, error) {
	return ReadBodyInto(c, table, new(T))
}

// ReadBodyInto reads and parses a request's body into body. Fields that the
// request omits keep their values.
func ReadBodyInto[T any](c *Call, table *schema.ObjectType[T], body *T) (*T, error) {
	format, err := c.requestFormat()
	if err != nil {
		return nil, err
	}
	if c.r.ContentLength > c.server.MaxBody {
		return nil, errs.New(errs.TooLarge, "the body is too large").WithHint("at most %d bytes are accepted", c.server.MaxBody)
	}
	// If the client did not announce the length, ContentLength is -1, and
	// memory is reserved while the body arrives.
	if err := c.growBody(c.r.ContentLength); err != nil {
		return nil, err
	}
	text, err := readText(c.body(), c.r.ContentLength)
	if err != nil {
		return nil, err
	}
	limits := c.bodyLimits()
	if err := c.reserveParsed(int64(len(text)) + format.memory(text, limits)); err != nil {
		return nil, err
	}
	if c.key != "" {
		c.requestHash = sha256.Sum256(fmt.Appendf(nil, "%s %s %s\n%s", c.r.Method, c.r.URL.RequestURI(), format.name, text))
	}
	// In the body of a DELETE, the fields are conditions. Without an invalid,
	// unknown or null condition, the request would remove more than the client wants.
	conditions := c.r.Method == http.MethodDelete
	strict := c.server.Strict || conditions
	report := schema.Report{Lenient: c.fast && !strict, Strict: strict, Conditions: conditions, Quiet: c.Lenient(api.HarmlessValue), Forbids: c.seemsDryRun}
	err = c.parse(len(text), func() error {
		doc, err := format.parse(c.ctx, text, limits)
		if err != nil {
			return syntaxError(format.name, err)
		}
		table.Parser(c.view)(&report, doc, body)
		if c.route != nil && c.route.Request != nil {
			c.fields = bodyFields(c.bodyShape(), doc)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range report.Warnings {
		c.warnings = append(c.warnings, api.Warning{Description: n.Text, Source: n.Source})
	}
	if !report.OK() {
		return nil, &notesError{"body", report.Errors}
	}
	return body, nil
}

// bodyLimits returns the limits of a body and of its syntax.
func (q *request) bodyLimits() schema.Limits {
	limits := schema.DefaultLimits
	limits.Loose = q.Lenient(api.LooseJSON)
	return limits
}

// closeUnlessRead makes the connection end after the answer if the request has
// a body. If net/http kept the connection, it would wait for the rest of the
// body before sending the answer. An unauthenticated client that announces a
// thousand bytes and sends one could then occupy one of the worker's connection
// slots permanently.
//
// If ReadBody later reads the whole body, the connection may stay open, unless
// its worker is retired or another connection waits for a slot.
//
// A connection always ends after a chunked body or an HTTP/1.0 request, because
// a proxy may parse chunks differently. The gateway could mistake bytes that
// the proxy considers part of the body for another request. The proxy's client
// would have chosen the headers of that request (RFC 9112, 6.1 and 11.2).
// Package http1 has already refused requests that have both a length and
// chunks, and HTTP/1.0 requests with chunks.
func (c *Call) closeUnlessRead() {
	h := c.w.Header()
	isHTTP11 := c.r.ProtoAtLeast(1, 1)
	if (c.r.ContentLength != 0 || !isHTTP11) && h.Get("Connection") == "" {
		h.Set("Connection", "close")
		c.keepAlive = isHTTP11 && len(c.r.TransferEncoding) == 0
	}
}

// body returns a reader for the request's body. The reader limits the length of
// the body, and the time until the next bytes arrive. So the gateway serves a
// slow client, but not a client that stops sending.
func (c *Call) body() io.Reader {
	conn := http.NewResponseController(c.w.ResponseWriter)
	bounded := http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, c.server.MaxBody)
	var received int64
	return readerFunc(func(p []byte) (int, error) {
		_ = conn.SetReadDeadline(time.Now().Add(c.server.ReadBody)) // not supported in tests' recorders
		n, err := bounded.Read(p)
		received += int64(n)
		if memErr := c.growBody(received); memErr != nil {
			return n, memErr
		}
		if err == io.EOF {
			_ = conn.SetReadDeadline(time.Time{})
			if c.keepAlive {
				c.w.Header().Del("Connection")
			}
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// bodyFormat parses the bodies of one format.
type bodyFormat struct {
	name   string
	parse  func(context.Context, string, schema.Limits) (*schema.Value, error)
	memory func(string, schema.Limits) int64 // how many bytes of memory parse takes at most
}

// jsonBody parses JSON. It ignores the context, because even the longest
// permitted body takes less than a second.
var jsonBody = bodyFormat{"JSON", func(_ context.Context, text string, lim schema.Limits) (*schema.Value, error) {
	return schema.ReadJSON(text, lim)
}, schema.JSONMemory}

// requestFormat returns the bodyFormat for the request's Content-Type. Without
// this header, the format is JSON. A body that is compressed, or declares an
// encoding other than UTF-8, is refused.
func (c *Call) requestFormat() (bodyFormat, error) {
	if err := c.checkBodyCoding(); err != nil {
		return bodyFormat{}, err
	}
	contentType, present, consistent := singleValue(c.r.Header, "Content-Type")
	if !present {
		return jsonBody, nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	charset, ok := params["charset"]
	if consistent && err == nil && (!ok || strings.EqualFold(charset, "utf-8")) {
		switch kind {
		case MediaJSON:
			return jsonBody, nil
		case MediaYAML, MediaXYAML, MediaTextYAML:
			return bodyFormat{"YAML", schema.ReadYAML, schema.YAMLMemory}, nil
		}
	}
	c.w.Header().Set("Accept-Post", strings.Join(BodyMedia, ", "))
	return bodyFormat{}, c.unsupported("Content-Type").WithHint("send %s, in UTF-8", strings.Join(BodyMedia, " or "))
}

// checkBodyCoding refuses a body that is compressed.
func (c *Call) checkBodyCoding() error {
	coding, present, ok := singleValue(c.r.Header, "Content-Encoding")
	if present && (!ok || !strings.EqualFold(coding, identity)) {
		c.w.Header().Set("Accept-Encoding", identity)
		return c.unsupported("Content-Encoding").WithHint("send the body uncompressed, without this header")
	}
	return nil
}

// unsupported returns the error for a body with an unsupported encoding or
// format. The header argument is the name of the header field that declares the
// encoding or format.
func (q *request) unsupported(header string) *errs.Error {
	value := strings.Join(q.r.Header.Values(header), ", ")
	return errs.New(errs.UnsupportedMedia, "%s %s is not supported", header, schema.Shorten(value))
}

// readText reads a body. The reader that is passed as body limits the length.
// Memory for the announced length is reserved already, and is allocated at once: a
// buffer that grows leaves several times the length as garbage.
func readText(body io.Reader, announced int64) (string, error) {
	var b strings.Builder
	b.Grow(int(max(announced, 0)))
	if _, err := io.Copy(&b, body); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return "", errs.Wrap(err, errs.TooLarge, "the body is too large")
		}
		if errs.KindOf(err) == errs.Unavailable {
			return "", err
		}
		if broken, ok := errors.AsType[*http1.Error](err); ok {
			return "", brokenBody(broken)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "", errs.Wrap(err, errs.RequestTimeout, "the body did not arrive in time")
		}
		return "", errs.Wrap(err, errs.Malformed, "the body is incomplete")
	}
	return b.String(), nil
}

// brokenBody returns the error for a body with malformed chunks.
func brokenBody(e *http1.Error) error {
	if e.Status == http.StatusRequestEntityTooLarge {
		return errs.New(errs.TooLarge, "the body is too large")
	}
	return errs.New(errs.Malformed, "the body can't be decoded: %s", e.Reason)
}

// syntaxError returns the error for a body that could not be parsed. If err has
// no position in the body, it is the error of the request's context.
func syntaxError(format string, err error) error {
	e, ok := errors.AsType[*schema.SyntaxError](err)
	switch {
	case !ok:
		return cancelled(err)
	case e.TooLarge:
		return errs.New(errs.TooLarge, "the body: %v", e).WithSource("#").WithHint("%s", e.Hint)
	}
	return errs.New(errs.Malformed, "the body is not %s: %v", format, e).WithSource("#").WithHint("%s", e.Hint)
}
