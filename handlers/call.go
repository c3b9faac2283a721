package handlers

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// call is the state of one request.
type call struct {
	h         *handler
	w         *response
	r         *http.Request
	ctx       context.Context
	id        string // id of the request, for the client and the log
	fromProxy bool   // whether id comes from a trusted proxy, which may use an id repeatedly
	startedAt time.Time
	memory    bodyMemory // memory of the body
	keepAlive bool       // whether the connection may stay open once the body has been read
	reason    string     // why the request is refused; "" if it is not

	match
	media       string           // media type of the answer
	coding      chosenCoding     // content coding of the answer
	client      auth.Credential  // verified credential; zero if it is invalid or not verified yet
	claimedUser string           // user that a rejected credential names; for the log
	cred        model.Credential // the credential for a daemon
	warnings    []api.Warning
	fields      []string // names of the fields that the body sets, for the audit log
	key         string   // the Idempotency-Key; "" for none
	requestHash [32]byte // hash of a request that has an Idempotency-Key
}

// ServeHTTP processes a request step by step.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := h.newCall(w, r)
	defer c.memory.release()
	defer c.logAccess()
	defer c.recover()
	c.closeUnlessRead()
	c.match = h.router.find(r)
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (h *handler) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := &call{h: h, w: &response{ResponseWriter: w}, r: r, ctx: r.Context(), id: rand.Text(), startedAt: time.Now(),
		media: mediaJSON}
	c.memory.call = c
	if peer, _ := auth.PeerFrom(c.ctx); peer.RequestID != "" && redact(peer.RequestID) == peer.RequestID {
		c.id, c.fromProxy = peer.RequestID, true
	}
	w.Header().Set("X-Request-Id", c.id)
	return c
}

// ErrorHandler returns a function that answers a request with an error. The
// answer has the negotiated format and contains the usual envelope. The request
// is logged like any other.
func ErrorHandler(cfg Config) func(http.ResponseWriter, *http.Request, error) {
	h := newHandler(cfg)
	return func(w http.ResponseWriter, r *http.Request, err error) {
		c := h.newCall(w, r)
		c.reason = err.Error()
		defer c.logAccess()
		defer c.recover()
		c.closeUnlessRead()
		c.match = h.router.find(r)
		_ = c.negotiate(bodyMedia) // if the client accepts none of these types, the answer is JSON
		c.sendError(err, status(err))
	}
}

func (c *call) serve() error {
	if c.allow != nil && c.r.Method == http.MethodOptions {
		c.setAllow()
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if len(c.r.RequestURI) > maxURI || len(c.r.URL.Path)+len(c.r.URL.RawQuery) > maxURI {
		c.err = errs.New(errs.URITooLong, "the request's path and query are too long").
			WithHint("at most %d bytes are accepted", maxURI)
	}
	if c.page != nil {
		return c.servePage()
	}
	err := c.negotiate(bodyMedia)
	if c.err != nil {
		return c.err
	}
	if err != nil {
		return err
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	do, err := c.route.prepare(c)
	if err != nil {
		return err
	}
	return c.answerNotFound(c.forgetIfRefused(do()))
}

// authenticate verifies the credential of the request. Only the request line
// and the Accept header are checked earlier. A client without a valid
// credential must not make the gateway read a body, and learns only that its
// credential was refused.
func (c *call) authenticate() error {
	if err := checkURLToken(c.r.URL); err != nil {
		return err
	}
	client, err := auth.FromRequest(c.r, c.h.Auth)
	if err != nil {
		return err
	}
	c.cred = model.Credential{Token: client.Token, ActAs: client.ActAs, Expires: client.Claims.Expires}
	daemon, verify := c.daemon()
	if err := c.h.Authenticator.Authenticate(c.ctx, client, daemon, func(ctx context.Context) error { return verify(ctx, c.cred) }); err != nil {
		c.claimedUser = client.User()
		return err
	}
	c.client = client
	if h := c.h; h.Admit != nil {
		if err := h.Admit(c.ctx, client.User()); err != nil {
			c.reason = err.Error()
			return err
		}
	}
	return nil
}

// daemon returns the name of the daemon that serves the request, and the
// function with which this daemon verifies a credential.
func (c *call) daemon() (name string, verify func(context.Context, model.Credential) error) {
	if c.route != nil && c.route.Accounting {
		return "accounting", c.h.Accounting.Verify
	}
	return "controller", c.h.Controller.Verify
}

// forgetIfRefused returns err, the result of the request. If the daemon has
// refused the credential, forgetIfRefused removes the cached verification. A
// daemon may refuse a credential that it has verified before, for example
// because the daemon's key was replaced.
func (c *call) forgetIfRefused(err error) error {
	if errs.KindOf(err) == errs.Unauthenticated {
		daemon, _ := c.daemon()
		c.h.Authenticator.Forget(c.client, daemon)
		if !c.client.Local {
			c.client = auth.Credential{}
		}
	}
	return err
}

// lenient reports whether the exception applies to the request: the request is
// in Slurm's spelling, and the exception is about the operation.
func (c *call) lenient(l *api.Leniency) bool {
	return c.view.Spelling == schema.Slurm && c.route != nil && l.Covers(c.route.Endpoint)
}

// envelope returns the envelope of the answer.
func (c *call) envelope() api.Envelope {
	for i, w := range c.warnings {
		c.warnings[i].Description, c.warnings[i].Source = redact(w.Description), redact(w.Source)
	}
	return api.Envelope{Meta: c.meta(), Warnings: c.warnings}
}

func (c *call) meta() api.Meta {
	m := api.Meta{
		Version: c.view.Version.String(),
		Storage: c.h.Accounting != nil,
		Release: c.h.Release,
		Cluster: c.h.Cluster,
	}
	if c.route != nil {
		m.Accounting, m.Util = c.route.Accounting, c.route.Util
	}
	if c.view.Spelling == schema.Slurm && c.client.User() != "" { // only for authenticated clients
		m.Controller = c.h.Controller.Release(c.ctx, c.cred)
	}
	if peer, ok := auth.PeerFrom(c.ctx); ok {
		m.Source = peer.Addr
		if peer.Network == "unix" {
			m.Source = peer.Listener // the peer of a UNIX socket has no address
		}
	}
	if m.User = c.asUser(); c.client.Local {
		m.User, m.Group = c.h.Users.User(c.client.UID), c.h.Users.Group(c.client.GID)
	}
	return m
}

// asUser returns the name of the user that the request acts as, or "" if the
// request has no token.
func (c *call) asUser() string {
	if c.client.ActAs != "" {
		return c.client.ActAs
	}
	return c.client.Claims.User
}
