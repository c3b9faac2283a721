package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/auth"
	"schedrestd/cli/credential"
	"schedrestd/cli/direct"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
)

func tokenCommand(dial connector) *cobra.Command {
	return &cobra.Command{
		Use:   "token [username=USER] [lifespan=SECONDS]",
		Short: "Create a token and print it as SCHED_JWT=TOKEN",
		Long: `Create a token and print it as SCHED_JWT=TOKEN.

It is valid for 1800 seconds, or for lifespan= seconds. There are two limits:

  max_token_lifespan= in the controller's AuthAltParameters, by default
  2592000 seconds (30 days): a longer lifespan is refused;

  the token in SCHED_JWT, if it is set: the new token expires no later than that one,
  and a warning says when. For a longer lifespan, unset SCHED_JWT and run this command
  on the controller's machine.

Slurm's controller has no second limit: it exchanges a token of seconds for one of
years, unless its AuthAltParameters contains max_token_lifespan= or
disable_token_creation. Only the latter ends the exchange.

Tokens can't be created for the user nobody, for users in nobody's group, and for
users other than root in group 0: no daemon accepts them.`,
		Example: `  schedctl token
  export $(schedctl token lifespan=3600)
  schedctl token username=alice          as root or the scheduler's user`,
		RunE: func(cmd *cobra.Command, args []string) error {
			user, lifespan, err := parseTokenArgs(args)
			if err != nil {
				return err
			}
			c, err := dial()
			if err != nil {
				return err
			}
			if lifespan == 0 {
				lifespan = min(auth.DefaultLifespan, c.Auth.LifespanLimit())
			}
			token, err := c.Client.Token(cmd.Context(), c.Credential, user, lifespan)
			if err != nil {
				return withTokenHint(err, user, c.Auth)
			}
			if _, err = fmt.Fprintf(cmd.OutOrStdout(), "SCHED_JWT=%s\n", token); err == nil && c.Credential.Token != "" {
				warnEarlyExpiry(cmd.ErrOrStderr(), token, direct.Rules(&c.Auth), lifespan)
			}
			if err == nil && c.Auth.CanRenewTokens() {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: anyone who has this token can exchange it for one that expires later\n"+
					"hint: an administrator can prevent this with AuthAltParameters=disable_token_creation\n")
			}
			return err
		},
	}
}

// warnEarlyExpiry prints a warning if the new token expires earlier than
// requested. This happens because a new token never expires later than the
// token with which it was requested.
func warnEarlyExpiry(w io.Writer, token string, rules auth.Rules, lifespan time.Duration) {
	c, err := auth.Inspect(token, auth.Options{Rules: rules})
	actual := c.Expires.Sub(c.IssuedAt)
	if err != nil || actual >= lifespan {
		return
	}
	fmt.Fprintf(w, "warning: the new token expires together with the token in use: at %s, after %d seconds instead of %d\n",
		c.Expires.Format(time.RFC3339), actual/time.Second, lifespan/time.Second)
	fmt.Fprintf(w, "hint: for a longer lifespan, %s\n", credential.NewTokenHint)
}

// parseTokenArgs parses the arguments of the token command. They have the form
// key=value, and each key may occur once. If lifespan= is not given,
// parseTokenArgs returns a lifespan of 0.
func parseTokenArgs(args []string) (user string, lifespan time.Duration, err error) {
	seen := map[string]bool{}
	for _, word := range args {
		key, value, _ := strings.Cut(word, "=")
		if key = strings.ToLower(key); seen[key] {
			return "", 0, errs.New(errs.Malformed, "%s= is set twice", key)
		}
		seen[key] = true
		switch key {
		case "username":
			if user = value; user == "" {
				return "", 0, errs.New(errs.Malformed, "username= needs a name").WithHint("omit it to create a token for yourself")
			}
		case "lifespan":
			if lifespan, err = seconds(value); err != nil {
				return "", 0, err
			}
		default:
			if len(word) > 64 {
				word = word[:10] + "…" // it may be a token, and the error may be logged
			}
			return "", 0, errs.New(errs.Malformed, "unknown argument %q", word).
				WithHint("usage: schedctl token [username=USER] [lifespan=SECONDS], or schedctl token create, list, revoke or explain")
		}
	}
	return user, lifespan, nil
}

// seconds parses a lifespan. It returns an error if no controller would accept
// the lifespan.
func seconds(value string) (time.Duration, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	tooLong := errors.Is(err, strconv.ErrRange) || err == nil && n > uint64(auth.MaxLifespan/time.Second)
	switch {
	case tooLong:
		return 0, errs.New(errs.Malformed, "lifespan=%s is too long: the maximum is %d seconds", value, auth.MaxLifespan/time.Second)
	case err != nil || n == 0:
		return 0, errs.New(errs.Malformed, "lifespan=%s is not a number of seconds above 0", value).
			WithHint("omit it for %d seconds", auth.DefaultLifespan/time.Second)
	}
	return time.Duration(n) * time.Second, nil
}

// withTokenHint adds a hint to the error with which the controller refused to
// create a token. The controller sends only an error number. Some hints depend
// on the configuration a, and on the user that the token was requested for. If
// user is "", schedctl requested a token for the user that its own credential
// identifies.
func withTokenHint(err error, user string, a conf.Auth) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err
	}
	refused := func(hint, format string, args ...any) error {
		n := errs.New(e.Kind, format, args...).WithHint("%s", hint)
		n.Number = e.Number
		return n
	}
	switch e.Number {
	case fault.InvalidTimeLimit:
		return refused("the limit is max_token_lifespan= in the controller's AuthAltParameters",
			"the lifespan exceeds the controller's limit, which is %d seconds in this configuration", a.LifespanLimit()/time.Second)
	case fault.AccessDenied:
		if user == "" || a.DisableTokenCreation {
			return refused("ask an administrator; the controller's AuthAltParameters= contains disable_token_creation",
				"only root and the scheduler's user may create tokens on this cluster")
		}
		return refused("omit username= to create a token for yourself",
			"only root and the scheduler's user may create tokens for other users")
	case fault.BadUser:
		subject := user
		if subject == "" {
			subject = "you"
		}
		return refused(refusedUsersHint, "tokens for %s can't be created: no daemon accepts them", subject)
	case fault.UnknownUser:
		return refused("the user must exist on the controller's machine", "unknown user")
	case fault.NoToken:
		return refused("set AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=PATH in the controller's configuration; jwks= may be set as well",
			"the controller has no key to sign tokens with")
	}
	return err
}
