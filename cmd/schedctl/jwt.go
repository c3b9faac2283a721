package main

import (
	"errors"
	"os"
	"strings"

	"schedrestd/auth"
	"schedrestd/conf"
	"schedrestd/errs"
)

// newToken is how one gets a token, as a hint. An old one has to go first: with it schedctl asks as its user.
const newToken = "unset SCHED_JWT SLURM_JWT; export $(schedctl token), run where the controller runs"

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
	if _, err := auth.Inspect(token, auth.Options{UserClaimField: field}); err != nil {
		why := err.Error()
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Err != nil {
			why = strings.TrimPrefix(e.Err.Error(), "token: ")
		}
		return "", errs.New(errs.Unauthenticated, "the token in %s can't be used: %s", name, why).WithHint(newToken)
	}
	return token, nil
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
