package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/become"
	"schedrestd/become/nss"
	"schedrestd/cli/credential"
	"schedrestd/cli/direct"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/printable"
)

// explainCommand returns the command that says why a token is refused. The
// argument configPath is the value of the option -f, which is set later.
func explainCommand(configPath *string) *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "explain [--token-file FILE]",
		Short: "Say why the gateway refuses a token",
		Long: `Make the checks of the gateway for a token, and say what each of them finds. The gateway
itself does not tell clients why it refuses a token. The command reads the token from standard
input or from a file.

It uses the configuration in -f or SCHED_CONF, which must be that of the gateway, and the files
of its jwt_key= and jwks=, if it can read them. Without them only the daemons can verify the
signature. It looks the user up on this machine. Of the settings in the environment of the gateway
it knows only SCHEDRESTD_UNKNOWN_USERS, SCHEDRESTD_TOKEN_... and the one_user_claim of
SCHEDRESTD_SECURITY, and only if you set them in its own environment, too.

The exit status is 0 if nothing is wrong with the token, and otherwise 4.`,
		Example: `  schedctl token explain <token.txt
  schedctl token explain --token-file token.txt`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return nil
			}
			return errs.New(errs.Malformed, "explain takes no argument").
				WithHint("every user of this machine can read arguments; if it was a token, don't use it any more, and send another one to standard input")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := readToken(cmd, path)
			if err != nil {
				return err
			}
			found, err := conf.Find(*configPath)
			if err != nil {
				return err
			}
			cluster, warnings, err := conf.Read(found)
			for _, w := range warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
			}
			if err != nil {
				return err
			}
			return explainToken(cmd.OutOrStdout(), token, cluster)
		},
	}
	cmd.Flags().StringVar(&path, "token-file", "", "read the token from `FILE`, which only you can read")
	return cmd
}

// readToken reads the token from a file or, without a path, from standard input.
func readToken(cmd *cobra.Command, path string) (string, error) {
	if path != "" {
		return credential.ReadFile(path)
	}
	if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Paste the token, then press Enter and Ctrl-D.")
	}
	token, err := credential.Read(cmd.InOrStdin(), "standard input")
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return "", e.WithHint("send the token to standard input, or name its file with --token-file")
	}
	return token, err
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// explainToken prints the checks of a token. It returns an error if the gateway
// or the daemons with the configuration c refuse the token.
func explainToken(w io.Writer, token string, c *conf.Cluster) error {
	var steps []auth.Step
	if !c.JWT {
		steps = append(steps, auth.Step{Name: "setting", Outcome: auth.Refuses, Text: "no token is accepted: " + c.Path + " does not contain AuthAltTypes=auth/jwt"})
	}
	if stray := credential.StrayCharacters(token); stray != "" {
		steps = append(steps, auth.Step{Name: "text", Outcome: auth.Refuses, Text: "not only a token: it has " + stray})
	}
	rules := direct.Rules(&c.Auth)
	for name, to := range map[string]*string{"SCHEDRESTD_TOKEN_ISSUER": &rules.Issuer, "SCHEDRESTD_TOKEN_AUDIENCE": &rules.Audience, "SCHEDRESTD_TOKEN_SCOPE_CLAIM": &rules.ScopeClaim} {
		var err error
		if *to, err = conf.Env(name); err != nil {
			return err
		}
	}
	if register, err := conf.Env(registerVariable); err != nil {
		return err
	} else if register != "" {
		rules.Gateway = c.ClusterName
	}
	switches, err := conf.Env("SCHEDRESTD_SECURITY")
	if err != nil {
		return err
	}
	rules.OneUser = slices.Contains(strings.FieldsFunc(switches, func(r rune) bool { return r == ',' || r == ' ' }), "one_user_claim")
	hs256, rs256 := keySources(c)
	checks, claims := auth.Explain(token, auth.Options{Rules: rules}, hs256, rs256)
	steps = append(steps, checks...)
	switch {
	case claims.ActFor != "":
		steps = append(steps, explainGroup(claims.ActFor))
	case claims.User != "":
		steps = append(steps, explainUser(claims, c))
	}
	if claims.Gateway {
		steps = append(steps, explainRegister(claims))
	}
	words := map[auth.Outcome]string{auth.Passed: "good", auth.Refuses: "REFUSED", auth.Unchecked: "unknown"}
	var refusal, unknown *auth.Step
	for i, s := range steps {
		if _, err := fmt.Fprintf(w, "%-9s  %-7s  %s\n", s.Name, words[s.Outcome], printable.Text(s.Text)); err != nil {
			return err
		}
		switch {
		case s.Outcome == auth.Refuses:
			refusal = cmp.Or(refusal, &steps[i])
		case s.Outcome == auth.Unchecked && s.Name == "signature":
			unknown = &steps[i]
		}
	}
	switch {
	case refusal != nil:
		reason, _, _ := strings.Cut(refusal.Text, "; ") // the rest is in the list
		return errs.New(errs.Unauthenticated, "the token is refused: %s", printable.Text(reason)).WithHint("%s", refusalRemedies[refusal.Name])
	case unknown != nil:
		fmt.Fprintln(w, "\nNothing is wrong with the token, if its signature is genuine: the daemons verify it.")
	default:
		fmt.Fprintln(w, "\nNothing is wrong with the token.")
	}
	return nil
}

// refusalRemedies has a hint for each step of an explanation.
var refusalRemedies = map[string]string{
	"setting":   "add AuthAltTypes=auth/jwt, and restart the daemons and the gateway",
	"text":      "a token has only letters, digits, - and _, and two dots",
	"size":      "let the identity provider leave out claims",
	"form":      "copy the whole token, as scontrol token or the identity provider printed it",
	"header":    "only RS256 and HS256 tokens are accepted; KEYS.md has the rules",
	"payload":   "KEYS.md has the rules for tokens",
	"dates":     "get a new token; if its dates are right, compare the clocks of this machine and of the token's issuer",
	"user":      "AuthAltParameters= names the claim of the user (userclaimfield=); IDENTITY-PROVIDER.md",
	"provider":  "get the token from the provider, and for the client, that the gateway's variables SCHEDRESTD_TOKEN_… name",
	"signature": "the token was made with another key, or changed; restart slurmctld and slurmdbd after a change of their keys",
	"group":     "the group must exist on the gateway's machine",
	"register":  "create another token, or mend the register, as the error says",
	"account": "the user must exist on the gateway's machine, with the uid of the account in the cluster; if only the daemons know the users, " +
		"SCHEDRESTD_UNKNOWN_USERS=controller leaves unknown ones to them. Always: " + refusedUsersHint,
}

// keySources returns the keys of the configuration that this process can use.
func keySources(c *conf.Cluster) (hs256, rs256 auth.KeySource) {
	trust := guard.Trust{PrivateGroup: nss.PrivateGroup}
	if uid, err := direct.SchedUser(c); err == nil {
		trust.Owners = []uint32{uid}
	}
	missing := func(name string, err error) auth.KeySource {
		return auth.KeySource{Name: name, Missing: fmt.Sprintf("%s: %v", name, err)}
	}
	hs256.Missing, rs256.Missing = "the configuration has no jwt_key=", "the configuration has no jwks="
	if c.JWTKey != "" {
		name := "jwt_key=" + c.JWTKey
		if key, err := auth.LoadKey(c.JWTKey, trust); err != nil {
			hs256 = missing(name, err)
		} else {
			hs256 = auth.KeyFile(name, key)
		}
	}
	if c.JWKS != "" {
		name := "jwks=" + c.JWKS
		if set, err := auth.LoadKeySet(c.JWKS, trust); err != nil {
			rs256 = missing(name, err)
		} else {
			rs256 = auth.KeySetFile(name, set)
		}
	}
	return hs256, rs256
}

// explainRegister says whether the register revokes a gateway token.
func explainRegister(claims auth.Claims) auth.Step {
	step := auth.Step{Name: "register"}
	f, err := openRegister("", false)
	if err != nil {
		step.Outcome, step.Text = auth.Refuses, err.Error()
		return step
	}
	defer f.Close()
	r, err := readRegister(f)
	switch {
	case err != nil:
		step.Outcome, step.Text = auth.Refuses, err.Error()
	case r.Revokes(gatewaytoken.Token{ID: claims.ID, User: claims.User, Issued: claims.IssuedAt}):
		step.Outcome, step.Text = auth.Refuses, "revoked: "+f.Name()
	default:
		step.Text = "not revoked: " + f.Name()
	}
	return step
}

// explainGroup describes the group for whose members a token acts, which the gateway
// looks up on its machine.
func explainGroup(name string) auth.Step {
	step := auth.Step{Name: "group"}
	g, err := nss.LookupGroup(name)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		step.Outcome, step.Text = auth.Refuses, "this machine has no group "+name
	case err != nil:
		step.Outcome, step.Text = auth.Unchecked, err.Error()
	default:
		step.Text = fmt.Sprintf("%s has gid %d on this machine", name, g.GID)
	}
	return step
}

// explainUser describes the account of the token's user, which the gateway looks
// up on its machine.
func explainUser(claims auth.Claims, c *conf.Cluster) auth.Step {
	step := auth.Step{Name: "account"}
	setting, err := conf.Env("SCHEDRESTD_UNKNOWN_USERS")
	if err != nil {
		return auth.Step{Name: "account", Outcome: auth.Unchecked, Text: err.Error()}
	}
	if claims.UID != nil && auth.IsNobody(*claims.UID) {
		step.Outcome, step.Text = auth.Refuses, fmt.Sprintf("the token's uid %d stands for unknown users", *claims.UID)
		return step
	}
	u, err := nss.LookupUser(claims.User)
	privileged := u.UID == 0
	if uid, err := direct.SchedUser(c); err == nil {
		privileged = privileged || u.UID == uid
	}
	switch {
	case errs.KindOf(err) == errs.NotFound && setting == "controller":
		step.Outcome, step.Text = auth.Unchecked, "this machine has no user "+claims.User+"; the daemons decide, because of SCHEDRESTD_UNKNOWN_USERS"
	case errs.KindOf(err) == errs.NotFound:
		step.Outcome, step.Text = auth.Refuses, "this machine has no user "+claims.User
	case err != nil:
		step.Outcome, step.Text = auth.Unchecked, err.Error()
	case auth.IsNobody(u.UID):
		step.Outcome, step.Text = auth.Refuses, fmt.Sprintf("uid %d stands for unknown users", u.UID)
	case claims.UID != nil && u.UID != *claims.UID:
		step.Outcome, step.Text = auth.Refuses, fmt.Sprintf("the token has uid %d, but the user has uid %d on this machine", *claims.UID, u.UID)
	case c.AuthType == "auth/cred" && u.UID != 0 && (become.Ucred{UID: u.UID, GID: u.GID}).Verify() != nil:
		step.Outcome, step.Text = auth.Refuses, fmt.Sprintf("the daemons refuse uid %d and gid %d", u.UID, u.GID)
	default:
		step.Text = fmt.Sprintf("uid %d and gid %d on this machine", u.UID, u.GID)
		if privileged && !claims.Gateway {
			step.Text += "; may act for every user, so with require_user_name a request must name one"
		}
	}
	return step
}
