package plan

import (
	"time"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// maxExchange is the longest max_token_lifespan= with which gateway tokens are
// accepted.
const maxExchange = time.Hour

// checkGatewayTokens returns an error if gateway tokens are to be accepted, but
// can't be, or if their ends would mean nothing: what the daemons get in their
// place could be exchanged for a token that outlives them.
func checkGatewayTokens(c *conf.Cluster, s *work.Setup) error {
	refuse := func(hint, format string, args ...any) error {
		return errs.New(errs.Invalid, "SCHEDRESTD_TOKEN_REGISTER: "+format, args...).WithHint("%s", hint)
	}
	switch {
	case s.Register == "":
		return nil
	case !s.JWT:
		return refuse("set AuthAltTypes=auth/jwt in the configuration, and SCHED_JWT=daemon", "gateway tokens need tokens of the cluster, which are not accepted here")
	case c.JWTKey == "":
		return refuse("set AuthAltParameters=jwt_key=PATH in the configuration", "gateway tokens need the cluster's key, because theirs is derived from it")
	case s.ClientIDsOnly:
		return refuse("remove use_jwt_client_ids_only from AuthAltParameters", "the daemons accept only tokens with the claims of an identity, which the gateway can't make")
	case c.CanRenewTokens() && (c.MaxTokenLifespan <= 0 || c.MaxTokenLifespan > maxExchange):
		return refuse("add disable_token_creation, or max_token_lifespan=3600 or less, to AuthAltParameters= of the controller and of the gateway",
			"the controller would exchange what it gets in place of a gateway token for a token of any lifespan")
	}
	return nil
}
