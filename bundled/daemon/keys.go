package daemon

import (
	"context"
	"log/slog"
	"os"
	"time"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/rpc/server"
)

// Keys verifies and creates tokens. A zero Keys value accepts no token.
type Keys struct {
	Key    *auth.Key // verifies HS256 tokens and creates tokens; nil without jwt_key=
	JWKS   string    // path of the key set for RS256; "" without jwks=
	Verify func(token, actAs string) (server.Identity, error)
}

// ReadKeys reads the keys that the configuration file names: a key for HS256
// (jwt_key=), a key set for RS256 (jwks=), or both. The argument a is the
// authentication section of the file, and path is the path of the file.
// ReadKeys follows changes to the key set until ctx is done. It returns an
// error if it can't use one of these keys.
func ReadKeys(ctx context.Context, path string, a *conf.Auth, user nss.User, log *slog.Logger) (Keys, error) {
	switch {
	case a.AuthType != "auth/cred":
		return Keys{}, errs.New(errs.Unsupported, "%s: AuthType=%s is supported only by Slurm's own daemons", path, a.AuthType).
			WithHint("set AuthType=auth/cred")
	case !a.JWT:
		if a.JWTKey != "" || a.JWKS != "" {
			log.Warn("token keys ignored", "reason", "AuthAltTypes=auth/jwt is not set")
		}
		return Keys{}, nil
	case a.JWTKey == "" && a.JWKS == "":
		return Keys{}, errs.New(errs.Invalid, "%s: AuthAltTypes=auth/jwt without a key", path).
			WithHint("set AuthAltParameters=jwt_key=PATH for the cluster's own tokens, " +
				"or jwks=PATH for those of an identity provider")
	}
	k, tokens := Keys{JWKS: a.JWKS}, auth.Verifier{Rules: auth.Rules{UserField: a.UserClaimField}}
	trust := guard.Trust{Owners: keyOwners(user), PrivateGroup: nss.PrivateGroup}
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

// keyOwners returns the users other than root who may own key files. The first
// user in the list is the one who has to read the files: the user of this
// process or, if that is root, the scheduler's user. Error hints name this
// first user.
func keyOwners(user nss.User) []uint32 {
	if self := uint32(os.Geteuid()); self != 0 {
		return []uint32{self, user.UID}
	}
	return []uint32{user.UID}
}

// checkInterval is the time between regular checks that look for changes to the
// file of a key set. Verifying a token also checks the file. But without the
// regular checks, a broken file would not be logged until the next token
// arrives.
const checkInterval = 2 * time.Second

// followKeySet reads the key set in a file and returns a function that returns
// the current key set. Until ctx is done, it follows changes to the file and
// logs them.
func followKeySet(ctx context.Context, path string, log *slog.Logger, trust guard.Trust) (func() *auth.KeySet, error) {
	var followed *auth.Followed
	report := func(err error) {
		if err != nil {
			attrs := []any{"error", err}
			if hint := errs.HintOf(err); hint != "" {
				attrs = append(attrs, "hint", hint)
			}
			log.Error("reading key set failed", attrs...)
			return
		}
		set := followed.KeySet()
		log.Info("key set read", "file", path, "keys", set.String())
		warnAll(log, set.Warnings())
	}
	followed, err := auth.FollowKeySet(path, report, trust)
	if err != nil {
		return nil, err
	}
	report(nil)
	go func() {
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
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
