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

// newToken is how one gets a token, as a hint. An old one has to go first: with it schedctl asks as its user.
const newToken = "unset SCHED_JWT SLURM_JWT; export $(schedctl token), run where the controller runs"

// notUsers says who can't ask for anything, by a token or by the kernel's word, as a hint.
const notUsers = "refused are uid and gid 65534 (nobody), which stand for all whom the kernel has no number for, and who is in group 0 and not root"

// whyRefused is what can be done about a credential that the controller does not accept, as a hint: a token, or the
// kernel's word for uid and gid.
func whyRefused(token bool, uid, gid int) string {
	switch {
	case token:
		return "the controller's log says why; with a token of before a change of its key: " + newToken
	case uid != 0 && (become.Ucred{UID: uint32(uid), GID: uint32(gid)}).Vouch() != nil:
		return fmt.Sprintf("you are uid %d, gid %d: %s", uid, gid, notUsers)
	}
	return "the controller's log says why"
}

// tokenOf is the token of the environment, "" when there is none, judged by all that can be told without a
// key: it is the user's own, who may know what is wrong with it. field is userclaimfield=.
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
		return "", errs.New(errs.Invalid, "%s is \"daemon\", which is for schedrestd and not a token", name).WithHint("unset %s", name)
	case strings.HasPrefix(token, "SCHED_JWT="):
		return "", errs.New(errs.Invalid, "%s is not a token, but what schedctl token prints, the name and all", name).
			WithHint("unset %s; export $(schedctl token), without a name in front", name)
	}
	if what := around(token); what != "" {
		return "", errs.New(errs.Unauthenticated, "the token in %s can't be used: there is %s", name, what).
			WithHint("it is to be the token alone: letters, digits, - and _, and two dots. Or %s", newToken)
	}
	if _, err := auth.Inspect(token, auth.Options{UserClaimField: field}); err != nil {
		why := err.Error()
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Err != nil {
			why = strings.TrimPrefix(e.Err.Error(), "token: ")
		}
		return "", errs.New(errs.Unauthenticated, "the token in %s can't be used: %s", name, why).WithHint(newToken)
	}
	return token, nil
}

// around is what a copied token has around it or in it that is none of its own, "" when there is nothing to be named.
func around(token string) string {
	first, n := utf8.DecodeRuneInString(token)
	last, m := utf8.DecodeLastRuneInString(token)
	const quotes = "\"'`“”„‘’«»"
	switch {
	case len(token) >= len("bearer ") && strings.EqualFold(token[:len("bearer ")], "bearer "):
		return `"Bearer" in front of it`
	case strings.ContainsRune(quotes, first):
		return fmt.Sprintf("a quote (%s) in front of it", token[:n])
	case strings.ContainsRune("\r\n", first):
		return "a line end in front of it"
	case strings.ContainsRune("\r\n", last):
		return "a line end behind it"
	case strings.ContainsRune(quotes, last):
		return fmt.Sprintf("a quote (%s) behind it", token[len(token)-m:])
	case unicode.IsSpace(first):
		return "a blank in front of it"
	case unicode.IsSpace(last):
		return "a blank behind it"
	case strings.Count(token, ".") != 2: // no token at all
		return ""
	case strings.ContainsAny(token, "\r\n"):
		return "a line end in it"
	case strings.ContainsFunc(token, unicode.IsSpace):
		return "a blank in it"
	}
	return ""
}

// emptyToken refuses a variable that is set to nothing: most likely the command failed that should have printed
// a token, and to go on as the user of this process could be to go on as root.
func emptyToken() error {
	for _, name := range []string{"SCHED_JWT", "SLURM_JWT"} {
		if _, set := os.LookupEnv(name); set {
			return errs.New(errs.Unauthenticated, "%s is set to nothing", name).
				WithHint("unset %s to ask as the user you are, or set it to a token", name)
		}
	}
	return nil
}
