package ctld

import (
	"context"
	"time"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Tokens configures how this controller creates tokens.
type Tokens struct {
	Key         auth.Key
	AdminOnly   bool          // only root and the scheduler's user may create tokens (disable_token_creation)
	MaxLifespan time.Duration // longest lifespan
}

// lifespanUnset is the value that Slurm's commands send for "not set". The
// value 0 means the same. For "unlimited" the commands send lifespanUnset+1,
// which is refused as too long.
const lifespanUnset = 0xfffffffe

// handleToken creates a token. Root and the scheduler's user may create tokens
// for any user. Other users may create tokens only for themselves. If a token
// authenticated the client, the new token does not expire later than that
// token.
//
// A token for root gives full control of the cluster. So if an ordinary user
// requests a token for another user, handleToken refuses the request before it
// looks up the other user. Refusals are logged.
//
// handleToken returns these errors:
//
//   - 6009: this controller creates no tokens.
//   - 2002: the token would be for another user, users may not create tokens,
//     or the client's own token is about to expire.
//   - 2051: the lifespan is too long.
//   - 2165: no daemon would accept a token for the user.
//   - 2166: there is no such user.
func (c *Controller) handleToken(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.TokenRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	token, name, lifespan, err := c.token(r.Identity, &q)
	if err != nil {
		c.log.Info("token refused", clientAttrs(r, "error", err)...)
		return 0, nil, err
	}
	c.log.Info("token created", clientAttrs(r, "for", name, "lifespan", lifespan)...)
	return message.ResponseAuthToken, &message.TokenResponse{Token: token}, nil
}

// token creates the token that the request q asks for.
func (c *Controller) token(client server.Identity, q *message.TokenRequest) (
	token, name string, lifespan time.Duration, err error) {
	if c.cfg.Tokens == nil {
		return "", "", 0, refuse(errs.Unavailable, fault.NoToken,
			"this controller has no key to sign tokens with; an administrator can set AuthAltParameters=jwt_key=PATH")
	}
	if name, err = c.tokenUser(client, q.Username); err != nil {
		return "", "", 0, err
	}
	if lifespan, err = c.lifespan(client, q.Lifespan); err != nil {
		return "", "", 0, err
	}
	token, err = auth.Create(c.cfg.Tokens.Key, name, lifespan, time.Now())
	return token, name, lifespan, err
}

// tokenUser returns the name of the user that the new token is for.
func (c *Controller) tokenUser(client server.Identity, name string) (string, error) {
	if c.super(client.UID) && name != "" {
		if !auth.PosixName(name) { // the log omits the name, because the client may have sent a token instead
			return "", refuse(errs.Invalid, fault.UnknownUser, "the requested name is not a valid user name")
		}
		user, err := c.cfg.Users.LookupUser(name)
		if err != nil {
			return "", refuse(errs.Invalid, fault.UnknownUser, "there is no user %q", name)
		}
		return user.Name, checkTokenUser(user)
	}
	self, err := c.cfg.Users.LookupUID(client.UID)
	if err != nil {
		return "", refuse(errs.Invalid, fault.UnknownUser, "uid %d has no user name", client.UID)
	}
	switch {
	case name != "" && name != self.Name:
		return "", refuse(errs.Denied, fault.AccessDenied, "only root and the scheduler's user may create tokens for other users")
	case c.cfg.Tokens.AdminOnly && !c.super(client.UID):
		return "", refuse(errs.Denied, fault.AccessDenied, "users may not create tokens on this cluster")
	}
	return self.Name, checkTokenUser(self)
}

// checkTokenUser returns an error if no daemon would accept a token for user u.
// Package rpc/server rejects the same users, both in tokens and on a UNIX
// socket.
func checkTokenUser(u nss.User) error {
	if u.UID == 0 || (become.Ucred{UID: u.UID, GID: u.GID}).Verify() == nil {
		return nil
	}
	return refuse(errs.Invalid, fault.BadUser, "tokens for %s are not accepted: uid %d or gid %d is reserved",
		u.Name, u.UID, u.GID)
}

// lifespan returns how long a new token is valid if the client requests the
// given number of seconds. If a token authenticated the client, the new token
// does not expire later than that token. Otherwise a thief could renew a stolen
// token again and again.
func (c *Controller) lifespan(client server.Identity, seconds uint32) (time.Duration, error) {
	d := time.Duration(seconds) * time.Second
	if seconds == 0 || seconds == lifespanUnset {
		d = min(auth.DefaultLifespan, c.cfg.Tokens.MaxLifespan)
	}
	if maxLifespan := c.cfg.Tokens.MaxLifespan; d > maxLifespan {
		return 0, refuse(errs.Invalid, fault.InvalidTimeLimit, "the longest lifespan of a token is %d seconds",
			int(maxLifespan.Seconds()))
	}
	if client.FromKernel {
		return d, nil
	}
	d = min(d, time.Until(client.Expires).Truncate(time.Second))
	if d < time.Second {
		return 0, refuse(errs.Denied, fault.AccessDenied, "the token of this request is about to expire")
	}
	return d, nil
}
