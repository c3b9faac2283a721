package server

import (
	"fmt"
	"strings"
	"time"

	"schedrestd/become"
	"schedrestd/internal/errs"
)

// Authority determines the user of a token. It is the only implementation of
// the rules for tokens, and both bundled daemons use it. A mistake in these
// rules would give attackers root privileges on the cluster.
type Authority struct {
	// Token verifies a token with the daemon's key. It returns the user and the
	// expiry of the token.
	Token func(token string) (user string, expires time.Time, err error)
	// Lookup looks up a user of this machine by name (NSS).
	Lookup func(name string) (uid, gid uint32, err error)
	// Super reports whether a user is a Super, who may act for other users.
	// Root and the scheduler's user are Supers.
	Super func(uid uint32) bool
}

// Verify returns the identity for a request with this token. If actAs is "",
// this is the identity of the token's user. Otherwise it is the identity of the
// user whose name is actAs. Only a Super may act for another user.
// Authentication proxies do so.
func (a *Authority) Verify(token, actAs string) (Identity, error) {
	user, expires, err := a.Token(token)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Name: user, Expires: expires}
	if id.UID, id.GID, err = a.lookupUser(user); err != nil {
		return Identity{}, notFound(err, "the token's user")
	}
	if actAs == "" || actAs == user {
		return id, nil
	}
	if !a.Super(id.UID) {
		return Identity{}, errs.New(errs.Unauthenticated, "%s may not act for %s", quoteName(user), quoteName(actAs))
	}
	id.Name, id.TokenUser = actAs, user
	if id.UID, id.GID, err = a.lookupUser(actAs); err != nil {
		return Identity{}, notFound(err, "the user to act as")
	}
	return id, nil
}

// notFound returns the error for a user who could not be looked up. Usually the
// request is refused. If the directory service is unavailable, the client is
// asked to retry instead: a refusal would make all clients discard valid tokens.
func notFound(err error, subject string) error {
	if errs.KindOf(err) == errs.Unavailable {
		return errs.Wrap(err, errs.Unavailable, "user lookup of %s failed", subject)
	}
	return errs.Wrap(err, errs.Unauthenticated, "%s", subject)
}

// lookupUser looks up the user with this name. A name that looks like a token
// is not looked up, because Lookup's errors contain the name and are logged. A
// user whose ids are not accepted on a UNIX socket is not accepted here either.
func (a *Authority) lookupUser(name string) (uid, gid uint32, err error) {
	if looksLikeToken(name) {
		return 0, 0, errs.New(errs.NotFound, "there is no user %s", quoteName(name))
	}
	uid, gid, err = a.Lookup(name)
	if err == nil && uid != 0 {
		err = become.Ucred{UID: uid, GID: gid}.Verify()
	}
	return uid, gid, err
}

// maxLoggedName is the maximum length of a logged name, in bytes.
const maxLoggedName = 32

// quoteName returns name in a form that may be logged.
func quoteName(name string) string {
	switch {
	case looksLikeToken(name):
		return fmt.Sprintf("(%d bytes that look like a token)", len(name))
	case len(name) > maxLoggedName:
		return fmt.Sprintf("%.*q…", maxLoggedName, name)
	}
	return fmt.Sprintf("%q", name)
}

// looksLikeToken reports whether name looks like a token that a client sent in
// place of a user name. Such a name must not be logged.
func looksLikeToken(name string) bool {
	return strings.HasPrefix(name, "eyJ") || strings.Count(name, ".") >= 2 && len(name) > maxLoggedName || len(name) > 256
}
