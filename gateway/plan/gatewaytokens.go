package plan

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
	"schedrestd/rpc/munge"
)

// maxExchange is the longest max_token_lifespan= with which gateway tokens are
// accepted.
const maxExchange = time.Hour

// configureGatewayTokens returns an error if gateway tokens are to be accepted, but
// can't be, or if their ends would mean nothing: what the daemons get in their
// place could be exchanged for a token that outlives them.
func (o *options) configureGatewayTokens(c *conf.Cluster, s *work.Setup) error {
	o.Run.Switches.Credentials = o.TokenMode == "bound" && s.Register != ""
	perMessage := o.TokenMode == "bound" || o.TokenMode == "signed"
	name := "SCHEDRESTD_TOKEN_REGISTER"
	refuse := func(hint, format string, args ...any) error {
		return errs.New(errs.Invalid, name+": "+format, args...).WithHint("%s", hint)
	}
	switch {
	case s.Register == "" && perMessage:
		name = "SCHEDRESTD_TOKEN_MODE=" + o.TokenMode
		return refuse("set SCHEDRESTD_TOKEN_REGISTER, too, or remove SCHEDRESTD_TOKEN_MODE", "no gateway tokens are accepted")
	case s.Register == "":
		return nil
	case !s.JWT:
		return refuse("set AuthAltTypes=auth/jwt in the configuration, and SCHED_JWT=daemon", "gateway tokens need tokens of the cluster, which are not accepted here")
	case c.JWTKey == "":
		return refuse("set AuthAltParameters=jwt_key=PATH in the configuration", "gateway tokens need the cluster's key, because theirs is derived from it")
	case perMessage:
		name = "SCHEDRESTD_TOKEN_MODE=" + o.TokenMode
		return o.configureCredentials(c, s, refuse)
	case s.ClientIDsOnly:
		return refuse("remove use_jwt_client_ids_only from AuthAltParameters, or set SCHEDRESTD_TOKEN_MODE=bound", "the daemons accept only tokens with the claims of an identity, which the gateway can't make")
	case c.CanRenewTokens() && (c.MaxTokenLifespan <= 0 || c.MaxTokenLifespan > maxExchange):
		return refuse("set SCHEDRESTD_TOKEN_MODE=bound or signed, or add disable_token_creation, or max_token_lifespan=3600 or less, to AuthAltParameters= of the controller and of the gateway",
			"the controller would exchange what it gets in place of a gateway token for a token of any lifespan")
	case s.TokenLifetime > 0 && c.CanRenewTokens():
		return refuse("add disable_token_creation to AuthAltParameters= of the controller and of the gateway, or remove SCHEDRESTD_TOKEN_LIFETIME",
			"with SCHEDRESTD_TOKEN_LIFETIME, what the controller gives in exchange for a token could create a token that outlives it")
	}
	return nil
}

// configureCredentials determines where the credentials of users' messages come from:
// from processes of these users, or from the keeper.
func (o *options) configureCredentials(c *conf.Cluster, s *work.Setup, refuse func(hint, format string, args ...any) error) error {
	uid, err := schedUser(c)
	switch {
	case o.TokenMode == "signed" && c.AuthType != "auth/slurm":
		return refuse("set SCHEDRESTD_TOKEN_MODE=bound, or remove it", "the gateway can sign only credentials of auth/slurm, and the configuration has AuthType=%s", c.AuthType)
	case o.TokenMode == "signed" && c.SlurmClientIDs:
		return refuse("set SCHEDRESTD_TOKEN_MODE=bound, or remove use_client_ids from AuthInfo", "with use_client_ids a credential needs the user's name and groups, which only sackd adds")
	case o.TokenMode == "bound" && !o.start.Root:
		return refuse("start the gateway as root with -u, or remove SCHEDRESTD_TOKEN_MODE", "only root can start a process of each user")
	case c.AuthType != "auth/munge" && c.AuthType != "auth/slurm":
		return refuse("remove SCHEDRESTD_TOKEN_MODE", "AuthType=%s has no credentials that are bound to a message, as auth/munge and auth/slurm have", c.AuthType)
	case err != nil:
		return refuse(missingUserHint(c), "the uid of the cluster user is unknown: %v", err)
	}
	s.Credentials.SchedUID = uid.UID
	if o.TokenMode == "signed" {
		s.Credentials.Signed = true
		if o.signingKey = o.slurmKey(c); o.signingKey == "" {
			return refuse("set SLURM_SACK_KEY=PATH", "the directory of the key is unknown, because the configuration is not a file")
		}
		return nil
	}
	if c.AuthType == "auth/slurm" {
		s.Credentials.Sack = o.sackSockets(c)
		return nil
	}
	s.Credentials.Munge = work.Munge{Socket: cmp.Or(c.Munge.Socket, munge.DefaultSocket), TTL: c.Munge.TTL}
	if c.Accounting != nil {
		s.Credentials.Munge.Accounting = c.Accounting.Munge
	}
	return nil
}

// slurmKey returns the path of the key with which Slurm's daemons sign credentials of
// auth/slurm, or "" if it is unknown. They look for the key set first, too.
func (o *options) slurmKey(c *conf.Cluster) string {
	beside := func(name string) string {
		if !filepath.IsAbs(c.Path) || c.Path == os.DevNull {
			return ""
		}
		return filepath.Join(filepath.Dir(c.Path), name)
	}
	if set := cmp.Or(o.SackJWKS, beside("slurm.jwks")); set != "" && o.host.Exists(set) {
		return set
	}
	return cmp.Or(o.SackKey, beside("slurm.key"))
}
