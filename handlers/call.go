package handlers

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/errs"
	"schedrestd/model"
)

// call is the state of one request.
type call struct {
	h       *handler
	w       *response
	r       *http.Request
	ctx     context.Context
	id      string // id of the request, for the client and the log
	foreign bool   // id comes from a trusted proxy, so it may not be unique
	begun   time.Time
	memory  share  // memory of the body
	stays   bool   // the connection stays open after the body was read
	why     string // why the request is refused; "" if it is not

	match
	media    string           // media type of the answer
	coding   chosenCoding     // content coding of the answer
	who      auth.Credential  // verified credential; zero if it is invalid or not verified yet
	claimed  string           // user that a rejected credential names; for the log
	cred     model.Credential // the credential for a daemon
	warnings []api.Warning
	fields   []string // names of the fields that the body sets, for the audit log
	key      string   // the Idempotency-Key; "" for none
	sum      [32]byte // hash of a request that has a key
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
	c := &call{h: h, w: &response{ResponseWriter: w}, r: r, ctx: r.Context(), id: rand.Text(), begun: time.Now(), media: mediaJSON}
	c.memory.call = c
	if peer, _ := auth.PeerFrom(c.ctx); peer.RequestID != "" && conceal(peer.RequestID) == peer.RequestID {
		c.id, c.foreign = peer.RequestID, true
	}
	w.Header().Set("X-Request-Id", c.id)
	return c
}

// Refusing returns a function that answers a request with an error. Content
// negotiation, envelope and log line are as for other answers.
func Refusing(cfg Config) func(http.ResponseWriter, *http.Request, error) {
	h := newHandler(cfg)
	return func(w http.ResponseWriter, r *http.Request, err error) {
		c := h.newCall(w, r)
		c.why = err.Error()
		defer c.logAccess()
		defer c.recover()
		c.closeUnlessRead()
		c.match = h.router.find(r)
		_ = c.negotiate(bodyMedia) // if the client accepts none of these types, the answer is JSON
		c.tell(err, status(err))
	}
}

func (c *call) serve() error {
	if c.allow != nil && c.r.Method == http.MethodOptions {
		c.setAllow()
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if len(c.r.RequestURI) > maxURI || len(c.r.URL.Path)+len(c.r.URL.RawQuery) > maxURI {
		c.err = errs.New(errs.URITooLong, "the request's path and query are too long").WithHint("at most %d bytes are accepted", maxURI)
	}
	if c.page != nil {
		return c.servePage()
	}
	refused := c.negotiate(bodyMedia)
	if c.err != nil {
		return c.err
	}
	if refused != nil {
		return refused
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	do, refused := c.route.prepare(c)
	if refused != nil {
		return refused
	}
	return c.missing(c.judged(do()))
}

// authenticate verifies the credential of the request. It is called before
// anything else: a client without a valid credential must not make the gateway
// read a body, and learns only that its credential was refused.
func (c *call) authenticate() error {
	if err := stray(c.r.URL); err != nil {
		return err
	}
	who, err := auth.FromRequest(c.r, c.h.Auth)
	if err != nil {
		return err
	}
	c.cred = model.Credential{Token: who.Token, ActAs: who.ActAs, Expires: who.Claims.Expires}
	daemon, ask := c.daemon()
	if err := c.h.Judge.Authenticate(c.ctx, who, daemon, func(ctx context.Context) error { return ask(ctx, c.cred) }); err != nil {
		c.claimed = who.User()
		return err
	}
	c.who = who
	if h := c.h; h.Admit != nil {
		if err := h.Admit(c.ctx, who.User()); err != nil {
			c.why = err.Error()
			return err
		}
	}
	return nil
}

// daemon returns the name of the daemon that serves the request, and a function
// that asks it to verify a credential.
func (c *call) daemon() (name string, ask func(context.Context, model.Credential) error) {
	if c.route != nil && c.route.Accounting {
		return "accounting", c.h.Accounting.Verify
	}
	return "controller", c.h.Controller.Verify
}

// judged returns err, the result of the request. If a daemon has refused a
// credential that was verified before, for example because of a new key, judged
// removes the cached verification.
func (c *call) judged(err error) error {
	if errs.KindOf(err) == errs.Unauthenticated {
		daemon, _ := c.daemon()
		c.h.Judge.Forget(c.who, daemon)
		if !c.who.Local {
			c.who = auth.Credential{}
		}
	}
	return err
}

// envelope returns the envelope of the answer.
func (c *call) envelope() api.Envelope {
	for i, w := range c.warnings {
		c.warnings[i].Description, c.warnings[i].Source = conceal(w.Description), conceal(w.Source)
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
	if c.view.Names == schema.Slurm && c.who.User() != "" { // only for authenticated clients
		m.Controller = c.h.Controller.Release(c.ctx, c.cred)
	}
	if peer, ok := auth.PeerFrom(c.ctx); ok {
		m.Source = peer.Addr
		if peer.Network == "unix" {
			m.Source = peer.Listener // the peer of a UNIX socket has no address
		}
	}
	if m.User = c.asUser(); c.who.Local {
		m.User, m.Group = c.h.Users.User(c.who.UID), c.h.Users.Group(c.who.GID)
	}
	return m
}

// asUser returns the user that the request acts as. It returns "" for a request
// without a token.
func (c *call) asUser() string {
	if c.who.ActAs != "" {
		return c.who.ActAs
	}
	return c.who.Claims.User
}
