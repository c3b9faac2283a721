package rest

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"schedrestd/api/schema"
	"schedrestd/auth"
)

// Access is the log line of a request. It has the same fields for every
// request, even if the request could not be parsed.
type Access struct {
	ID           string
	FromProxy    bool // whether ID comes from a trusted proxy
	Peer         auth.Peer
	User         string // user of the verified credential; "" for none
	Token        string // id of the gateway token; "" for none
	ClaimedUser  string // unverified user that a rejected credential names; "" for none
	Method, Path string // as the client sent them; "" if they could not be read
	Route        string // "" for none
	Status       int
	Bytes        int
	Duration     time.Duration
	Reason       string // why the request was refused or could not be parsed; "" otherwise
}

// log writes the line. The line contains neither the headers nor the query,
// because both may contain a token. The attribute "user" names a user only if
// the credential was verified. Otherwise, a client with a forged token could
// make a line appear under another user's name.
func (a Access) log(ctx context.Context, log *slog.Logger, level slog.Level) {
	if a.Route == "" {
		a.Route = "none"
	}
	attrs := append(make([]slog.Attr, 0, 14),
		slog.String("id", a.ID), slog.String("peer", a.Peer.String()), slog.String("user", a.User),
		slog.String("method", schema.Shorten(Redact(a.Method))), slog.String("path", schema.Shorten(Redact(a.Path))),
		slog.String("route", a.Route),
		slog.Int("status", a.Status), slog.Int("bytes", a.Bytes), slog.Duration("took", a.Duration))
	if a.Token != "" {
		attrs = append(attrs, slog.String("gateway_token", a.Token))
	}
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
func (c *Call) logAccess() {
	a := Access{ID: c.id, FromProxy: c.fromProxy, User: c.client.User(), Token: c.client.Claims.ID, ClaimedUser: c.claimedUser,
		Method: c.r.Method, Path: c.r.URL.Path, Status: c.w.status, Bytes: c.w.bytes,
		Duration: time.Since(c.startedAt), Reason: c.reason}
	a.Peer, _ = auth.PeerFrom(c.ctx)
	level := slog.LevelInfo
	switch {
	case c.route != nil:
		a.Route = c.route.ID
	case c.page != nil:
		if a.Route = c.page.ID; c.page.Quiet {
			level = slog.LevelDebug // load balancers send this request every second
		}
	}
	if c.mayLog(a.Status) {
		a.log(c.ctx, c.server.Log, level)
	}
	c.observe(a, c.idle)
}

// source returns the user of the verified credential, or otherwise the client's
// address without its port. A user who acts as others is one source.
func (q *request) source() string {
	if user := q.client.User(); user != "" {
		return cmp.Or(q.client.Claims.User, user)
	}
	peer, _ := auth.PeerFrom(q.r.Context())
	return peer.Source()
}

// observe reports the request to the worker. The request has waited for changes,
// or followed them, for the time idle.
func (q *request) observe(a Access, idle time.Duration) {
	o := Observation{Method: a.Method, Status: a.Status, Duration: a.Duration - idle}
	switch {
	case q.route != nil:
		o.Endpoint, o.Version = q.route.Endpoint, q.view.Version
	case q.page != nil:
		o.Page = q.page.ID
	}
	q.server.Worker.Observe(o)
}

// logFailure logs the complete error with the request's id. Clients never see
// this text.
func (q *request) logFailure(err error) {
	if closed := q.r.Context().Err() != nil; !closed && q.mayLog(Status(err)) {
		q.server.Log.LogAttrs(q.r.Context(), slog.LevelWarn, "request failed", slog.String("id", q.id), slog.String("error", Redact(err.Error())))
	}
}
