package ctld

import (
	"context"
	"time"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/become/nss"
	"schedrestd/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Tokens is how this controller creates tokens.
type Tokens struct {
	Key     auth.Key
	Private bool          // for root and the scheduler's user alone (disable_token_creation)
	Longest time.Duration // lifespan
}

// lifespanUnset is what Slurm's commands send for "not set", as 0 is. Their "unlimited" is one more, and too long
// as any number of that size.
const lifespanUnset = 0xfffffffe

// handleToken creates a token: root and the scheduler's user may have one for anyone, others for
// themselves alone; by a token, for no longer than that token itself. That is root's power over the
// cluster in one answer, so everyone else's name but the asker's own is refused before anything is
// looked up, and who was refused is logged as who was not.
//
// 6009: this controller makes none. 2002: for another, or users may not have any. 2051: for longer
// than it may last. 2165: for whom no daemon would believe it. 2166: no such user.
func (c *Controller) handleToken(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.TokenRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	token, name, lifespan, err := c.token(r.Identity, &q)
	if err != nil {
		c.log.Info("token refused", asker(r, "error", err)...)
		return 0, nil, err
	}
	c.log.Info("token created", asker(r, "for", name, "lifespan", lifespan)...)
	return message.ResponseAuthToken, &message.TokenResponse{Token: token}, nil
}

// token creates the token that who asks for with q.
func (c *Controller) token(who server.Identity, q *message.TokenRequest) (token, name string, lifespan time.Duration, err error) {
	if c.cfg.Tokens == nil {
		return "", "", 0, refuse(errs.Unavailable, fault.NoToken, "this controller has no key to sign tokens with; an administrator can set AuthAltParameters=jwt_key=PATH")
	}
	if name, err = c.tokenUser(who, q.Username); err != nil {
		return "", "", 0, err
	}
	if lifespan, err = c.lifespan(who, q.Lifespan); err != nil {
		return "", "", 0, err
	}
	token, err = auth.Create(c.cfg.Tokens.Key, name, lifespan, time.Now())
	return token, name, lifespan, err
}

// tokenUser is the name that who may have a token for.
func (c *Controller) tokenUser(who server.Identity, name string) (string, error) {
	if c.super(who.UID) && name != "" {
		if !auth.PosixName(name) { // and too long for one: it may be a token that came into the wrong place, and this is logged
			return "", refuse(errs.Invalid, fault.UnknownUser, "the requested name is not a valid user name")
		}
		user, err := c.cfg.Users.LookupUser(name)
		if err != nil {
			return "", refuse(errs.Invalid, fault.UnknownUser, "there is no user %q", name)
		}
		return user.Name, believable(user)
	}
	own, err := c.cfg.Users.LookupUID(who.UID)
	if err != nil {
		return "", refuse(errs.Invalid, fault.UnknownUser, "uid %d has no user name", who.UID)
	}
	switch {
	case name != "" && name != own.Name:
		return "", refuse(errs.Denied, fault.AccessDenied, "only root and the scheduler's user may create tokens for other users")
	case c.cfg.Tokens.Private && !c.super(who.UID):
		return "", refuse(errs.Denied, fault.AccessDenied, "users may not create tokens on this cluster")
	}
	return own.Name, believable(own)
}

// believable refuses a token that no daemon would take: rpc/server's Authority knows nobody by one whom
// it would not know on a UNIX socket.
func believable(u nss.User) error {
	if u.UID == 0 || (become.Ucred{UID: u.UID, GID: u.GID}).Vouch() == nil {
		return nil
	}
	return refuse(errs.Invalid, fault.BadUser, "tokens for %s are not accepted: uid %d or gid %d is reserved", u.Name, u.UID, u.GID)
}

// lifespan is how long who's token is good for when he asked for so many seconds. Who was known by a
// token gets none that outlives it, or a token stolen for a minute would be good for ever.
func (c *Controller) lifespan(who server.Identity, seconds uint32) (time.Duration, error) {
	d := time.Duration(seconds) * time.Second
	if seconds == 0 || seconds == lifespanUnset {
		d = min(auth.DefaultLifespan, c.cfg.Tokens.Longest)
	}
	if most := c.cfg.Tokens.Longest; d > most {
		return 0, refuse(errs.Invalid, fault.InvalidTimeLimit, "the longest lifespan of a token is %d seconds", int(most.Seconds()))
	}
	if who.Kernel {
		return d, nil
	}
	d = min(d, time.Until(who.Expires).Truncate(time.Second))
	if d < time.Second {
		return 0, refuse(errs.Denied, fault.AccessDenied, "the token of this request is about to expire")
	}
	return d, nil
}
