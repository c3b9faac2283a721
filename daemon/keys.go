package daemon

import (
	"log/slog"
	"os"
	"time"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/rpc/server"
)

// Keys is how a daemon judges tokens, and makes them. The zero Keys takes none.
type Keys struct {
	Key    *auth.Key // nil: the configuration has no auth/jwt
	Verify func(token, actAs string) (server.Identity, error)
}

// ReadKeys reads the key of the configuration file path, whose part about authentication is a.
// It is refused when nobody could say who he is.
func ReadKeys(path string, a *conf.Auth, user become.User, log *slog.Logger) (Keys, error) {
	switch {
	case a.AuthType != "auth/cred":
		return Keys{}, errs.New(errs.Unsupported, "%s: AuthType=%s is for Slurm's own daemons", path, a.AuthType).WithHint("AuthType=auth/cred")
	case !a.JWT && a.AuthSocket == "":
		return Keys{}, errs.New(errs.Invalid, "%s: nobody could say who he is", path).
			WithHint("AuthInfo=socket=PATH for users of this machine, AuthAltTypes=auth/jwt for tokens")
	case !a.JWT:
		return Keys{}, nil
	case a.JWTKey == "":
		return Keys{}, errs.New(errs.Invalid, "%s: AuthAltTypes=auth/jwt without a key", path).WithHint("AuthAltParameters=jwt_key=PATH")
	}
	key, err := auth.LoadKey(a.JWTKey, user.UID, uint32(os.Geteuid()))
	if err != nil {
		return Keys{}, err
	}
	for _, w := range key.Warnings() {
		log.Warn(w)
	}
	tokens := auth.Verifier{Key: key, UserClaimField: a.UserClaimField}
	authority := &server.Authority{
		Token: func(token string) (string, time.Time, error) {
			claims, err := tokens.Verify(token)
			return claims.User, claims.Expires, err
		},
		Lookup: func(name string) (uint32, uint32, error) {
			u, err := become.LookupUser(name)
			return u.UID, u.GID, err
		},
		Super: Super(user.UID),
	}
	return Keys{Key: &key, Verify: authority.Verify}, nil
}
