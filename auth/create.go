package auth

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/errs"
)

// Lifetimes of created tokens.
const (
	DefaultLifespan = 1800 * time.Second
	MaxLifespan     = 366 * 24 * time.Hour // a token with a longer lifetime would amount to an account without a password
)

// Create returns a token for a user. The token's iat is the now argument, and
// its exp is iat plus lifespan. Both arguments are rounded down to seconds.
// Create does not check whether the client may have a token for this user: the
// caller must do so. An invalid user or lifespan causes errs.Invalid.
func Create(key Key, user string, lifespan time.Duration, now time.Time) (string, error) {
	switch {
	case len(key.secret()) < minKey:
		return "", errs.New(errs.Internal, "create token: no key")
	case !PosixName(user):
		return "", errs.New(errs.Invalid, "not a user name")
	case lifespan < time.Second || lifespan > MaxLifespan:
		return "", errs.New(errs.Invalid, "lifespan must be from 1 to %d seconds", MaxLifespan/time.Second)
	}
	iat := now.Unix()
	claims := jwt.MapClaims{"iat": iat, "exp": iat + int64(lifespan/time.Second), "sun": user}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key.secret())
	return token, errs.Wrap(err, errs.Internal, "create token")
}

// CreateGatewayToken returns a gateway token, which the gateways of the cluster with
// this key accept. It does not record the token. What can't be in such a token
// causes errs.Invalid.
func CreateGatewayToken(key Key, t gatewaytoken.Token) (string, error) {
	if len(key.secret()) < minKey {
		return "", errs.New(errs.Internal, "create token: no key")
	}
	token, err := gatewaytoken.Sign(t, key.secret())
	return token, errs.Wrap(err, errs.Invalid, "gateway token")
}
