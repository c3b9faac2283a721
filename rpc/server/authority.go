package server

import (
	"time"

	"schedrestd/errs"
)

// Authority decides for whom a token speaks; its Verify is what both daemons
// give to Server. One rule in one place, because a mistake here is root on the cluster.
type Authority struct {
	// Token verifies a token with the daemon's key: its user, and when it ends.
	Token func(token string) (user string, expires time.Time, err error)
	// Lookup finds a user of this machine by name (NSS).
	Lookup func(name string) (uid, gid uint32, err error)
	// Super tells who may act for others: root and the scheduler's user.
	Super func(uid uint32) bool
}

// Verify is who a request with this token counts as. actAs "" is the token's own
// user; another name is allowed to a Super's token alone, which is how an
// authentication proxy works.
func (a *Authority) Verify(token, actAs string) (Identity, error) {
	user, expires, err := a.Token(token)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Name: user, Expires: expires}
	if id.UID, id.GID, err = a.Lookup(user); err != nil {
		return Identity{}, errs.Wrap(err, errs.Unauthenticated, "the token's user %q", user)
	}
	if actAs == "" || actAs == user {
		return id, nil
	}
	if !a.Super(id.UID) {
		return Identity{}, errs.New(errs.Unauthenticated, "%q may not act for %q", user, actAs)
	}
	id.Name, id.By = actAs, user
	if id.UID, id.GID, err = a.Lookup(actAs); err != nil {
		return Identity{}, errs.Wrap(err, errs.Unauthenticated, "the user to act as, %q", actAs)
	}
	return id, nil
}
