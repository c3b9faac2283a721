package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/errs"
)

// defaultLifespan is how long a token is good for when nobody says.
const defaultLifespan = 1800 * time.Second

func tokenCommand(to connector) *cobra.Command {
	return &cobra.Command{
		Use:   "token [username=USER] [lifespan=SECONDS]",
		Short: "Create a token and print it as SCHED_JWT=TOKEN",
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
			token, err := c.client.Token(cmd.Context(), c.credential, user, lifespan)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "SCHED_JWT=%s\n", token)
			return err
		},
	}
}

// tokenWords reads the arguments of token: key=value words, in any order.
func tokenWords(args []string) (user string, lifespan time.Duration, err error) {
	lifespan = defaultLifespan
	for _, word := range args {
		key, value, _ := strings.Cut(word, "=")
		switch strings.ToLower(key) {
		case "username":
			if user = value; user == "" {
				return "", 0, errs.New(errs.Invalid, "username= needs a name").WithHint("leave it out for a token of your own")
			}
		case "lifespan":
			seconds, err := strconv.ParseUint(value, 10, 31)
			if err != nil || seconds == 0 {
				return "", 0, errs.New(errs.Invalid, "lifespan=%s is not a number of seconds above 0", value)
			}
			lifespan = time.Duration(seconds) * time.Second
		default:
			return "", 0, errs.New(errs.Invalid, "%q is not understood", word).WithHint("schedctl token [username=USER] [lifespan=SECONDS]")
		}
	}
	return user, lifespan, nil
}
