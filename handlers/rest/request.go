package rest

import (
	"context"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/feed"
	"schedrestd/model"
)

// A request is what a client asks. Its fields are set while it is parsed, which
// ends when the operation has read the body, and only read afterwards. Only the
// credential is removed if a daemon refuses it later (forgetIfRefused).
type request struct {
	server    *Server
	r         *http.Request
	id        string // for the client and the log
	fromProxy bool   // whether id comes from a trusted proxy, which may use an id repeatedly
	startedAt time.Time
	origin    string // the allowed origin of the web page that sends the request; "" for none

	match
	client auth.Credential  // verified credential; zero if it is invalid or not verified yet
	cred   model.Credential // the credential for a daemon

	follows   bool              // the client follows the changes of a list
	table     bool              // the client wants the records as CSV
	only      *schema.Selection // what the answer shows; nil for everything
	part      *part             // the page of the list; nil for the whole list
	waits     *waitParams       // for what the request waits; nil if it does not wait
	selective bool              // whether the query has parameters beside those for fields and pages

	key         string           // the Idempotency-Key; "" for none
	requestHash [32]byte         // of a request that has an Idempotency-Key
	checksTags  bool             // the change itself compares the entity tags in If-Match
	memory      feed.Reservation // of the body; nil before it is needed
	fields      []string         // names of the fields that the body sets
}

// Request returns the request. Only ReadBody may read its body.
func (q *request) Request() *http.Request { return q.r }

// Client returns the verified credential of the client. It is zero before
// Authenticate.
func (q *request) Client() auth.Credential { return q.client }

// Credential returns the credential for requests to a daemon.
func (q *request) Credential() model.Credential { return q.cred }

// User returns the name of the user that the request acts as, or "" if the
// request has no token.
func (q *request) User() string {
	if q.client.ActAs != "" {
		return q.client.ActAs
	}
	return q.client.Claims.User
}

// Param returns the value of a parameter in the path.
func (q *request) Param(name string) string { return q.params[name] }

// Selective reports whether the query has parameters that may select records.
// Those that select fields or a page don't count.
func (q *request) Selective() bool { return q.selective }

// View returns the version and spelling of the answer.
func (q *request) View() schema.View { return q.view }

// Fields returns the names of the fields that the body sets, such as
// "job/time_limit".
func (q *request) Fields() []string { return q.fields }

// Started returns the time at which the request arrived.
func (q *request) Started() time.Time { return q.startedAt }

// Lenient reports whether the exception applies to the request: the request is
// in Slurm's spelling, and the exception is about the operation.
func (q *request) Lenient(l *api.Leniency) bool {
	return q.view.Spelling == schema.Slurm && q.route != nil && l.Covers(q.route.Endpoint)
}

// meta returns the meta of an answer. The context is that of requests to the
// daemons.
func (q *request) meta(ctx context.Context) api.Meta {
	m := api.Meta{
		Version: q.view.Version.String(),
		Storage: q.server.service.Accounting != nil,
		Release: q.server.Release,
		Cluster: q.server.Cluster,
	}
	if q.route != nil {
		m.Accounting, m.Util = q.route.Accounting, q.route.Util
	}
	if q.view.Spelling == schema.Slurm && q.client.User() != "" { // only for authenticated clients
		m.Controller = q.server.service.Controller.Release(ctx, q.cred)
	}
	if peer, ok := auth.PeerFrom(q.r.Context()); ok {
		m.Source = peer.Addr
		if peer.Network == "unix" {
			m.Source = peer.Listener // the peer of a UNIX socket has no address
		}
	}
	if m.User = q.User(); q.client.Local {
		m.User, m.Group = q.server.Users.User(q.client.UID), q.server.Users.Group(q.client.GID)
	}
	return m
}
