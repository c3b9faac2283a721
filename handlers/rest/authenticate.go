package rest

import (
	"context"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// Authenticate verifies the credential of the request, that its user exists, and
// that the token and the listener permit the operation. The token of a portal does
// not act for administrators.
// Only the request line and the Accept header are checked earlier, and what may
// show that a page of another site has caused the request. A client without a
// valid credential must not make the gateway read a body, and learns only that
// its credential was refused. Until it is verified, what the daemons do for it
// counts for the client's source.
func (c *Call) Authenticate() error {
	if err := checkURLToken(c.r.URL); err != nil {
		return err
	}
	client, err := auth.FromRequest(c.r, c.server.Auth)
	if err != nil {
		return err
	}
	peer, _ := auth.PeerFrom(c.ctx)
	c.cred = model.Credential{Token: client.Token, ActAs: client.ActAs, Expires: client.Claims.Expires, Holder: "from " + peer.Source()}
	if c.cred.Gateway = client.Claims.Gateway; c.cred.Gateway && c.neededScope().ReadsOnly() && !(c.route != nil && c.route.Changing()) {
		c.endWithToken(client.Token, client.ActAs)
	}
	daemon, verify := c.daemon()
	if err := c.server.Authenticator.Authenticate(c.ctx, client, daemon, func(ctx context.Context, actAs string) error {
		unverified := c.cred
		unverified.ActAs = actAs
		return verify(ctx, unverified)
	}); err != nil {
		c.claimedUser = client.User()
		return err
	}
	c.client, c.cred.Holder = client, client.User()
	c.r = c.r.WithContext(semaphore.WithKey(c.r.Context(), c.cred.Holder))
	c.ctx = c.r.Context()
	if err := c.server.Worker.Admit(c.ctx, client.User()); err != nil {
		c.reason = err.Error()
		return err
	}
	if err := c.checkScope(); err != nil {
		return err
	}
	if check := c.server.service.CheckMember; check != nil && client.Claims.ActFor != "" {
		return check(c.ctx, c.cred, client.ActAs)
	}
	return nil
}

// daemon returns the name of the daemon that serves the request, and the
// function with which this daemon verifies a credential.
func (q *request) daemon() (name string, verify func(context.Context, model.Credential) error) {
	if q.route != nil && q.route.Accounting {
		return "accounting", q.server.service.Accounting.Verify
	}
	return "controller", q.server.service.Controller.Verify
}

// forgetIfRefused returns err, the result of the request. If the daemon has
// refused the credential, forgetIfRefused removes the cached verification. A
// daemon may refuse a credential that it has verified before, for example
// because the daemon's key was replaced.
func (q *request) forgetIfRefused(err error) error {
	if errs.KindOf(err) == errs.Unauthenticated {
		daemon, _ := q.daemon()
		q.server.Authenticator.Forget(q.client, daemon)
		q.excuseRevoked()
		if !q.client.Local {
			q.client = auth.Credential{}
		}
	}
	return err
}
