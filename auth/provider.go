package auth

import (
	"errors"
	"slices"

	"schedrestd/api/scope"
	"schedrestd/auth/jose"
)

// checkProvider checks the administrator's rules for the tokens of an identity
// provider, which are those that a key of the key set signs. The daemons have no
// such rules.
func (e *examination) checkProvider() error {
	r := e.rules
	if r.OneUser {
		if err := e.members.checkOneUser(r.UserField); err != nil {
			return err
		}
	}
	if e.alg != rs256 {
		return nil
	}
	if r.Issuer != "" {
		if issuer, _, err := e.members.text("iss"); err != nil || issuer != r.Issuer {
			return errors.New("the claim iss is not that of SCHEDRESTD_TOKEN_ISSUER")
		}
	}
	if r.Audience != "" {
		if audience, err := jose.Object(e.members).Texts("aud"); err != nil || !slices.Contains(audience, r.Audience) {
			return errors.New("the claim aud does not have SCHEDRESTD_TOKEN_AUDIENCE")
		}
	}
	if r.ScopeClaim != "" {
		texts, err := jose.Object(e.members).Texts(r.ScopeClaim)
		if err != nil {
			return errors.New("the claim of SCHEDRESTD_TOKEN_SCOPE_CLAIM is not a text or a list of texts")
		}
		e.claims.Withheld = scope.All &^ scope.Granted(texts)
	}
	return nil
}

// checkOneUser returns an error if two of the claims that can name the user name
// different ones.
func (o object) checkOneUser(field string) error {
	first := ""
	for _, claim := range []string{"sun", "username", field} {
		name, ok, err := o.text(claim)
		switch {
		case !ok || claim == "":
		case err != nil || first != "" && name != first:
			return errors.New("two claims name different users")
		default:
			first = name
		}
	}
	return nil
}
