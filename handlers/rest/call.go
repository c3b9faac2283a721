package rest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/feed"
	"schedrestd/model"
)

// A Call is one request with its answer. Only one goroutine may use it.
type Call struct {
	server    *Server
	w         *response
	r         *http.Request
	ctx       context.Context
	id        string // id of the request, for the client and the log
	fromProxy bool   // whether id comes from a trusted proxy, which may use an id repeatedly
	startedAt time.Time
	origin    string           // the allowed origin of the web page that sends the request; "" for none
	memory    feed.Reservation // of the body; nil before it is needed
	keepAlive bool             // whether the connection may stay open once the body has been read
	reason    string           // why the request is refused; "" if it is not

	match
	only        *schema.Selection // what the answer shows; nil for everything
	part        *part             // the page of the list; nil for the whole list
	follows     bool              // the client follows the changes of a list
	idle        time.Duration     // how long the request has waited for changes, or followed them
	waiting     *waiting          // how the request waits for a change; nil if it does not
	out         *sink             // the answer that is being rendered
	selective   bool              // whether the query has parameters beside those for fields and pages
	media       string            // media type of the answer
	coding      chosenCoding      // content coding of the answer
	client      auth.Credential   // verified credential; zero if it is invalid or not verified yet
	claimedUser string            // user that a rejected credential names; for the log
	cred        model.Credential  // the credential for a daemon
	warnings    []api.Warning
	fields      []string // names of the fields that the body sets
	key         string   // the Idempotency-Key; "" for none
	checksTags  bool     // the change itself compares the entity tags in If-Match
	requestHash [32]byte // hash of a request that has an Idempotency-Key
}

func (s *Server) newCall(w http.ResponseWriter, r *http.Request) *Call {
	c := &Call{server: s, w: &response{ResponseWriter: w}, r: r, ctx: r.Context(), id: rand.Text(), startedAt: time.Now(),
		media: MediaJSON}
	if peer, _ := auth.PeerFrom(c.ctx); peer.RequestID != "" && Redact(peer.RequestID) == peer.RequestID {
		c.id, c.fromProxy = peer.RequestID, true
	}
	w.Header().Set("X-Request-Id", c.id)
	return c
}

// Context returns the context of the request.
func (c *Call) Context() context.Context { return c.ctx }

// Request returns the request. Only ReadBody may read its body.
func (c *Call) Request() *http.Request { return c.r }

// Client returns the verified credential of the client. It is zero before
// Authenticate.
func (c *Call) Client() auth.Credential { return c.client }

// Credential returns the credential for requests to a daemon.
func (c *Call) Credential() model.Credential { return c.cred }

// Param returns the value of a parameter in the path.
func (c *Call) Param(name string) string { return c.params[name] }

// Selective reports whether the query has parameters that may select records.
// Those that select fields or a page don't count.
func (c *Call) Selective() bool { return c.selective }

// View returns the version and spelling of the answer.
func (c *Call) View() schema.View { return c.view }

// Fields returns the names of the fields that the body sets, such as
// "job/time_limit".
func (c *Call) Fields() []string { return c.fields }

// Started returns the time at which the request arrived.
func (c *Call) Started() time.Time { return c.startedAt }

// NumWarnings returns the number of warnings so far.
func (c *Call) NumWarnings() int { return len(c.warnings) }

// KeepWarnings discards all but the first n warnings.
func (c *Call) KeepWarnings(n int) { c.warnings = c.warnings[:n] }

// Lenient reports whether the exception applies to the request: the request is
// in Slurm's spelling, and the exception is about the operation.
func (c *Call) Lenient(l *api.Leniency) bool {
	return c.view.Spelling == schema.Slurm && c.route != nil && l.Covers(c.route.Endpoint)
}

// Envelope returns the envelope of the answer.
func (c *Call) Envelope() api.Envelope {
	for i, w := range c.warnings {
		c.warnings[i].Description, c.warnings[i].Source = Redact(w.Description), Redact(w.Source)
	}
	return api.Envelope{Meta: c.meta(), Warnings: c.warnings}
}

func (c *Call) meta() api.Meta {
	m := api.Meta{
		Version: c.view.Version.String(),
		Storage: c.server.service.Accounting != nil,
		Release: c.server.Release,
		Cluster: c.server.Cluster,
	}
	if c.route != nil {
		m.Accounting, m.Util = c.route.Accounting, c.route.Util
	}
	if c.view.Spelling == schema.Slurm && c.client.User() != "" { // only for authenticated clients
		m.Controller = c.server.service.Controller.Release(c.ctx, c.cred)
	}
	if peer, ok := auth.PeerFrom(c.ctx); ok {
		m.Source = peer.Addr
		if peer.Network == "unix" {
			m.Source = peer.Listener // the peer of a UNIX socket has no address
		}
	}
	if m.User = c.User(); c.client.Local {
		m.User, m.Group = c.server.Users.User(c.client.UID), c.server.Users.Group(c.client.GID)
	}
	return m
}

// User returns the name of the user that the request acts as, or "" if the
// request has no token.
func (c *Call) User() string {
	if c.client.ActAs != "" {
		return c.client.ActAs
	}
	return c.client.Claims.User
}

// Warn adds a warning about a place in the request.
func (c *Call) Warn(source, format string, args ...any) {
	c.warnings = append(c.warnings, api.Warning{Description: fmt.Sprintf(format, args...), Source: source})
}
