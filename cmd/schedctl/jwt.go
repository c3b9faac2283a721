package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
)

// newToken is a hint for getting a token. An expired token must be unset first,
// because schedctl would use it.
const newToken = "on the controller's machine, run: unset SCHED_JWT SLURM_JWT; export $(schedctl token)"

// notUsers is a hint that lists the users that are never accepted, by a token
// or on a UNIX socket.
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

// tokenOf returns the token of the environment, or "" when there is none. It
// checks everything that can be checked without the key: the token belongs to
// the user, who may learn what is wrong with it. field is userclaimfield=.
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
		return "", emptyToken()
	case token == "daemon":
		return "", errs.New(errs.Invalid, "%s is \"daemon\", which only schedrestd supports", name).WithHint("unset %s", name)
	case strings.HasPrefix(token, "SCHED_JWT="):
		return "", errs.New(errs.Invalid, "%s contains the whole output of schedctl token, not only the token", name).
			WithHint("run: unset %s; export $(schedctl token)", name)
	}
	if what := around(token); what != "" {
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

// around names characters before, after or inside a copied token that do not
// belong to it. It returns "" if there are none.
func around(token string) string {
	first, n := utf8.DecodeRuneInString(token)
	last, m := utf8.DecodeLastRuneInString(token)
	const quotes = "\"'`“”„‘’«»"
	switch {
	case len(token) >= len("bearer ") && strings.EqualFold(token[:len("bearer ")], "bearer "):
		return `"Bearer" before it`
	case strings.ContainsRune(quotes, first):
		return fmt.Sprintf("a quote (%s) before it", token[:n])
	case strings.ContainsRune("\r\n", first):
		return "a line break before it"
	case strings.ContainsRune("\r\n", last):
		return "a line break after it"
	case strings.ContainsRune(quotes, last):
		return fmt.Sprintf("a quote (%s) after it", token[len(token)-m:])
	case unicode.IsSpace(first):
		return "a space before it"
	case unicode.IsSpace(last):
		return "a space after it"
	case strings.Count(token, ".") != 2: // not a token at all
		return ""
	case strings.ContainsAny(token, "\r\n"):
		return "a line break in it"
	case strings.ContainsFunc(token, unicode.IsSpace):
		return "a space in it"
	}
	return ""
}

// emptyToken refuses a variable that is set but empty. Most likely the command
// that should have printed a token failed, and continuing as the user of this
// process could mean continuing as root.
func emptyToken() error {
	for _, name := range []string{"SCHED_JWT", "SLURM_JWT"} {
		if _, set := os.LookupEnv(name); set {
			return errs.New(errs.Unauthenticated, "%s is set but empty", name).
				WithHint("unset %s to use your own user, or set it to a token", name)
		}
	}
	return nil
}
