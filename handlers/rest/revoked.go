package rest

import (
	"context"
	"errors"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// errRevoked ends the requests with a gateway token that is revoked while they are
// in progress. It is the cause of their contexts.
var errRevoked = errs.Wrap(errors.New("the gateway token has been revoked"), errs.Unauthenticated, auth.Refused)

// endIfRevoked lets a request that only reads end when its gateway token is revoked.
// One that changes something has its answer, which says what was changed; what it
// asks the daemons for afterwards is refused. endIfRevoked must be called before the
// token is verified: a revocation in between would be missed.
func (c *Call) endIfRevoked(token string) {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	c.unwatch = c.server.Worker.WatchToken(token, func() { cancel(errRevoked) })
	c.r = c.r.WithContext(ctx)
	c.ctx, c.w.stopped = ctx, func() error {
		if c.isRevoked() {
			return errRevoked
		}
		return nil
	}
}

// endWatch undoes endIfRevoked.
func (c *Call) endWatch() {
	if c.unwatch != nil {
		c.unwatch()
	}
}

// isRevoked reports whether the token of the request has been revoked since the
// request arrived.
func (q *request) isRevoked() bool {
	return context.Cause(q.r.Context()) == errRevoked
}

// orRevoked returns err, the result of the request, or that its token has been
// revoked, which is then the reason for any other error.
func (q *request) orRevoked(err error) error {
	if err != nil && q.isRevoked() {
		return errRevoked
	}
	return err
}
