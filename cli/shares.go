package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/table"
)

func sharesCommand() *cobra.Command {
	var o options
	var f filter
	cmd := &cobra.Command{
		Use:   "shares",
		Short: "Show fair shares as a tree, as sshare does",
		Long: `shares shows accounts, their subaccounts and their users, with the shares of each, its usage,
which decays with time, and the fair share that results from both.

  RAWSHARES     shares that an administrator has given; those of siblings are compared
  NORMSHARES    the same, as a fraction of the whole
  RAWUSAGE      usage: weighted resources times seconds
  NORMUSAGE     the same, as a fraction of the whole
  EFFECTVUSAGE  the usage that counts, relative to the parent's
  FAIRSHARE     factor of the priority of the user's jobs, from 0 to 1
  LEVELFS       shares divided by usage at this level of the tree: above 1 if less than the share
                was used

The controller defines what the values mean: sshare(1) and its page about fair share describe them.`,
		Example: "  schedctl shares --account physics\n  schedctl shares --me -o json",
		Args:    atMost(0, "schedctl shares --account NAME selects an account"),
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "csv")
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.users, "user", "u", nil, "only these `USERS`, and the accounts above them")
	flags.BoolVar(&f.me, "me", false, "only yourself")
	accountFlag(flags, &f.accounts, "A", "only these `ACCOUNTS`")
	for _, name := range []string{"user", "account"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return setRun(cmd, func(cmd *cobra.Command, _ []string) error {
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		s := o.newSheet(cmd.OutOrStdout(), "shares", shareColumns())
		s.keep = f.keepShare
		if err := c.Shares(cmd.Context(), listQuery(map[string][]string{"users": f.users, "accounts": f.accounts}), s.add); err != nil {
			return err
		}
		return s.close(c.checkNames(cmd.Context(), &f))
	})
}

// keepShare reports whether f selects a fair share: slurmrestd sends those of all users
// and accounts.
func (f *filter) keepShare(r record) bool {
	name := r.get("name")
	if !isUser(r) {
		f.see(&accountKind, f.accounts, name)
		return hasAny(f.accounts, strings.ToLower(name))
	}
	f.see(&userKind, f.users, name)
	return hasAny(f.users, name) && hasAny(f.accounts, strings.ToLower(r.get("parent")))
}

// isUser reports whether a fair share is that of a user, not of an account.
func isUser(r record) bool { return r.get("type") == "USER" }

// shareColumns returns the columns of fair shares. The controller lists an account
// before its subaccounts and users, so the tree needs no other order.
func shareColumns() []sheetColumn {
	depths := map[string]int{} // of the accounts so far
	account := func(r record) table.Cell {
		depth, known := depths[r.get("parent")]
		if known {
			depth++
		}
		name := r.get("name")
		if isUser(r) {
			name = r.get("parent")
		} else {
			depths[name] = depth
		}
		return table.Cell{Text: name, Indent: depth}
	}
	user := func(r record) table.Cell {
		if isUser(r) {
			return textCell(r.get("name"))
		}
		return table.Cell{}
	}
	shares := func(r record) table.Cell { return textCell(formatShares(r, r.get("shares"))) }
	factor := func(r record) table.Cell {
		if !isUser(r) {
			return table.Cell{}
		}
		return rounded("fairshare.factor", 6)(r)
	}
	level := func(r record) table.Cell {
		switch {
		case r.get("shares") == parentShares:
			return table.Cell{}
		case r.get("fairshare.level") == "unlimited": // of shares without usage
			return textCell("inf")
		}
		return rounded("fairshare.level", 6)(r)
	}
	number := func(heading string, drop int) table.Column {
		return table.Column{Heading: heading, Right: true, Drop: drop}
	}
	return []sheetColumn{
		{field: "cluster"}, {field: "type"}, {field: "name"}, {field: "parent"},
		{Column: table.Column{Heading: "ACCOUNT", Shrink: 12}, field: "parent", cell: account},
		{Column: table.Column{Heading: "USER", Shrink: 8, Rank: 1}, field: "name", cell: user},
		{Column: table.Column{Heading: "PARTITION", Shrink: 5}, field: "partition", optional: true},
		{Column: number("RAWSHARES", 0), field: "shares", cell: shares},
		{Column: number("NORMSHARES", 3), field: "shares_normalized", cell: rounded("shares_normalized", 6)},
		{Column: number("RAWUSAGE", 2), field: "usage"},
		{Column: number("NORMUSAGE", 1), field: "usage_normalized", cell: rounded("usage_normalized", 6)},
		{Column: number("EFFECTVUSAGE", 0), field: "effective_usage", cell: rounded("effective_usage", 6)},
		{Column: number("FAIRSHARE", 0), field: "fairshare.factor", cell: factor},
		{Column: number("LEVELFS", 4), field: "fairshare.level", cell: level},
	}
}

// parentShares is Slurm's number for users who have the shares of their account.
const parentShares = "2147483647"

// formatShares returns a number of shares.
func formatShares(_ record, text string) string {
	if text == parentShares {
		return "parent"
	}
	return text
}
