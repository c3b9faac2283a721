package rest

import (
	"context"
	"errors"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// What ends a request with a gateway token while it is in progress. It is the cause
// of the request's context.
var (
	errRevoked    = errs.Wrap(errors.New("the gateway token has been revoked"), errs.Unauthenticated, auth.Refused)
	errNotForUser = auth.NotActingFor("no longer a member of its group")
	errUndecided  = errs.New(errs.Unavailable, "gateway tokens can't be verified at present").WithHint("the administrator finds the reason in the gateway's log")
)

// endWithToken lets a request that only reads end when its gateway token is no
// longer accepted, or no longer acts for the user actAs. One that changes something has its answer, which says what was
// changed; what it asks the daemons for afterwards is refused. endWithToken must be
// called before the token is verified: a revocation in between would be missed.
func (c *Call) endWithToken(token, actAs string) {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	c.unwatch = c.server.Worker.WatchToken(token, actAs, func(why auth.Answer) {
		switch why {
		case auth.Revoked:
			cancel(errRevoked)
		case auth.NotForUser:
			cancel(errNotForUser)
		default:
			cancel(errUndecided)
		}
	})
	c.r = c.r.WithContext(ctx)
	c.ctx, c.w.stopped = ctx, c.tokenEnd
}

// endTokenWatch undoes endWithToken.
func (c *Call) endTokenWatch() {
	if c.unwatch != nil {
		c.unwatch()
	}
}

// tokenEnd returns why the token of the request is no longer accepted since the
// request arrived, or nil.
func (q *request) tokenEnd() error {
	if cause := context.Cause(q.r.Context()); cause == errRevoked || cause == errNotForUser || cause == errUndecided {
		return cause
	}
	return nil
}

// orTokenEnd returns err, the result of the request, or that its token is no longer
// accepted, which is then the reason for any other error.
func (q *request) orTokenEnd(err error) error {
	if end := q.tokenEnd(); err != nil && end != nil {
		if end == errRevoked {
			q.excuseRevoked()
		}
		return end
	}
	return err
}

// excuseRevoked makes an answer 401 to the request cause no penalty if its gateway
// token has been verified: it is no guess, and many clients behind one address may
// have tokens that are revoked at once.
func (q *request) excuseRevoked() {
	if excuse := q.server.Authenticator.Excuse; excuse != nil && q.client.Claims.Gateway {
		excuse(q.r.Context())
	}
}
