// Package rest is a client for slurmrestd and schedrestd. It supports version
// v0.0.42 of the API and later versions.
//
// Dial selects the newest version that both client and server support, unless
// the URL names a version. The client decodes lists one element at a time, so
// it needs little memory even for long answers. It does not follow redirects,
// because the target of a redirect would receive the token.
//
// If the server is on the client's machine, another user of this machine could
// have opened the server's port. Without https, the client therefore sends its
// token to such a server only if the server runs as root, a system user, the
// user of this process or a configured user (serveruser.go). Servers with https
// and servers on other machines always receive the token.
//
// Names and texts in answers come from other users. They must be printed with
// printable.Text.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"schedrestd/internal/errs"
)

// Limits on the time until an answer begins, unless the configuration sets
// another limit.
const (
	DefaultTimeout    = time.Minute
	accountingTimeout = 15*time.Minute + 10*time.Second // for accounting records; the gateway waits 15 minutes for slurmdbd
)

// Config configures a Client.
type Config struct {
	URL         string        // http://HOST:PORT, https://HOST or unix:/PATH; with Direct: the name of the cluster's configuration
	Direct      DialFunc      // connects to a server in this process, instead of to the URL; nil for none
	Token       string        // empty to send none
	CACert      string        // file of CA certificates to verify the server with; empty for the system's CAs
	Timeout     time.Duration // 0 for DefaultTimeout and accountingTimeout
	ServerUsers []uint32      // users who may receive the token, in addition to root, system users and the user of this process
	UserAgent   string
	Log         func(format string, args ...any) // receives lines about requests and answers, with texts of the server; nil for none
}

// A DialFunc opens a connection to a server.
type DialFunc func(context.Context) (net.Conn, error)

// A Client sends requests to one server, in one version of the API.
type Client struct {
	addr     *address
	http     *http.Client
	config   Config
	spelling string // "slurm" or "sched"
	version  string // "v0.0.44"

	wholeLists atomic.Bool  // the server has refused a request for a part of a list
	scopes     atomic.Value // []string: the header with the scopes in the last answer
}

// Dial creates a Client. Unless the URL names a version of the API, Dial
// determines the newest version that the server and this client support.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	addr, err := directAddress(cfg.URL), error(nil)
	if cfg.Direct == nil {
		addr, err = parseURL(cfg.URL)
	}
	if err != nil {
		return nil, err
	}
	c := &Client{addr: addr, config: cfg, spelling: addr.spelling, version: addr.version}
	if c.http, err = newHTTPClient(cfg, addr); err != nil {
		return nil, err
	}
	if c.version == "" {
		err = c.negotiate(ctx)
	}
	return c, err
}

// Version returns the version of the API in use, such as "v0.0.44".
func (c *Client) Version() string { return c.version }

// Server returns the kind and the address of the server, for people.
func (c *Client) Server() string { return c.addr.String() }

// IsDirect reports whether the client sends its requests to the daemons of a
// cluster, without a gateway.
func (c *Client) IsDirect() bool { return c.addr.direct }

// Permits reports whether the last answer permits a scope, such as
// compute.cancel. Only schedrestd names scopes, to clients that lack some.
func (c *Client) Permits(scope string) bool {
	header, _ := c.scopes.Load().([]string)
	return header == nil || slices.Contains(strings.Split(strings.Join(header, ", "), ", "), scope)
}

// log writes a line about a request for the user.
func (c *Client) log(format string, args ...any) {
	if c.config.Log != nil {
		c.config.Log(format, args...)
	}
}

// path returns the path of an operation. The plugin argument is the first part
// of the path, such as slurm or slurmdb.
func (c *Client) path(plugin, operation string) string {
	return "/" + plugin + "/" + c.version + "/" + operation
}

// do sends a request. It returns an error unless the status of the answer is
// from 200 to 299, or 304.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body any,
	header http.Header) (*http.Response, error) {
	resp, err := c.send(ctx, method, path, query, body, header)
	if err != nil {
		return nil, err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusNotModified || code >= 200 && code < 300:
		return resp, nil
	case code >= 300 && code < 400:
		resp.Body.Close()
		return nil, errs.New(errs.BadAnswer, "%s redirects to %s", c.addr, shorten(resp.Header.Get("Location"))).
			WithHint("redirects are not followed; give the final address with --url")
	}
	defer resp.Body.Close()
	return nil, withRetryAfter(c.responseError(resp), resp.Header)
}

// send sends a request. It returns the answer even if the status of the answer
// indicates an error.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any,
	header http.Header) (*http.Response, error) {
	if len(query) > 0 {
		// RFC 3986 permits commas in a query. Escaped ones are harder to read,
		// and slurmrestd does not decode them in some parameters.
		path += "?" + strings.ReplaceAll(query.Encode(), "%2C", ",")
	}
	limit := cmp.Or(c.config.Timeout, DefaultTimeout)
	if service, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); c.config.Timeout == 0 && strings.HasSuffix(service, "db") {
		limit = accountingTimeout
	}
	note := ""
	switch {
	case header.Get("Prefer") == preferWait:
		limit += maxWait
		note = " (Prefer: " + preferWait + ")"
	case header.Get("Accept") == mediaEvents:
		note = " (Accept: " + mediaEvents + ")"
	}
	c.log("request: %s %s%s", method, path, note)
	ctx, timer, cancel := withAnswerTimeout(ctx, limit)
	req, err := c.newRequest(ctx, method, c.addr.base+path, body, header)
	if err != nil {
		timer.Stop()
		return nil, err
	}
	resp, err := c.http.Do(req)
	timer.Stop()
	if err != nil {
		return nil, c.unreachable(ctx, err, limit)
	}
	c.log("answer: %s", resp.Status)
	c.scopes.Store(resp.Header.Values("X-OAuth-Scopes"))
	if header.Get("Accept") != mediaEvents { // a stream has no end, and its reader limits the pauses
		body := newTimedBody(ctx, cancel, resp.Body)
		if header.Get("Accept") == mediaText { // a file of any length, of which nothing is kept
			body.limit = math.MaxInt64
		}
		resp.Body = body
	}
	return resp, nil
}

// newRequest returns a request with its headers. The body is nil or an object for JSON.
func (c *Client) newRequest(ctx context.Context, method, target string, body any, header http.Header) (*http.Request, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(data))
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "request %s", shorten(target))
	}
	req.Header.Set("Accept", "application/json")
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.config.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if header.Get("Idempotency-Key") != "" {
		req.GetBody = nil // with it, net/http may repeat the request, although slurmrestd ignores the key
	}
	if c.config.Token != "" {
		req.Header.Set("X-SLURM-USER-TOKEN", c.config.Token)
	}
	return req, nil
}

// errTooSlow is the cancellation cause of a request whose answer does not begin
// in time.
var errTooSlow = errors.New("no answer in time")

// withAnswerTimeout returns a context that is cancelled after the duration d,
// unless the timer is stopped first.
func withAnswerTimeout(ctx context.Context, d time.Duration) (context.Context, *time.Timer, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, time.AfterFunc(d, func() { cancel(errTooSlow) }), cancel
}

// maxTransfer is how long the client waits for all pieces of an answer together.
// With 10 Mbit/s, a list of maxList bytes takes less.
var maxTransfer = time.Hour

var (
	errStalled = errors.New("the server has stopped sending")
	errEndless = errors.New("the answer has no end")
)

// A timedBody is the body of an answer. A Read fails if the server sends nothing
// for maxIdle, or if all Reads together have taken the limit. The time between
// Reads does not count, because standard output may be a pager.
type timedBody struct {
	io.ReadCloser
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	timer  *time.Timer // cancels the request
	spent  time.Duration
	limit  time.Duration // for all Reads together
}

func newTimedBody(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) *timedBody {
	b := &timedBody{ReadCloser: body, ctx: ctx, cancel: cancel, limit: maxTransfer, timer: time.AfterFunc(maxIdle, func() { cancel(errStalled) })}
	b.timer.Stop()
	return b
}

func (b *timedBody) Read(p []byte) (int, error) {
	begun := time.Now()
	b.timer.Reset(min(maxIdle, b.limit-b.spent))
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.spent += time.Since(begun)
	switch {
	case err == nil || err == io.EOF || context.Cause(b.ctx) != errStalled:
	case b.spent >= b.limit:
		err = errEndless
	default:
		err = errStalled
	}
	return n, err
}

func (b *timedBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
