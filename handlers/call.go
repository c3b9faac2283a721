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

// call is one request on its way through.
type call struct {
	h     *handler
	w     *response
	r     *http.Request
	ctx   context.Context
	id    string // of the request, for the client and the log
	begun time.Time
	room  share  // for the body
	stays bool   // the connection, once the body was read
	why   string // it is not let in; "" when it is

	match
	media    string           // what the answer is written as
	coding   chosenCoding     // how it travels
	who      auth.Credential  // who asks; nobody until his credential is known to be good, and when it is not
	claimed  string           // the user that a rejected credential names; for the log
	cred     model.Credential // the credential for a daemon
	warnings []api.Warning
}

// ServeHTTP is the whole way of a request, step by step.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := h.newCall(w, r)
	defer c.room.release()
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
	c.room.call = c
	w.Header().Set("X-Request-Id", c.id)
	return c
}

// Refusing makes a function that answers a request with an error: by the same negotiation, in the
// same envelope and with the same line in the log as any other, which gets the error too.
func Refusing(cfg Config) func(http.ResponseWriter, *http.Request, error) {
	h := newHandler(cfg)
	return func(w http.ResponseWriter, r *http.Request, err error) {
		c := h.newCall(w, r)
		c.why = err.Error()
		defer c.logAccess()
		defer c.recover()
		c.closeUnlessRead()
		c.match = h.router.find(r)
		_ = c.negotiate(bodyMedia) // what is refused to one who takes none of them is JSON
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
		c.err = errs.New(errs.URITooLong, "the request's path and query are too long").WithHint("%d bytes are taken", maxURI)
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

// authenticate finds out who asks, and that he is who he says. Nothing is done before that:
// nobody unknown makes us read a body, and only a good credential is told anything else than that
// it is not.
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
	if err := c.h.Judge.Genuine(c.ctx, who, daemon, func(ctx context.Context) error { return ask(ctx, c.cred) }); err != nil {
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

// daemon is who will serve the request, by name, and how he is asked whether a credential is genuine.
func (c *call) daemon() (name string, ask func(context.Context, model.Credential) error) {
	if c.route != nil && c.route.Accounting {
		return "accounting", c.h.Accounting.Vouch
	}
	return "controller", c.h.Controller.Vouch
}

// judged passes on what became of the request. A daemon that refuses the credential after all, as
// one whose key was changed does, is believed from then on.
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

// envelope is what surrounds every answer.
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
	if c.view.Names == schema.Slurm && c.who.User() != "" { // strangers are not told
		m.Controller = c.h.Controller.Release(c.ctx, c.cred)
	}
	if peer, ok := auth.PeerFrom(c.ctx); ok {
		m.Source = peer.Addr
		if peer.Network == "unix" {
			m.Source = peer.Listener // "unix:/path"; the peer itself has no address
		}
	}
	if m.User = c.asUser(); c.who.Local {
		m.User, m.Group = c.h.Users.User(c.who.UID), c.h.Users.Group(c.who.GID)
	}
	return m
}

// asUser returns the name that the request's token stands for; "" when there is
// no token.
func (c *call) asUser() string {
	if c.who.ActAs != "" {
		return c.who.ActAs
	}
	return c.who.Claims.User
}
