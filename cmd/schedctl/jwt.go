package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/cli/credential"
	"schedrestd/conf"
	"schedrestd/errs"
)

// newToken is a hint for getting a token.
const newToken = credential.NewToken

// notUsers is a hint that lists the users whom daemons never accept, neither
// with a token nor on a UNIX socket.
const notUsers = "uid and gid 65534 (nobody) and users other than root in group 0 are not accepted"

// whyRefused returns a hint for a credential that the controller refused: a
// token, or uid and gid on the UNIX socket.
func whyRefused(token bool, uid, gid int) string {
	switch {
	case token:
		return "see the controller's log; if its key has changed, get a new token: " + newToken
	case uid != 0 && (become.Ucred{UID: uint32(uid), GID: uint32(gid)}).Verify() != nil:
		return fmt.Sprintf("you are uid %d, gid %d: %s", uid, gid, notUsers)
	}
	return "see the controller's log"
}

// tokenOf returns the token of the environment, or "" if there is none. It
// checks everything that can be checked without the key. Unlike the gateway, it
// may explain what is wrong, because the token belongs to the user. field is
// the name of the claim with the user's name (userclaimfield= in the
// configuration).
func tokenOf(field string) (string, error) {
	token, err := conf.Env("SCHED_JWT")
	if err != nil {
		return "", err
	}
	name := "SCHED_JWT"
	if os.Getenv(name) == "" {
		name = "SLURM_JWT"
	}
	switch {
	case token == "":
		return "", credential.Empty()
	case token == "daemon":
		return "", errs.New(errs.Invalid, "%s is \"daemon\", which only schedrestd supports", name).WithHint("unset %s", name)
	case strings.HasPrefix(token, "SCHED_JWT="):
		return "", errs.New(errs.Invalid, "%s contains the whole output of schedctl token, not only the token", name).
			WithHint("run: unset %s; export $(schedctl token)", name)
	}
	if what := credential.Around(token); what != "" {
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: it has %s", name, what).
			WithHint("a token has only letters, digits, - and _, and two dots. For a new one, %s", newToken)
	}
	if _, err := auth.Inspect(token, auth.Options{UserClaimField: field}); err != nil {
		why := err.Error()
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Err != nil {
			why = strings.TrimPrefix(e.Err.Error(), "token: ")
		}
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: %s", name, why).WithHint(newToken)
	}
	return token, nil
}
