package main

import (
	"errors"
	"fmt"
	"strings"

	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/become"
	"schedrestd/cli/credential"
	"schedrestd/internal/errs"
)

// refusedUsersHint is a hint that lists the users that daemons never accept,
// either with a token or on a UNIX socket.
const refusedUsersHint = "uid and gid 65534 (nobody) and users other than root in group 0 are not accepted"

// refusalHint returns a hint for users whose credential the controller has
// refused. The credential was either a token, or the uid and gid on the UNIX
// socket.
func refusalHint(token bool, uid, gid int) string {
	switch {
	case token:
		return "see the controller's log; if its key has changed, get a new token: " + credential.NewTokenHint
	case uid != 0 && (become.Ucred{UID: uint32(uid), GID: uint32(gid)}).Verify() != nil:
		return fmt.Sprintf("you are uid %d, gid %d: %s", uid, gid, refusedUsersHint)
	}
	return "see the controller's log"
}

// tokenFromEnv returns the token in the environment, or "" if there is none. It
// checks everything that can be checked without the signing key. Its errors say
// what is wrong with the token, because only the owner of the token sees them.
// (The gateway's errors do not say what is wrong.) The rules say which claims
// of the token the daemons use.
func tokenFromEnv(rules auth.Rules) (string, error) {
	token, name, err := credential.FromEnv()
	if err != nil || token == "" {
		return "", err
	}
	if err := credential.CheckWord(token, name); err != nil {
		return "", err
	}
	if stray := credential.StrayCharacters(token); stray != "" {
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: it has %s", name, stray).
			WithHint("a token has only letters, digits, - and _, and two dots. For a new one, %s", credential.NewTokenHint)
	}
	if gatewaytoken.Is(token) {
		return "", errs.New(errs.Unauthenticated, "the token in %s is a gateway token, which no daemon accepts", name).
			WithHint("name the gateway with --url or SCHED_URL, or unset %s", name)
	}
	if _, err := auth.Inspect(token, auth.Options{Rules: rules}); err != nil {
		reason := err.Error()
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Err != nil {
			reason = strings.TrimPrefix(e.Err.Error(), "token: ")
		}
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: %s", name, reason).
			WithHint(credential.NewTokenHint)
	}
	return token, nil
}
