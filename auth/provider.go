package auth

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"schedrestd/api/scope"
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
		if audience, err := e.members.texts("aud"); err != nil || !slices.Contains(audience, r.Audience) {
			return errors.New("the claim aud does not have SCHEDRESTD_TOKEN_AUDIENCE")
		}
	}
	if r.ScopeClaim != "" {
		granted, err := e.members.scopes(r.ScopeClaim)
		if err != nil {
			return errors.New("the claim of SCHEDRESTD_TOKEN_SCOPE_CLAIM is not a text or a list of texts")
		}
		e.claims.Withheld = scope.All &^ granted
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

// scopes returns the scopes in a claim: a text of words (RFC 8693, 4.2), or a list
// of such texts. Words that are no scopes of ours, such as openid, are skipped. A
// token without the claim has no scope.
func (o object) scopes(claim string) (granted scope.Set, err error) {
	texts, err := o.texts(claim)
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			if s, err := scope.Parse(word); err == nil {
				granted |= s
			}
		}
	}
	return granted, err
}

// texts returns the values of a member that is a text or a list of texts, and none
// if there is no such member.
func (o object) texts(name string) (values []string, err error) {
	raw, ok := o[name]
	if !ok {
		return nil, nil
	}
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &values)
		return values, err
	}
	value, _, err := o.text(name)
	return []string{value}, err
}
