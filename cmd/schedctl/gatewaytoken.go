package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/become/nss"
	"schedrestd/cli"
	"schedrestd/cli/direct"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// registerVariable is the variable with the path of the register, in the gateway's
// environment, too.
const registerVariable = "SCHEDRESTD_TOKEN_REGISTER"

// gatewayTokenCommands returns the commands for gateway tokens. The argument
// configPath is the value of the option -f, which is set later.
func gatewayTokenCommands(configPath *string) []*cobra.Command {
	path := new(string)
	commands := []func(*cli.GatewayTokens) *cobra.Command{
		func(g *cli.GatewayTokens) *cobra.Command { return createCommand(configPath, path, g) },
		func(g *cli.GatewayTokens) *cobra.Command { return listCommand(path, g) },
		func(g *cli.GatewayTokens) *cobra.Command { return revokeCommand(path, g) },
	}
	list := []*cobra.Command{pruneCommand(path)}
	for _, command := range commands {
		g := new(cli.GatewayTokens)
		cmd := command(g)
		g.Flags(cmd)
		list = append(list, cmd)
	}
	for _, cmd := range list {
		cmd.Flags().StringVar(path, "register", "", "register of gateway tokens on this machine (default: $"+registerVariable+")")
	}
	return list
}

// atGateway reports whether a command is for a gateway, and not for the register at
// path. The variable with the path of the register precedes SCHED_URL.
func atGateway(g *cli.GatewayTokens, path string) (bool, error) {
	if path == "" && !g.Named() {
		var err error
		if path, err = conf.Env(registerVariable); err != nil {
			return false, err
		}
	}
	return g.Selected(path)
}

func createCommand(configPath, path *string, g *cli.GatewayTokens) *cobra.Command {
	scopes, life, t := "", "", gatewaytoken.Token{}
	cmd := &cobra.Command{
		Use:   "create --scope SCOPES [--user USER] [--act-for GROUP] [--for TIME] [--label LABEL]",
		Short: "Create a token that only the gateway accepts, and that does less",
		Long: `Create a gateway token and print it as SCHED_JWT=TOKEN. The gateway accepts it for the operations
of its scopes, until its end or until it is revoked; the daemons do not accept it. The scopes are
` + wrapScopes() + `,
several with + between them; ENDPOINTS.md lists the scope of each operation.

With --act-for, the token is for a proxy that authenticates users, such as a portal: each request
names the user to act as, who must be a member of this Unix group. It never acts for root, the
scheduler's user, users of the system and administrators of the accounting database, and can't have
the scopes slurmdb.write and cluster.admin.

The command needs the key of the cluster (jwt_key=), so root or the scheduler's user runs it, on a
machine with this key. It also adds a line to the register of gateway tokens, which is for the list;
a gateway with the key accepts the token in any case.`,
		Example: `  schedctl token create --user prometheus --scope compute.read --for 365d --label exporter
  schedctl token create --user alice --scope compute.read+compute.create --label ci
  schedctl token create --user haproxy --act-for students --scope compute.read+compute.create+compute.cancel`,
		Args: noTokenArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gateway, err := atGateway(g, *path)
			switch {
			case err != nil:
				return err
			case gateway:
				return createAtGateway(cmd, g, &t, scopes, life)
			}
			return createInRegister(cmd, *configPath, *path, &t, scopes, life)
		},
	}
	cmd.Flags().StringVar(&scopes, "scope", "", "what the token permits: `SCOPES` with + between them")
	cmd.Flags().StringVar(&t.User, "user", "", "`USER` as whom requests are carried out (default: you)")
	cmd.Flags().StringVar(&t.ActFor, "act-for", "", "act for the members of `GROUP`; --user is the portal's user")
	cmd.Flags().StringVar(&life, "for", "30d", "`TIME` for which it is valid, such as 12h or 90d; at most 366d")
	cmd.Flags().StringVar(&t.Label, "label", "", "`LABEL` for the list, such as the name of the program")
	return cmd
}

// createInRegister creates a token with the key of the cluster, and appends it to the
// register at path.
func createInRegister(cmd *cobra.Command, configPath, path string, t *gatewaytoken.Token, scopes, life string) error {
	register, err := openRegister(path, true)
	if err != nil {
		return err
	}
	defer register.Close()
	found, err := conf.Find(configPath)
	if err != nil {
		return err
	}
	c, warnings, err := conf.Read(found)
	for _, w := range warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
	}
	if err != nil {
		return err
	}
	if err := describeToken(t, c, scopes, life); err != nil {
		return err
	}
	if err := issueAfterRevocations(t, register); err != nil {
		return err
	}
	token, err := signGatewayToken(*t, c)
	if err != nil {
		return err
	}
	if uid, err := direct.SchedUser(c); c.AuthType != "auth/cred" && (*t.UID == 0 || err == nil && *t.UID == uid) {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the controller exchanges each token of %s for a longer one, whatever its settings are\n"+
			"hint: a token of another user limits what an attacker who controls a worker of the gateway gets\n", t.User)
	}
	if err := appendLine(register, t.Line(), gatewaytoken.MaxRegister-gatewaytoken.ForRevocations); err != nil { // first, so that no token is missing in the list
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "SCHED_JWT=%s\n", token)
	fmt.Fprintf(cmd.ErrOrStderr(), "token %s for %s, valid until %s\n", t.ID, holder(t.User, t.ActFor), t.Expires.Format(time.RFC3339))
	return err
}

// createAtGateway creates a token with a request to a gateway.
func createAtGateway(cmd *cobra.Command, g *cli.GatewayTokens, t *gatewaytoken.Token, scopes, life string) error {
	if t.User != "" || t.ActFor != "" {
		return errs.New(errs.Malformed, "--user and --act-for are for root, with --register on the gateway's machine").WithHint("at a gateway you get a token of your own")
	}
	if _, err := scope.Parse(scopes); err != nil {
		return errs.New(errs.Malformed, "--scope: %v", err)
	}
	valid := time.Duration(0) // the gateway's default
	if cmd.Flags().Changed("for") {
		var err error
		if valid, err = parseLife(life); err != nil {
			return err
		}
	}
	return g.Create(cmd, scopes, valid, t.Label)
}

// holder describes for whom a token acts.
func holder(user, group string) string {
	if group == "" {
		return user
	}
	return user + ", who acts for the members of " + group
}

// wrapScopes returns the names of all scopes.
func wrapScopes() string { return strings.ReplaceAll(scope.All.String(), "+", ", ") }

func noTokenArgs(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return errs.New(errs.Malformed, "%s takes no argument", cmd.Name()).WithHint("see %s --help", cmd.CommandPath())
}

// describeToken sets the fields of a new token.
func describeToken(t *gatewaytoken.Token, c *conf.Cluster, scopes, life string) error {
	if scopes == "" {
		return errs.New(errs.Malformed, "--scope is missing").WithHint("for example --scope compute.read")
	}
	set, err := scope.Parse(scopes)
	if err != nil {
		return errs.New(errs.Malformed, "--scope: %v", err)
	}
	valid, err := parseLife(life)
	if err != nil {
		return err
	}
	if err := gatewaytoken.CheckLabel(t.Label); err != nil {
		return errs.New(errs.Malformed, "--label: %v", err)
	}
	if t.User == "" {
		u, err := nss.LookupUID(uint32(os.Geteuid()))
		if err != nil {
			return err
		}
		t.User = u.Name
	}
	u, err := nss.LookupUser(t.User)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return errs.New(errs.NotFound, "--user: %v", err).WithHint("the account must exist on this machine, too, even if the token is for another one")
	case err != nil:
		return errs.Wrap(err, errs.KindOf(err), "--user")
	case u.Name != t.User:
		return errs.New(errs.Malformed, "--user: the name of this user is %s", u.Name)
	case auth.IsNobody(u.UID):
		return errs.New(errs.Malformed, "--user: uid %d stands for unknown users", u.UID)
	}
	if t.ActFor != "" {
		if err := checkPortal(t, set, u.UID, c); err != nil {
			return err
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	t.Cluster, t.UID, t.Scopes, t.Issued, t.Expires, t.ID = c.ClusterName, &u.UID, set, now, now.Add(valid), gatewaytoken.NewID()
	return nil
}

// checkPortal checks a token that acts for the members of a group.
func checkPortal(t *gatewaytoken.Token, set scope.Set, uid uint32, c *conf.Cluster) error {
	const hint = "the user is only in logs, and in revocations; the portal's own user is a good one, such as haproxy"
	sched, err := direct.SchedUser(c)
	switch {
	case uid == 0:
		return errs.New(errs.Malformed, "--act-for: the token can't be root's").WithHint("give it another user with --user: %s", hint)
	case err == nil && uid == sched:
		return errs.New(errs.Malformed, "--act-for: the token can't be that of the scheduler's user").WithHint("give it another user with --user: %s", hint)
	case set&gatewaytoken.NotForOthers != 0:
		return errs.New(errs.Malformed, "--act-for: the token can't have the scopes slurmdb.write and cluster.admin").
			WithHint("it acts for users, and these scopes are for administrators")
	case !gatewaytoken.IsUser(t.ActFor):
		return errs.New(errs.Malformed, "--act-for: a group's name in a token has only letters, digits and the characters - _ .").
			WithHint("make a group with such a name that has the same members")
	}
	g, err := nss.LookupGroup(t.ActFor)
	if err == nil && g.GID == 0 {
		err = errs.New(errs.Malformed, "not for group 0")
	}
	return errs.Wrap(err, errs.KindOf(err), "--act-for")
}

// parseLife parses a time such as 12h or 30d.
func parseLife(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < time.Second || d > gatewaytoken.MaxLifetime {
		return 0, errs.New(errs.Malformed, "--for %q is not a time from 1s to 366d, such as 12h or 30d", text)
	}
	return d.Truncate(time.Second), nil
}

// issueAfterRevocations lets t begin after a revocation of all tokens until now, as in
// the register: those of the same second are revoked, too.
func issueAfterRevocations(t *gatewaytoken.Token, register *os.File) error {
	r, err := readRegister(register)
	if err != nil {
		return err
	}
	if r.Revokes(*t) {
		t.Issued = t.Issued.Add(time.Second)
	}
	if r.Revokes(*t) {
		return errs.New(errs.Conflict, "register of gateway tokens %s: it revokes all tokens until a time in the future", register.Name()).WithHint("correct the line with before")
	}
	return nil
}

// signGatewayToken signs t with the key of the cluster.
func signGatewayToken(t gatewaytoken.Token, c *conf.Cluster) (string, error) {
	if c.JWTKey == "" {
		return "", errs.New(errs.Invalid, "%s has no jwt_key=", c.Path).WithHint("gateway tokens need AuthAltParameters=jwt_key=PATH")
	}
	trust := guard.Trust{PrivateGroup: nss.PrivateGroup}
	if uid, err := direct.SchedUser(c); err == nil {
		trust.Owners = []uint32{uid}
	}
	key, err := auth.LoadKey(c.JWTKey, trust)
	if errs.KindOf(err) == errs.Denied {
		return "", errs.New(errs.Denied, "you may not read the key of the cluster, %s", c.JWTKey).WithHint("run this command as root or as the scheduler's user")
	}
	if err != nil {
		return "", err
	}
	return auth.CreateGatewayToken(key, t)
}

func listCommand(path *string, g *cli.GatewayTokens) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the gateway tokens in the register that have not expired",
		Args:  noTokenArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if gateway, err := atGateway(g, *path); err != nil || gateway {
				if err == nil {
					err = g.List(cmd)
				}
				return err
			}
			f, err := openRegister(*path, false)
			if err != nil {
				return err
			}
			defer f.Close()
			r, err := readRegister(f)
			if err != nil {
				return err
			}
			return printTokens(cmd.OutOrStdout(), r, time.Now())
		},
	}
}

// printTokens prints the tokens that have not expired.
func printTokens(w io.Writer, r *gatewaytoken.Register, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, cli.GatewayTokenTitle)
	for _, c := range r.Created {
		if !now.Before(c.Until) {
			continue
		}
		state := "valid"
		if r.RevokesCreated(c) {
			state = "revoked"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.User, c.Scopes, c.Until.UTC().Format(time.RFC3339), state, cmp.Or(c.ActFor, "-"), c.Label)
	}
	return table.Flush()
}

func revokeCommand(path *string, g *cli.GatewayTokens) *cobra.Command {
	user, everything, self := "", false, false
	cmd := &cobra.Command{
		Use:   "revoke {ID... | --user USER | --all | --self}",
		Short: "Revoke gateway tokens",
		Long: `Revoke gateway tokens by id, or those of a user, or all, that were created until now. With --user, the
tokens of portals that exist now no longer act for this user either. It adds lines to the register. Within a second, each gateway with this file refuses the tokens, and ends the
requests and streams that use them.

With --url or SCHED_URL, the gateway revokes your own tokens, and the one in SCHED_JWT with --self.`,
		Example: `  schedctl token revoke AB3DEFGHIJKLMNOPQRSTUVWX27
  schedctl token revoke --user alice
  schedctl token revoke --self`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			gateway, err := atGateway(g, *path)
			if err != nil {
				return err
			}
			if gateway || self {
				return revokeAtGateway(cmd, g, ids, self, user, everything)
			}
			lines, err := revocations(ids, user, everything, time.Now())
			if err != nil {
				return err
			}
			f, err := openRegister(*path, true)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := appendLine(f, lines, gatewaytoken.MaxRegister); err != nil {
				return err
			}
			r, err := readRegister(f)
			if err != nil {
				return err
			}
			reportRevoked(cmd.ErrOrStderr(), r, ids, user, time.Now())
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "revoke the tokens of this `USER`")
	cmd.Flags().BoolVar(&everything, "all", false, "revoke the tokens of all users")
	cmd.Flags().BoolVar(&self, "self", false, "revoke the gateway token in SCHED_JWT, at a gateway")
	return cmd
}

// revokeAtGateway revokes tokens with a request to a gateway.
func revokeAtGateway(cmd *cobra.Command, g *cli.GatewayTokens, ids []string, self bool, user string, everything bool) error {
	switch {
	case everything:
		return errs.New(errs.Malformed, "--all is for root, with --register on the gateway's machine").WithHint("at a gateway, --user with your name revokes all of your tokens")
	case self && (len(ids) > 0 || user != ""):
		return errs.New(errs.Malformed, "--self excludes ids and --user")
	case !self:
		if _, err := revocations(ids, user, false, time.Now()); err != nil {
			return err
		}
	}
	return g.Revoke(cmd, ids, self, user)
}

// revocations returns the lines that revoke tokens.
func revocations(ids []string, user string, everything bool, now time.Time) (lines string, err error) {
	chosen := 0
	for _, given := range []bool{len(ids) > 0, user != "", everything} {
		if given {
			chosen++
		}
	}
	if chosen != 1 {
		return "", errs.New(errs.Malformed, "revoke needs exactly one of ids of tokens, --user USER and --all").WithHint("schedctl token list shows the ids")
	}
	for i, id := range ids {
		if !gatewaytoken.IsID(id) {
			return "", errs.New(errs.Malformed, "argument %d is not the id of a token", i+1).WithHint("schedctl token list shows the ids, which have 26 characters")
		}
		lines += gatewaytoken.RevokeToken(id)
	}
	switch {
	case everything:
		return gatewaytoken.RevokeBefore("", now), nil
	case user != "" && !auth.PosixName(user):
		return "", errs.New(errs.Malformed, "--user: not a user name")
	case user != "":
		return gatewaytoken.RevokeBefore(user, now), nil
	}
	return lines, nil
}

// reportRevoked reports which of the tokens in the register are now revoked, and warns
// if none of them is: an id or a name may be misspelt.
func reportRevoked(w io.Writer, r *gatewaytoken.Register, ids []string, user string, now time.Time) {
	found := map[string]bool{}
	for _, c := range r.Created {
		if len(ids) == 0 && (user == "" || c.User == user) && now.Before(c.Until) || slices.Contains(ids, c.ID) {
			found[c.ID] = true
		}
	}
	fmt.Fprintf(w, "revoked, of the tokens in the register: %d\n", len(found))
	for _, id := range ids {
		if !found[id] {
			fmt.Fprintf(w, "warning: the register has no token %s\nhint: if the id is misspelt, the token is still valid: schedctl token list shows the ids\n", id)
		}
	}
	if len(ids) == 0 && len(found) == 0 {
		fmt.Fprintf(w, "warning: the register has no valid token of %s\nhint: tokens that were created with another register are revoked, too\n", cmp.Or(user, "any user"))
	}
}

func pruneCommand(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Remove lines without effect from the register of gateway tokens",
		Long: `Remove the lines about tokens that ended more than a day ago from the register of gateway tokens, and
revocations that have no effect any longer. The file is replaced in one step, with the same owner and
mode. A change that another program makes at this moment fails there, and can be repeated.

Gateways only append to the register, so that an attacker can't undo a revocation. The owner of the
file runs this command, for example once a month.`,
		Args: noTokenArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := openRegister(*path, true)
			if err != nil {
				return err
			}
			defer f.Close()
			removed, err := gatewaytoken.Prune(f, time.Now())
			if err != nil {
				return errs.Wrap(err, errs.Invalid, "register of gateway tokens %s", f.Name())
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "removed %d bytes\n", removed)
			return nil
		},
	}
}

// openRegister opens the register.
func openRegister(path string, write bool) (*os.File, error) {
	if path == "" {
		var err error
		if path, err = conf.Env(registerVariable); err != nil {
			return nil, err
		}
	}
	if path == "" {
		return nil, errs.New(errs.Malformed, "the register of gateway tokens is not known").
			WithHint("name it with --register or %s, which the gateway must also have; or name a gateway with --url or SCHED_URL", registerVariable)
	}
	mode := os.O_RDONLY
	if write {
		mode = os.O_RDWR | os.O_APPEND
	}
	f, err := os.OpenFile(path, mode, 0)
	if err == nil {
		return f, nil
	}
	hint := "run this command as the owner of the file"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "if there has never been one, make an empty file that all users may read: install -D -m 0644 /dev/null " + guard.Quote(path)
	}
	return nil, &errs.Error{Kind: errs.Invalid, Message: "register of gateway tokens", Err: err, Hint: hint}
}

// readRegister reads the register.
func readRegister(f *os.File) (*gatewaytoken.Register, error) {
	text, err := gatewaytoken.ReadText(f)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "register of gateway tokens %s", f.Name())
	}
	r, err := gatewaytoken.ParseRegister(text)
	return r, errs.Wrap(err, errs.Invalid, "register of gateway tokens %s", f.Name())
}

// appendLine adds lines to the register, and writes them to the disk.
func appendLine(f *os.File, lines string, limit int) error {
	err := gatewaytoken.Append(f, lines, limit)
	hint := ""
	switch _, wrong := errors.AsType[*gatewaytoken.LineError](err); {
	case err == nil:
		return checkInPlace(f)
	case err == gatewaytoken.ErrFull:
		err = fmt.Errorf("longer than %d bytes", limit)
		hint = "schedctl token prune removes lines about expired tokens"
	case wrong:
		hint = "correct the line; gateways refuse all tokens until then"
	}
	return &errs.Error{Kind: errs.Invalid, Message: "register of gateway tokens " + f.Name(), Err: err, Hint: hint}
}

// checkInPlace returns an error if the file no longer has its name, because an
// editor has replaced it.
func checkInPlace(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	if current, err := os.Stat(f.Name()); err != nil || !os.SameFile(opened, current) {
		return errs.New(errs.Conflict, "register of gateway tokens %s: replaced at the same time, so the new lines are lost", f.Name()).
			WithHint("run this command again")
	}
	return nil
}
