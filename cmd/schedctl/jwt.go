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

// newTokenHint is a hint for getting a token.
const newTokenHint = credential.NewTokenHint

// refusedUsersHint is a hint that lists the users whom daemons never accept, neither
// with a token nor on a UNIX socket.
const refusedUsersHint = "uid and gid 65534 (nobody) and users other than root in group 0 are not accepted"

// refusalHint returns a hint for a credential that the controller refused: a
// token, or uid and gid on the UNIX socket.
func refusalHint(token bool, uid, gid int) string {
	switch {
	case token:
		return "see the controller's log; if its key has changed, get a new token: " + newTokenHint
	case uid != 0 && (become.Ucred{UID: uint32(uid), GID: uint32(gid)}).Verify() != nil:
		return fmt.Sprintf("you are uid %d, gid %d: %s", uid, gid, refusedUsersHint)
	}
	return "see the controller's log"
}

// tokenFromEnv returns the token of the environment, or "" if there is none. It
// checks everything that can be checked without the key. Unlike the gateway, it
// may explain what is wrong, because the token belongs to the user. field is
// the name of the claim with the user's name (userclaimfield= in the
// configuration).
func tokenFromEnv(field string) (string, error) {
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
		return "", credential.CheckEmpty()
	case token == "daemon":
		return "", errs.New(errs.Invalid, "%s is \"daemon\", which only schedrestd supports", name).WithHint("unset %s", name)
	case strings.HasPrefix(token, "SCHED_JWT="):
		return "", errs.New(errs.Invalid, "%s contains the whole output of schedctl token, not only the token", name).
			WithHint("run: unset %s; export $(schedctl token)", name)
	}
	if stray := credential.StrayCharacters(token); stray != "" {
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: it has %s", name, stray).
			WithHint("a token has only letters, digits, - and _, and two dots. For a new one, %s", newTokenHint)
	}
	if _, err := auth.Inspect(token, auth.Options{UserClaimField: field}); err != nil {
		reason := err.Error()
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Err != nil {
			reason = strings.TrimPrefix(e.Err.Error(), "token: ")
		}
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: %s", name, reason).WithHint(newTokenHint)
	}
	return token, nil
}
