package ctld

import (
	"cmp"
	"context"
	"time"

	"schedrestd/auth"
	"schedrestd/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Tokens is how this controller creates tokens.
type Tokens struct {
	Key     auth.Key
	Private bool          // for root and the scheduler's user alone (disable_token_creation)
	Longest time.Duration // lifespan; 0: longestLifespan
}

// longestLifespan is max_token_lifespan when the configuration does not say: what is stolen
// should be of use for days, not for years.
const longestLifespan = 30 * 24 * time.Hour

// defaultLifespan is a token's when the request says none, in seconds.
const defaultLifespan = 1800

// handleToken creates a token: root and the scheduler's user may have one for anyone, others for
// themselves alone; by a token, for no longer than that token itself. That is root's power over the cluster in one answer, so everyone
// else's name but the asker's own is refused before anything is looked up.
//
// 6009: this controller has no key. 2002: for another, or users may not have any. 2166: no
// such user.
func (c *Controller) handleToken(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.TokenRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if c.cfg.Tokens == nil {
		return 0, nil, refuse(errs.Unavailable, fault.NoToken, "this controller has no key to make tokens with")
	}
	name, err := c.tokenUser(r.Identity, q.Username)
	if err != nil {
		return 0, nil, err
	}
	lifespan, err := c.lifespan(r.Identity, q.Lifespan)
	if err != nil {
		return 0, nil, err
	}
	token, err := auth.Create(c.cfg.Tokens.Key, name, lifespan, time.Now())
	if err != nil {
		return 0, nil, err
	}
	c.log.Info("token created", "user", name, "by", r.Identity.UID, "lifespan", lifespan, "peer", r.Peer)
	return message.ResponseAuthToken, &message.TokenResponse{Token: token}, nil
}

// tokenUser is the name that who may have a token for.
func (c *Controller) tokenUser(who server.Identity, name string) (string, error) {
	if c.super(who.UID) && name != "" {
		user, err := c.cfg.Users.LookupUser(name)
		if err != nil {
			return "", refuse(errs.Invalid, fault.UnknownUser, "the user %.64q is not known", name)
		}
		return user.Name, nil
	}
	own, err := c.cfg.Users.LookupUID(who.UID)
	if err != nil {
		return "", refuse(errs.Invalid, fault.UnknownUser, "user %d has no name", who.UID)
	}
	switch {
	case name != "" && name != own.Name:
		return "", refuse(errs.Denied, fault.AccessDenied, "only root and the scheduler's user may have a token for another user")
	case c.cfg.Tokens.Private && !c.super(who.UID):
		return "", refuse(errs.Denied, fault.AccessDenied, "users may not create tokens on this cluster")
	}
	return own.Name, nil
}

// lifespan is how long who's token is good for when he asked for so many seconds. Who was known by a
// token gets none that outlives it, or a token stolen for a minute would be good for ever.
func (c *Controller) lifespan(who server.Identity, seconds uint32) (time.Duration, error) {
	if seconds == 0 || seconds >= 0xfffffffe { // not set, unlimited
		seconds = defaultLifespan
	}
	d := time.Duration(seconds) * time.Second
	if most := cmp.Or(c.cfg.Tokens.Longest, longestLifespan); d > most {
		return 0, refuse(errs.Invalid, fault.InvalidTimeLimit, "a token may last for %d seconds at the most", int(most.Seconds()))
	}
	if who.Kernel {
		return d, nil
	}
	d = min(d, time.Until(who.Expires).Truncate(time.Second))
	if d < time.Second {
		return 0, refuse(errs.Denied, fault.AccessDenied, "the token that asks for another one ends now")
	}
	return d, nil
}
