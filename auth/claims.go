package auth

import (
	"errors"
	"fmt"
	"time"

	"schedrestd/api/scope"
)

// leeway is the tolerated difference between this machine's clock and the clock
// of a token's issuer. The gateway and the daemons accept a token up to this
// long before its iat and nbf. Only the daemons also accept it up to this long
// after its exp.
const leeway = 5 * time.Second

// Claims has the contents of a token.
type Claims struct {
	User      string  // user that the token was issued for
	UID       *uint32 // uid of the user if the daemons take it from the token; otherwise nil
	IssuedAt  time.Time
	Expires   time.Time
	NotBefore time.Time // zero if the token has none
	Algorithm string    // "HS256" or "RS256", from the token's header
	KeyID     string    // kid of the token's header; "" if it has none
	Withheld  scope.Set // what the token does not permit: a gateway token, or because of Rules.ScopeClaim
	Gateway   bool      // it is a gateway token, which only the gateway accepts (package gatewaytoken)
	ID        string    // id of a gateway token
	ActFor    string    // the gateway token acts for the members of this Unix group, one of whom each request names; "": for User
}

// readDates reads the dates into c.
func (o object) readDates(c *Claims) error {
	for _, date := range []struct {
		name     string
		required bool
		dest     *time.Time
	}{{"iat", true, &c.IssuedAt}, {"exp", true, &c.Expires}, {"nbf", false, &c.NotBefore}} {
		seconds, ok, err := o.seconds(date.name)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", date.name, err)
		case ok:
			*date.dest = time.Unix(seconds, 0).UTC()
		case date.required:
			return fmt.Errorf("no %s", date.name)
		}
	}
	return nil
}

// checkDates compares the dates with the current time.
func (c *Claims) checkDates(now time.Time) error {
	switch {
	case !now.Before(c.Expires.Add(leeway)):
		return outOfDateError(fmt.Sprintf("expired %v ago", now.Sub(c.Expires).Round(time.Second)))
	case c.IssuedAt.After(now.Add(leeway)):
		return outOfDateError(fmt.Sprintf("issued %v from now", c.IssuedAt.Sub(now).Round(time.Second)))
	case c.NotBefore.After(now.Add(leeway)):
		return outOfDateError(fmt.Sprintf("valid %v from now", c.NotBefore.Sub(now).Round(time.Second)))
	}
	return nil
}

// checkExpiry returns an error if the token has expired, without any leeway. The
// gateway admits no request after the token's expiry. The daemons accept the
// token a little longer, because the gateway may still have to call them for a
// request that it admitted just before the expiry.
func (c *Claims) checkExpiry(now time.Time) error {
	if !now.Before(c.Expires) {
		return errExpired
	}
	return nil
}

var errExpired = errors.New("expired")

// outOfDateError is the error for a token that has expired or is not valid yet.
type outOfDateError string

func (e outOfDateError) Error() string { return string(e) }

// maxName limits the length of a user name. Tools create user names of at most
// 32 bytes. Every token is longer than 64 bytes, so a token in the wrong header
// is never taken for a user name.
const maxName = 64

// PosixName reports whether name is a valid user name according to POSIX.1-2017
// (3.437), with at most maxName bytes. A name consists of letters, digits,
// periods, underscores and hyphens, and does not begin with a hyphen. Since "0"
// is a valid name, a lookup must never treat a name as a uid.
func PosixName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
