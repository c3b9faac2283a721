package conf

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// authKeys are the keys that both files share; auth finds where they go.
func authKeys[T any](auth func(*T) *Auth) []key[T] {
	each := func(name string, set func(*Auth, string) error) key[T] {
		return key[T]{name: name, set: func(to *T, v string) error { return set(auth(to), v) }}
	}
	return []key[T]{
		each("AuthType", setAuthType),
		each("AuthInfo", setAuthInfo),
		each("AuthAltTypes", setAltTypes),
		each("AuthAltParameters", setAltParameters),
	}
}

func setAuthType(a *Auth, v string) error {
	switch name := plugin(v, "auth/"); name {
	case "cred", "munge":
		a.AuthType = "auth/" + name
	case "slurm", "sched":
		a.AuthType = "auth/slurm"
	default:
		return wants("auth/cred, auth/munge or auth/slurm")
	}
	return nil
}

// setAuthInfo takes the socket: munged's under auth/munge, the controller's own
// under auth/cred. The other parameters are for Slurm's plugins.
func setAuthInfo(a *Auth, v string) error {
	for _, p := range commas(v) {
		if name, value, _ := strings.Cut(p, "="); fold(name) == "socket" {
			return setPath(&a.AuthSocket, value)
		}
	}
	return nil
}

func setAltTypes(a *Auth, v string) error {
	for _, t := range commas(v) {
		if plugin(t, "auth/") != "jwt" {
			return wants("auth/jwt")
		}
		a.JWT = true
	}
	return nil
}

func setAltParameters(a *Auth, v string) error {
	var unknown []string
	for _, p := range commas(v) {
		name, value, _ := strings.Cut(p, "=")
		var err error
		switch fold(name) {
		case "jwt_key":
			err = setPath(&a.JWTKey, value)
		case "jwks":
			err = setPath(&a.JWKS, value)
		case "userclaimfield":
			err = setClaim(&a.UserClaimField, value)
		case "max_token_lifespan":
			err = setSeconds(&a.MaxTokenLifespan, value)
		case "disable_token_creation":
			a.DisableTokenCreation = true
		default:
			unknown = append(unknown, strconv.Quote(name))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", fold(name), err)
		}
	}
	if len(unknown) > 0 {
		return passedOver("unknown parameter " + strings.Join(unknown, ", ") + ", passed over")
	}
	return nil
}

// setClaim takes the name of the claim that holds the user. The dates of a token are no names.
func setClaim(to *string, v string) error {
	if v == "" || len(v) > 64 || v == "exp" || v == "iat" || v == "nbf" {
		return wants("the name of a claim")
	}
	*to = v
	return nil
}

// complete fills in the defaults that hang on other keys.
func (a *Auth) complete(slurm bool, state string) {
	switch {
	case a.AuthType != "":
	case slurm:
		a.AuthType = "auth/munge"
	default:
		a.AuthType = "auth/cred"
	}
	if a.JWT && a.JWTKey == "" && a.JWKS == "" && state != "" {
		a.JWTKey = filepath.Join(state, "jwt_hs256.key") // where Slurm looks, too
	}
}

// defaultMessageTimeout is how long an answer may take, as Slurm's.
const defaultMessageTimeout = 10 * time.Second
