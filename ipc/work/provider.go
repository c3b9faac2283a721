package work

import (
	"net/url"
	"strconv"

	"schedrestd/internal/setting"
)

// ProviderRules says for which tokens of an identity provider the keeper vouches. The
// parent passes the rules on as a text, and does not parse them. The register and what
// concerns gateway tokens is not part of the text.
type ProviderRules struct {
	setting.Tokens
	UserClaim string // as in Setup
}

// Text returns r as a text of less than 4 KiB, which is not empty.
func (r ProviderRules) Text() string {
	return url.Values{"issuer": {r.Issuer}, "audience": {r.Audience}, "scope_claim": {r.ScopeClaim},
		"user_claim": {r.UserClaim}, "one_user": {strconv.FormatBool(r.OneUser)}}.Encode()
}

// ParseProviderRules parses what Text returns.
func ParseProviderRules(text string) (r ProviderRules, err error) {
	values, err := url.ParseQuery(text)
	if err == nil {
		r.Issuer, r.Audience, r.ScopeClaim, r.UserClaim = values.Get("issuer"), values.Get("audience"), values.Get("scope_claim"), values.Get("user_claim")
		r.OneUser, err = strconv.ParseBool(values.Get("one_user"))
	}
	return r, err
}
