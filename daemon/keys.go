package daemon

import (
	"context"
	"log/slog"
	"os"
	"time"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/rpc/server"
)

// Keys is how a daemon judges tokens, and makes them. The zero Keys takes none.
type Keys struct {
	Key    *auth.Key // for HS256, and what is made; nil: there is no jwt_key=
	JWKS   string    // path of the key set for RS256; "": there is no jwks=
	Verify func(token, actAs string) (server.Identity, error)
}

// ReadKeys reads the keys of the configuration file path, whose part about authentication is a: one
// for HS256 (jwt_key=), a set for RS256 (jwks=), or both. The set is followed until ctx ends. It is
// refused when nobody could say who he is, or when a key that is named can't be used.
func ReadKeys(ctx context.Context, path string, a *conf.Auth, user nss.User, log *slog.Logger) (Keys, error) {
	switch {
	case a.AuthType != "auth/cred":
		return Keys{}, errs.New(errs.Unsupported, "%s: AuthType=%s is for Slurm's own daemons", path, a.AuthType).WithHint("AuthType=auth/cred")
	case !a.JWT && a.AuthSocket == "":
		return Keys{}, errs.New(errs.Invalid, "%s: nobody could say who he is", path).
			WithHint("AuthInfo=socket=PATH for users of this machine, AuthAltTypes=auth/jwt for tokens")
	case !a.JWT:
		if a.JWTKey != "" || a.JWKS != "" {
			log.Warn("AuthAltParameters= names keys for tokens, which are not taken without AuthAltTypes=auth/jwt")
		}
		return Keys{}, nil
	case a.JWTKey == "" && a.JWKS == "":
		return Keys{}, errs.New(errs.Invalid, "%s: AuthAltTypes=auth/jwt without a key", path).
			WithHint("AuthAltParameters=jwt_key=PATH for tokens of this cluster's own, jwks=PATH for an identity provider's")
	}
	k, tokens := Keys{JWKS: a.JWKS}, auth.Verifier{UserClaimField: a.UserClaimField}
	trust := guard.Trust{Owners: keyOwners(user), Private: nss.PrivateGroup}
	if a.JWTKey != "" {
		key, err := auth.LoadKey(a.JWTKey, trust)
		if err != nil {
			return Keys{}, err
		}
		warnAll(log, key.Warnings())
		k.Key, tokens.Key = &key, key
	}
	if a.JWKS != "" {
		var err error
		if tokens.Keys, err = followKeySet(ctx, a.JWKS, log, trust); err != nil {
			return Keys{}, err
		}
	}
	authority := &server.Authority{
		Token: func(token string) (string, time.Time, error) {
			claims, err := tokens.Verify(token)
			return claims.User, claims.Expires, err
		},
		Lookup: func(name string) (uint32, uint32, error) {
			u, err := nss.LookupUser(name)
			return u.UID, u.GID, err
		},
		Super: Super(user.UID),
	}
	k.Verify = authority.Verify
	return k, nil
}

// keyOwners are those who may have the files of keys, besides root. The first is who has to read them: the
// scheduler's user, whichever daemon makes the hint, or, for who can't read what he owns, this process's own.
func keyOwners(user nss.User) []uint32 {
	if self := uint32(os.Geteuid()); self != 0 {
		return []uint32{self, user.UID}
	}
	return []uint32{user.UID}
}

// lookEvery is how often a key set is looked at that no token asks for: who replaced it by a
// broken one is told soon, not when the first user is turned away.
const lookEvery = 2 * time.Second

// followKeySet reads the key set in the file path, and logs what becomes of it until ctx ends.
func followKeySet(ctx context.Context, path string, log *slog.Logger, trust guard.Trust) (func() *auth.KeySet, error) {
	var followed *auth.Followed
	told := func(err error) {
		if err != nil {
			attrs := []any{"error", err}
			if hint := errs.HintOf(err); hint != "" {
				attrs = append(attrs, "hint", hint)
			}
			log.Error("key set", attrs...)
			return
		}
		set := followed.KeySet()
		log.Info("key set read", "file", path, "keys", set.String())
		warnAll(log, set.Warnings())
	}
	followed, err := auth.FollowKeySet(path, told, trust)
	if err != nil {
		return nil, err
	}
	told(nil)
	go func() {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				followed.KeySet()
			}
		}
	}()
	return followed.KeySet, nil
}

func warnAll(log *slog.Logger, warnings []string) {
	for _, w := range warnings {
		log.Warn(w)
	}
}
