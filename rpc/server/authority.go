package server

import (
	"fmt"
	"strings"
	"time"

	"schedrestd/become"
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
	if id.UID, id.GID, err = a.find(user); err != nil {
		return Identity{}, notFound(err, "the token's user")
	}
	if actAs == "" || actAs == user {
		return id, nil
	}
	if !a.Super(id.UID) {
		return Identity{}, errs.New(errs.Unauthenticated, "%s may not act for %s", shown(user), shown(actAs))
	}
	id.Name, id.By = actAs, user
	if id.UID, id.GID, err = a.find(actAs); err != nil {
		return Identity{}, notFound(err, "the user to act as")
	}
	return id, nil
}

// notFound is a refusal of whom find did not find. A directory that is down is none: whoever
// took it for one would tell every user to get a new token, and forget what he knows of the old ones.
func notFound(err error, who string) error {
	if errs.KindOf(err) == errs.Unavailable {
		return errs.Wrap(err, errs.Unavailable, "%s can't be looked up now", who)
	}
	return errs.Wrap(err, errs.Unauthenticated, "%s", who)
}

// find looks name up. What Lookup says goes to the log with the name in it, so that one which is
// not to be shown is not looked up at all. Who could not come by a UNIX socket, by his ids, does not
// come by a token: it would be the way around that rule.
func (a *Authority) find(name string) (uid, gid uint32, err error) {
	if tokenLike(name) {
		return 0, 0, errs.New(errs.NotFound, "no user is called %s", shown(name))
	}
	uid, gid, err = a.Lookup(name)
	if err == nil && uid != 0 {
		err = become.Ucred{UID: uid, GID: gid}.Vouch()
	}
	return uid, gid, err
}

// maxShown is how much of a name goes to the log.
const maxShown = 32

// shown is name for the log.
func shown(name string) string {
	switch {
	case tokenLike(name):
		return fmt.Sprintf("(%d bytes that look like a token)", len(name))
	case len(name) > maxShown:
		return fmt.Sprintf("%.*q…", maxShown, name)
	}
	return fmt.Sprintf("%q", name)
}

// tokenLike tells whether name looks like a token that somebody sent in the wrong place: a JWT has
// only letters that a user name may have, and the log would have a good one in it.
func tokenLike(name string) bool {
	return strings.HasPrefix(name, "eyJ") || strings.Count(name, ".") >= 2 && len(name) > maxShown || len(name) > 256
}
