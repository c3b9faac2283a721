package auth

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// The headers that identify a user. Each has two names.
var (
	nameHeaders  = []string{"X-Sched-User-Name", "X-Slurm-User-Name"}
	tokenHeaders = []string{"X-Sched-User-Token", "X-Slurm-User-Token"}
)

const authorization = "Authorization"

// FromRequest returns the credential of r, or an error.
//
// If a token was sent, FromRequest uses it even on a local connection. A client
// that sends a token must never be served as the connection's user instead.
// Ambiguous headers are refused, because a proxy in front of the gateway may
// have interpreted them differently.
func FromRequest(r *http.Request, opt Options) (Credential, error) {
	if err := checkConnection(r.Header); err != nil {
		return Credential{}, err
	}
	name, err := userName(r.Header)
	if err != nil {
		return Credential{}, err
	}
	token, err := userToken(r.Header)
	if err != nil {
		return Credential{}, err
	}
	switch {
	case token != "" && !opt.JWT:
		return Credential{}, refuse("token sent, but rest_auth/jwt is not enabled")
	case token != "":
		claims, proof, err := inspect(token, opt)
		if err != nil {
			return Credential{}, err
		}
		if err := claims.checkExpiry(timeOf(opt.Now)); err != nil {
			return Credential{}, refuse("token: %w", err)
		}
		if err := claims.checkName(name); err != nil {
			return Credential{}, err
		}
		if opt.Privileged != nil && opt.Privileged(authority(name, claims)) {
			return Credential{}, refuse("the request has the authority of a privileged user: name another user to act as")
		}
		return Credential{Token: token, ActAs: name, Claims: claims, proof: proof}, nil
	case opt.Local:
		return local(r, name, opt)
	}
	return Credential{}, refuse("no token")
}

// checkName refuses a request with a gateway token that names a user as whom the
// token can't act. The keeper decides the same.
func (c *Claims) checkName(name string) error {
	switch {
	case !c.Gateway:
	case c.ActFor != "" && name == "":
		// A proxy may omit the name, or a client may make it do so. The request
		// must not be served as the token's own user then.
		return refuse("the gateway token acts for the members of a group: name the user to act as")
	case c.ActFor == "" && name != "" && name != c.User:
		return refuse("the gateway token can't act as another user")
	}
	return nil
}

// authority returns the user as whom the daemons would carry out a request that
// names the user name, or no user, and has a token with the given claims. The
// uid is nil, unless the daemons take it from the token.
func authority(name string, claims Claims) (string, *uint32) {
	if name == "" || name == claims.User {
		return claims.User, claims.UID
	}
	return name, nil
}

// HasCredential reports whether a request contains a token or a user name, even
// an invalid one.
func HasCredential(h http.Header) bool {
	name, nameErr := userName(h)
	token, tokenErr := userToken(h)
	return name != "" || token != "" || nameErr != nil || tokenErr != nil || checkConnection(h) != nil
}

// checkConnection refuses a request whose Connection or Proxy-Connection header
// lists an identity header. A proxy removes the listed headers, because they
// are only for the next hop. Suppose that one proxy sends root's token and adds
// the user's name, and that a second proxy forwards the request. A client that
// lists the name header in Connection could make the second proxy remove the
// name. The client would then be served as root. Quotes in the two headers are
// ignored, because parsers interpret them differently.
func checkConnection(h http.Header) error {
	for _, value := range slices.Concat(h["Connection"], h["Proxy-Connection"]) {
		for option := range strings.FieldsFuncSeq(value, isNameSeparator) {
			name := textproto.CanonicalMIMEHeaderKey(option)
			if name == authorization || slices.Contains(nameHeaders, name) || slices.Contains(tokenHeaders, name) {
				return refuse("the Connection header lists %s", name)
			}
		}
	}
	return checkUnderscores(h)
}

// checkUnderscores refuses an identity header whose name contains underscores.
// To the gateway, X_Sched_User_Name and X-Sched-User-Name are different
// headers, but a CGI program can't tell them apart. So a proxy may have read
// the user's name from the wrong header, or may send the name in the wrong
// header. In the second case, a gateway that ignored the header with
// underscores would use the proxy's token without a name.
func checkUnderscores(h http.Header) error {
	for header := range h {
		if !strings.Contains(header, "_") {
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(header, "_", "-"))
		if slices.Contains(nameHeaders, name) || slices.Contains(tokenHeaders, name) {
			return refuse("%s is written with underscores", name)
		}
	}
	return nil
}

// isNameSeparator reports whether r can't be part of an identity header's name.
// checkConnection splits the Connection headers at such characters.
func isNameSeparator(r rune) bool {
	return r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// userName returns the name to act as, or "" if none was sent.
func userName(h http.Header) (string, error) {
	name, err := singleValue(h, nameHeaders)
	if err == nil && name != "" && !PosixName(name) {
		err = refuse("the name header is not a user name")
	}
	return name, err
}

// userToken returns the token from one of tokenHeaders or from "Authorization:
// Bearer", or "" if no token was sent. Other Authorization schemes are ignored:
// they may be for a proxy that asks for a password and forwards the header.
func userToken(h http.Header) (string, error) {
	token, err := singleValue(h, tokenHeaders)
	if err != nil {
		return "", err
	}
	value, err := singleValue(h, []string{authorization})
	if err != nil || value == "" {
		return token, err
	}
	end := strings.IndexAny(value+" ", " \t,;=")
	scheme, bearer := value[:end], strings.TrimLeft(value[end:], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return token, nil
	}
	if bearer == "" {
		return "", refuse("empty Bearer token")
	}
	if token != "" {
		return "", refuse("both a token header and a Bearer token")
	}
	return bearer, nil
}

// singleValue returns the value of a header that may be sent under any of the
// given names, or "" if it was not sent. It refuses a second header, even if
// both have the same value. It also refuses an empty value. Otherwise "act as
// no user" would become "act as the token's user".
func singleValue(h http.Header, names []string) (string, error) {
	var values []string
	for _, name := range names {
		values = append(values, h[name]...)
	}
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", refuse("%d headers of type %s", len(values), names[0])
	case values[0] == "":
		return "", refuse("empty %s", names[0])
	}
	return values[0], nil
}
