package handlers

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/penalty"
	"schedrestd/internal/throttle"
)

// Access is the log line of a request. It has the same fields for every
// request, even if the request could not be parsed.
type Access struct {
	ID           string
	FromProxy    bool // whether ID comes from a trusted proxy
	Peer         auth.Peer
	User         string // user of the verified credential; "" for none
	ClaimedUser  string // unverified user that a rejected credential names; "" for none
	Method, Path string // as the client sent them; "" if they could not be read
	Route        string // "" for none
	Status       int
	Bytes        int
	Duration     time.Duration
	Reason       string // why the request was refused or could not be parsed; "" otherwise
}

// Log writes the line. The line contains neither the headers nor the query,
// because both may contain a token. The attribute "user" names a user only if
// the credential was verified. Otherwise, a client with a forged token could
// make a line appear under another user's name.
func (a Access) Log(ctx context.Context, log *slog.Logger, level slog.Level) {
	if a.Route == "" {
		a.Route = "none"
	}
	attrs := append(make([]slog.Attr, 0, 13),
		slog.String("id", a.ID), slog.String("peer", a.Peer.String()), slog.String("user", a.User),
		slog.String("method", schema.Shorten(redact(a.Method))), slog.String("path", schema.Shorten(redact(a.Path))),
		slog.String("route", a.Route),
		slog.Int("status", a.Status), slog.Int("bytes", a.Bytes), slog.Duration("took", a.Duration))
	if a.FromProxy {
		attrs = append(attrs, slog.String("id_from", "proxy"))
	}
	if a.Peer.Forwarded != "" {
		attrs = append(attrs, slog.String("forwarded_for", a.Peer.Forwarded))
	}
	if a.ClaimedUser != "" {
		attrs = append(attrs, slog.String("unverified_user", a.ClaimedUser))
	}
	if a.Reason != "" {
		attrs = append(attrs, slog.String("because", a.Reason))
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// logAccess writes the log line of c.
func (c *call) logAccess() {
	a := Access{ID: c.id, FromProxy: c.fromProxy, User: c.client.User(), ClaimedUser: c.claimedUser,
		Method: c.r.Method, Path: c.r.URL.Path, Status: c.w.status, Bytes: c.w.bytes,
		Duration: time.Since(c.startedAt), Reason: c.reason}
	a.Peer, _ = auth.PeerFrom(c.ctx)
	level := slog.LevelInfo
	switch {
	case c.route != nil:
		a.Route = c.route.ID
	case c.page != nil:
		if a.Route = c.page.id; c.page.quiet {
			level = slog.LevelDebug // load balancers send this request every second
		}
	}
	if c.h.Lines.allow(c.ctx, c.h.Log, c.source(), isRefused(a.Status)) {
		a.Log(c.ctx, c.h.Log, level)
	}
	c.observe(a)
}

// Lines limits the log lines about requests. A client can send thousands of
// requests a second, even without a token. Their lines could fill the disk, or
// make journald drop lines, which then include those of other clients. A nil
// Lines sets no limit.
type Lines struct {
	requests throttle.Throttle[string] // by the user or the client's address
	refusals throttle.Throttle[string] // lines about refused credentials, so that other lines don't suppress these
}

// The limits of each worker. By default journald drops lines of a service that
// logs more than 10,000 lines in 30 s. Two workers together stay below this
// limit, even if each line about omitted lines follows a line about a request.
var (
	requestLines = throttle.Limits{Each: 50, All: 60, Sources: 60, Period: time.Second}
	refusalLines = throttle.Limits{Each: 10, All: 20, Sources: 20, Period: time.Second}
)

// NewLines returns the limits for one worker. The lines about omitted lines are
// written to log.
func NewLines(log *slog.Logger) *Lines {
	l := new(Lines)
	for t, limits := range map[*throttle.Throttle[string]]throttle.Limits{&l.requests: requestLines, &l.refusals: refusalLines} {
		t.Limits = limits
		t.Report = func(source string, n int) {
			log.Warn("log lines left out", "lines", n, "period", limits.Period, "source", cmp.Or(source, "others"))
		}
	}
	return l
}

// allow reports whether a line about a request may be written. The argument
// refused is true if the credential was refused. If the level of the log is
// debug, all lines are written.
func (l *Lines) allow(ctx context.Context, log *slog.Logger, source string, refused bool) bool {
	if l == nil || log.Enabled(ctx, slog.LevelDebug) {
		return true
	}
	if refused {
		return l.refusals.Allow(source)
	}
	return l.requests.Allow(source)
}

// isRefused reports whether an answer with this status refuses the client's
// credential.
func isRefused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// source returns the user of the verified credential, or otherwise the client's
// address without its port. A user who acts as others is one source.
func (c *call) source() string {
	if user := c.client.User(); user != "" {
		return cmp.Or(c.client.Claims.User, user)
	}
	peer, _ := auth.PeerFrom(c.ctx)
	text := cmp.Or(peer.Forwarded, peer.String())
	if addr, err := netip.ParseAddrPort(text); err == nil {
		return penalty.ClientAddr(addr.Addr()).String()
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return penalty.ClientAddr(addr).String()
	}
	return text
}

// Observation describes a request and its answer for the metrics.
type Observation struct {
	Endpoint *api.Endpoint // nil for none
	Page     string        // id of a page outside the API; "" for none
	Version  schema.Version
	Method   string
	Status   int
	Duration time.Duration
}

func (c *call) observe(a Access) {
	if c.h.Observe == nil {
		return
	}
	o := Observation{Method: a.Method, Status: a.Status, Duration: a.Duration}
	switch {
	case c.route != nil:
		o.Endpoint, o.Version = c.route.Endpoint, c.view.Version
	case c.page != nil:
		o.Page = c.page.id
	}
	c.h.Observe(o)
}
