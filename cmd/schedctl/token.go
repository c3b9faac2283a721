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
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/rpc/fault"
)

func tokenCommand(to connector) *cobra.Command {
	return &cobra.Command{
		Use:   "token [username=USER] [lifespan=SECONDS]",
		Short: "Create a token and print it as SCHED_JWT=TOKEN",
		Long: `Create a token and print it as SCHED_JWT=TOKEN.

It lasts for 1800 seconds, or what lifespan= says. There are two limits:

  max_token_lifespan= of the controller's AuthAltParameters, 2592000 seconds (30 days)
  unless it is set: a longer lifespan is refused;

  the token that asks, when SCHED_JWT holds one: the new one ends with it at the latest,
  and a warning says when. To have a longer one, unset SCHED_JWT and ask where the
  controller runs.

No token is made for nobody, for who is in nobody's group, and for who is in group 0 and
not root: no daemon would believe it.`,
		Example: `  schedctl token
  export $(schedctl token lifespan=3600)
  schedctl token username=alice          as root or the scheduler's user`,
		RunE: func(cmd *cobra.Command, args []string) error {
			user, lifespan, err := tokenWords(args)
			if err != nil {
				return err
			}
			c, err := to()
			if err != nil {
				return err
			}
			if lifespan == 0 {
				lifespan = min(auth.DefaultLifespan, c.auth.LongestToken())
			}
			token, err := c.client.Token(cmd.Context(), c.credential, user, lifespan)
			if err != nil {
				return whyNoToken(err, user, c.auth)
			}
			if _, err = fmt.Fprintf(cmd.OutOrStdout(), "SCHED_JWT=%s\n", token); err == nil && c.credential.Token != "" {
				warnOfItsEnd(cmd.ErrOrStderr(), token, c.auth.UserClaimField, lifespan)
			}
			return err
		},
	}
}

// warnOfItsEnd tells who asked by a token when the new one, made for that lifespan, ends before it is over: with
// the one that asked for it.
func warnOfItsEnd(w io.Writer, token, field string, lifespan time.Duration) {
	c, err := auth.Inspect(token, auth.Options{UserClaimField: field})
	lasts := c.Expires.Sub(c.IssuedAt)
	if err != nil || lasts >= lifespan {
		return
	}
	fmt.Fprintf(w, "warning: the new token ends with the token that asked for it: at %s, after %d seconds and not %d\n",
		c.Expires.Format(time.RFC3339), lasts/time.Second, lifespan/time.Second)
	fmt.Fprintf(w, "hint: for a longer one %s\n", newToken)
}

// tokenWords reads the arguments of token: key=value words, in any order, each once. Lifespan 0 is not set.
func tokenWords(args []string) (user string, lifespan time.Duration, err error) {
	given := map[string]bool{}
	for _, word := range args {
		key, value, _ := strings.Cut(word, "=")
		if key = strings.ToLower(key); given[key] {
			return "", 0, errs.New(errs.Invalid, "%s= is given twice", key)
		}
		given[key] = true
		switch key {
		case "username":
			if user = value; user == "" {
				return "", 0, errs.New(errs.Invalid, "username= needs a name").WithHint("leave it out for a token of your own")
			}
		case "lifespan":
			if lifespan, err = seconds(value); err != nil {
				return "", 0, err
			}
		default:
			if len(word) > 64 {
				word = word[:10] + "…" // it may be a token, and this may go to a log
			}
			return "", 0, errs.New(errs.Invalid, "%q is not understood", word).WithHint("schedctl token [username=USER] [lifespan=SECONDS]")
		}
	}
	return user, lifespan, nil
}

// seconds is a lifespan that some controller may grant.
func seconds(value string) (time.Duration, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	tooMany := errors.Is(err, strconv.ErrRange) || err == nil && n > uint64(auth.MaxLifespan/time.Second)
	switch {
	case tooMany:
		return 0, errs.New(errs.Invalid, "lifespan=%s is too long: no token lasts for more than %d seconds", value, auth.MaxLifespan/time.Second)
	case err != nil || n == 0:
		return 0, errs.New(errs.Invalid, "lifespan=%s is not a number of seconds above 0", value).
			WithHint("leave it out for a token of %d seconds", auth.DefaultLifespan/time.Second)
	}
	return time.Duration(n) * time.Second, nil
}

// whyNoToken adds to a controller's refusal what a is known to say: of what it answers with, only the number
// comes over. user is whom the token was to be for, "" for who asked.
func whyNoToken(err error, user string, a conf.Auth) error {
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
		return refused("AuthAltParameters=max_token_lifespan= of the controller sets it",
			"the lifespan is longer than the controller allows, which is %d seconds by the configuration here", a.LongestToken()/time.Second)
	case fault.AccessDenied:
		if user == "" || a.DisableTokenCreation {
			return refused("ask an administrator: AuthAltParameters= of the controller has disable_token_creation",
				"only root and the scheduler's user may create tokens on this cluster")
		}
		return refused("leave username= out for a token of your own", "only root and the scheduler's user may have a token for another user")
	case fault.BadUser:
		whom := user
		if whom == "" {
			whom = "you"
		}
		return refused(notUsers, "there are no tokens for %s: no daemon would believe one", whom)
	case fault.UnknownUser:
		return refused("the name must be one of the users of the controller's machine", "the controller knows no such user")
	case fault.NoToken:
		return refused("AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=PATH in its configuration turn that on, also beside jwks=",
			"the controller creates no tokens: it has no key to sign them with")
	}
	return err
}
