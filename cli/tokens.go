package cli

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// GatewayTokens manages the user's gateway tokens at a gateway, for the commands that
// otherwise use the register on this machine.
type GatewayTokens struct{ options }

// Flags declares the options for the connection.
func (g *GatewayTokens) Flags(cmd *cobra.Command) { g.connectFlags(cmd) }

// Named reports whether the user has named a gateway with --url.
func (g *GatewayTokens) Named() bool { return g.url != "" }

// Selected reports whether the user has named a gateway: with --url, or with the
// variable if nothing else says where the register is.
func (g *GatewayTokens) Selected(register string) (bool, error) {
	if g.url != "" && register != "" {
		return false, usageError("--url and --register exclude each other").WithHint("--url selects a gateway, and --register the file on this machine")
	}
	if g.url != "" || register != "" {
		return g.url != "", nil
	}
	url, err := conf.Env("SCHED_URL")
	return url != "", err
}

// List prints the tokens that have not expired.
func (g *GatewayTokens) List(cmd *cobra.Command) error {
	c, err := g.dial(cmd.Context())
	if err != nil {
		return err
	}
	list, err := c.GatewayTokens(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, GatewayTokenTitle)
	for _, t := range list {
		state := "valid"
		if t.Revoked {
			state = "revoked"
		}
		for i, text := range []string{t.ID, t.User, strings.Join(t.Scopes, "+"), time.Unix(t.Expires.Number, 0).UTC().Format(time.RFC3339), state, cmp.Or(t.ActFor, "-"), t.Label} {
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			fmt.Fprint(table, printable.Text(text))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// GatewayTokenTitle is the first line of a list of gateway tokens.
const GatewayTokenTitle = "ID\tUSER\tSCOPE\tUNTIL\tSTATE\tACT-FOR\tLABEL"

// Create creates a token, and prints it as SCHED_JWT=TOKEN.
func (g *GatewayTokens) Create(cmd *cobra.Command, scopes string, life time.Duration, label string) error {
	c, err := g.dial(cmd.Context())
	if err != nil {
		return err
	}
	jwt, t, warnings, err := c.CreateGatewayToken(cmd.Context(), rest.NewGatewayToken{Scopes: strings.Split(scopes, "+"), Lifetime: int64(life / time.Second), Label: label})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		c.warn("%s", w)
	}
	if strings.Trim(jwt, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || jwt == "" { // a shell may evaluate the line
		return errs.New(errs.BadAnswer, "the answer of %s contains no token", c.Server())
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "SCHED_JWT=%s\n", jwt)
	fmt.Fprintf(cmd.ErrOrStderr(), "token %s for %s, valid until %s\n", printable.Text(t.ID), printable.Text(t.User), time.Unix(t.Expires.Number, 0).UTC().Format(time.RFC3339))
	return err
}

// Revoke revokes the tokens with these ids. With self, it revokes the token of the
// command itself, and with a user, all tokens of this user, who must be its user.
func (g *GatewayTokens) Revoke(cmd *cobra.Command, ids []string, self bool, user string) error {
	c, err := g.dial(cmd.Context())
	if err != nil {
		return err
	}
	switch {
	case user != "" && user != c.user:
		return errs.New(errs.Denied, "at a gateway you can revoke only your own tokens").WithHint("on the gateway's machine, root can use --register")
	case user != "":
		return c.RevokeGatewayTokens(cmd.Context())
	case self:
		ids = []string{"self"}
	}
	for _, id := range ids {
		if err := c.RevokeGatewayToken(cmd.Context(), id); err != nil {
			return err
		}
	}
	return nil
}
