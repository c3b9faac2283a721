package conf

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/typo"
)

// authKeys returns the keys that both configuration files share. The argument
// auth is a function that returns the Auth in which to store the values of
// these keys.
func authKeys[T any](auth func(*T) *Auth) []key[T] {
	newKey := func(name string, set func(*Auth, string) error) key[T] {
		return key[T]{name: name, set: func(to *T, v string) error { return set(auth(to), v) }}
	}
	return []key[T]{
		newKey("AuthType", setAuthType),
		newKey("AuthInfo", setAuthInfo),
		newKey("AuthAltTypes", setAltTypes),
		newKey("AuthAltParameters", setAltParameters),
		newKey("jwt_key", misplacedParameter),
		newKey("jwks", misplacedParameter),
		newKey("userclaimfield", misplacedParameter),
		newKey("max_token_lifespan", misplacedParameter),
	}
}

func setAuthType(a *Auth, v string) error {
	switch name := pluginName(v, "auth/"); name {
	case "cred", "munge":
		a.AuthType = "auth/" + name
	case "slurm", "sched":
		a.AuthType = "auth/slurm"
	default:
		a.AuthType = "auth/" + name
		note := strconv.Quote(v) + " is not supported here: only tokens are accepted (AuthAltTypes=auth/jwt)"
		if nearest := NearestAuthType(a.AuthType); nearest != "" {
			note += "; did you mean " + nearest + "?"
		}
		return toleratedError{wantError("auth/cred, auth/munge or auth/slurm"), note}
	}
	return nil
}

// NearestAuthType returns the value of AuthType that value probably stands for,
// or "" if it resembles none.
func NearestAuthType(value string) string {
	nearest := typo.Nearest(pluginName(value, "auth/"), []string{"cred", "munge", "slurm"})
	if nearest == "" {
		return ""
	}
	return "auth/" + nearest
}

// setAuthInfo sets the path of a socket, the lifetime of MUNGE credentials, and whether
// credentials of auth/slurm identify their user.
// With auth/munge, munged listens on that socket. With auth/cred, the daemon
// that the file configures listens on it. Other parameters, which are for
// Slurm's plugins, are ignored.
func setAuthInfo(a *Auth, v string) error {
	var n notes
	for _, p := range splitList(v) {
		if path, ok := socket(p); ok {
			if err := setPath(&a.AuthSocket, path); err != nil {
				return err
			}
		} else if fold(p) == "use_client_ids" {
			a.SlurmClientIDs = true
		} else if name, value, _ := strings.Cut(p, "="); fold(name) == "ttl" && setSeconds(&a.Munge.TTL, value) != nil {
			n.add("ttl: want a number of seconds above 0, ignored")
		}
	}
	return n.err()
}

// socket parses a parameter of the form "socket=PATH", or of the older form
// "PATH". It returns the path.
func socket(p string) (path string, ok bool) {
	if strings.HasPrefix(p, "/") && !strings.Contains(p, "=") {
		return p, true
	}
	name, path, ok := strings.Cut(p, "=")
	return path, ok && fold(name) == "socket"
}

// setAltTypes sets the alternative authentication methods. Only auth/jwt is
// supported. auth/munge and auth/slurm cause only a warning, because a gateway
// does not need them as alternatives.
func setAltTypes(a *Auth, v string) error {
	var n notes
	for _, t := range splitList(v) {
		switch name := pluginName(t, "auth/"); name {
		case "jwt":
			a.JWT = true
		case "munge", "slurm":
			n.add("auth/" + name + " is supported only as AuthType, ignored")
		default:
			n.tolerate(wantError("auth/jwt"), strconv.Quote(t)+" is not supported, ignored")
		}
	}
	return n.err()
}

// setAltParameters sets the parameters for tokens. In a file for our daemons, a
// repeated parameter is an error. For example, if jwt_key= is given twice, it
// is not clear which key is meant. In a file of a site's Slurm (see isSite), a
// repeated parameter causes only a warning, and its first value is used, as in
// Slurm.
func setAltParameters(a *Auth, v string) error {
	var n notes
	seen := map[string]bool{}
	for _, p := range splitList(v) {
		name, value, hasValue := strings.Cut(p, "=")
		name = fold(strings.TrimSpace(name))
		if seen[name] {
			n.tolerate(fmt.Errorf("%q is given twice", name), name+": repeated; the first one is used")
			continue
		}
		seen[name] = true
		a.setParameter(name, strings.TrimSpace(value), hasValue, &n)
	}
	return n.err()
}

// setParameter sets one parameter. It adds its warnings and errors to n.
func (a *Auth) setParameter(name, value string, hasValue bool, n *notes) {
	record := func(err error, note string) {
		if err != nil {
			n.tolerate(fmt.Errorf("%s: %w", name, err), name+": "+note)
		}
	}
	const relativeNote = "not an absolute path, so each program would read another file; ignored, and the daemons verify tokens"
	switch name {
	case "jwt_key":
		record(setPath(&a.JWTKey, value), relativeNote)
		a.HasUnusableKey = a.JWTKey == ""
	case "jwks":
		record(setPath(&a.JWKS, value), relativeNote)
		a.HasUnusableKey = a.HasUnusableKey || a.JWKS == ""
	case "userclaimfield":
		record(setClaim(&a.UserClaimField, value), "not the name of a user claim, ignored")
	case "max_token_lifespan":
		record(setSeconds(&a.MaxTokenLifespan, value), "not a number of seconds above 0, ignored")
		if a.MaxTokenLifespan > maxTokenLifespan {
			a.MaxTokenLifespan = maxTokenLifespan
			n.add(fmt.Sprintf("max_token_lifespan: reduced to the maximum, %d", maxTokenLifespan/time.Second))
		}
	case "disable_token_creation":
		a.DisableTokenCreation = true
		if hasValue { // the meaning of "=no" would be ambiguous
			record(errors.New("takes no value"), "enabled; its value is ignored")
		}
	case "use_jwt_client_ids", "use_jwt_client_ids_only": // Slurm 26.05
		a.ClientIDs, a.ClientIDsOnly = true, a.ClientIDsOnly || name == "use_jwt_client_ids_only"
		n.refuse(name + ": the bundled daemons look users up on their own machine")
	default:
		n.add(fmt.Sprintf("unknown parameter %q, ignored", name))
	}
}

// A notes value collects the warnings and the first error about the parts of
// one key's value.
type notes struct {
	refusal error // error for the first part that our daemons refuse
	texts   []string
}

func (n *notes) add(text string) { n.texts = append(n.texts, text) }

// refuse adds an error for our daemons, and no warning for others.
func (n *notes) refuse(reason string) { n.refusal = cmp.Or(n.refusal, errors.New(reason)) }

func (n *notes) tolerate(refusal error, text string) {
	n.refusal = cmp.Or(n.refusal, refusal)
	n.add(text)
}

// err returns the collected notes as one error, for the function that sets the
// key. The type of the error is toleratedError if n has an error, or
// warningError if n has only warnings. Without notes, err returns nil.
func (n *notes) err() error {
	text := strings.Join(n.texts, "; ")
	switch {
	case n.refusal != nil:
		return toleratedError{n.refusal, text}
	case text != "":
		return warningError(text)
	}
	return nil
}

// misplacedParameter returns an error for a parameter of AuthAltParameters that
// appears as a key of the file. This happens if the list of parameters has a
// space after a comma, because the space ends the value of AuthAltParameters.
// Without the error, the restriction that the parameter sets would be lost.
func misplacedParameter(*Auth, string) error {
	return errors.New("is a parameter of AuthAltParameters=; write it there, after a comma and without spaces")
}

// Lifetimes of tokens that the daemons create.
const (
	maxTokenLifespan     = 366 * 24 * time.Hour // maximum that the configuration may set
	defaultTokenLifespan = 30 * 24 * time.Hour  // default; a stolen token should be usable for days, not for years
)

// LifespanLimit returns the maximum lifetime of tokens that are created with
// this configuration.
func (a *Auth) LifespanLimit() time.Duration { return cmp.Or(a.MaxTokenLifespan, defaultTokenLifespan) }

// CanRenewTokens reports whether anyone who has a user's token can exchange it for
// one that expires later, as often as they like. Slurm's controllers permit this
// if they have a key to sign tokens with, to all users but those of
// disable_token_creation (since 20.11). The lifetime of each new token is limited
// by max_token_lifespan (since 22.05), or not at all. The bundled controller never
// permits it.
func (a *Auth) CanRenewTokens() bool {
	return a.JWT && a.AuthType != "auth/cred" && (a.JWTKey != "" || a.HasUnusableKey) && !a.DisableTokenCreation
}

// setClaim sets which claim of a token contains the user's name. A claim that
// contains a time can't be used.
func setClaim(to *string, v string) error {
	if v == "" || len(v) > 64 || v == "exp" || v == "iat" || v == "nbf" {
		return wantError("the name of a claim")
	}
	*to = v
	return nil
}

// Default paths.
const (
	slurmState   = "/var/spool" // default of Slurm's StateSaveLocation
	mungedSocket = "/run/munge/munge.socket.2"

	ControllerSocket = "/run/schedctld/socket" // of the bundled controller
	AccountingSocket = "/run/scheddbd/socket"  // of the bundled accounting daemon
)

// complete sets the defaults that depend on other keys. The argument socket is
// the default path of the daemon's own socket.
func (a *Auth) complete(slurm bool, state, socket string) {
	switch {
	case a.AuthType != "":
	case slurm:
		a.AuthType = "auth/munge"
	default:
		a.AuthType = "auth/cred"
	}
	switch a.AuthType {
	case "auth/munge":
		a.AuthSocket, a.Munge.Socket = "", cmp.Or(a.AuthSocket, mungedSocket)
	case "auth/cred":
		a.AuthSocket, a.Munge = cmp.Or(a.AuthSocket, socket), Munge{}
	default:
		a.AuthSocket, a.Munge = "", Munge{}
	}
	if a.JWT && a.JWTKey == "" && a.JWKS == "" && state != "" && !a.HasUnusableKey {
		a.JWTKey = filepath.Join(state, "jwt_hs256.key") // as in Slurm
	}
}

// defaultMessageTimeout is the default time limit for a daemon's answer, as in
// Slurm.
const defaultMessageTimeout = 10 * time.Second
