package keeper

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"slices"

	"schedrestd/api/scope"
	"schedrestd/auth/jose"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// provider verifies tokens of an identity provider. Workers do this themselves, because
// the keys are public. The keeper does it again before it vouches for a user, because
// it must not believe a worker.
type provider struct {
	keys   *jose.KeySet
	rules  work.ProviderRules
	claims []string // one of them names the user: the first that the token has
}

// readProvider reads the key set. It returns nil if there is none, if the keeper vouches
// for no users of its tokens, or if it can't be used: workers refuse such a set, too.
func readProvider(f *os.File, rules string) *provider {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, jose.MaxKeySet))
	if rules == "" || err == nil && len(text) == 0 {
		return nil
	}
	var keys *jose.KeySet
	if err == nil {
		keys, err = jose.ParseKeySet(text)
	}
	p := &provider{keys: keys}
	if err == nil {
		p.rules, err = work.ParseProviderRules(rules)
	}
	if err != nil {
		slog.Warn("key set of RS256 tokens can't be used; no output is read for their users", "error", err)
		return nil
	}
	p.claims = []string{"sun", "username"}
	if p.rules.UserClaim != "" {
		p.claims = append(p.claims, p.rules.UserClaim)
	}
	return p
}

// check checks the administrator's rules for a token with these claims, as workers do.
func (p *provider) check(o jose.Object) query.Verdict {
	if p.rules.Issuer != "" {
		if issuer, _, err := o.Text("iss"); err != nil || issuer != p.rules.Issuer {
			return query.Forged
		}
	}
	if p.rules.Audience != "" {
		if audience, err := o.Texts("aud"); err != nil || !slices.Contains(audience, p.rules.Audience) {
			return query.Forged
		}
	}
	if p.rules.ScopeClaim != "" {
		if texts, err := o.Texts(p.rules.ScopeClaim); err != nil || !scope.Granted(texts).Permit(scope.ComputeRead) {
			return query.NotForUser
		}
	}
	if p.rules.OneUser {
		first := ""
		for _, claim := range p.claims {
			name, _, err := o.Text(claim)
			if first = cmp.Or(first, name); err != nil || name != "" && name != first {
				return query.Forged
			}
		}
	}
	return query.Genuine
}

// verifies reports whether one of the keys has signed a token. The kid of its header has
// no effect, because nothing is parsed before the signature has been verified.
func (p *provider) verifies(signed, signature []byte) bool {
	return p != nil && p.keys.Verify("", string(signed), signature) == nil
}

// cost returns the cost of verifying a signature with all keys.
func (p *provider) cost() (cost float64) {
	if p != nil {
		for _, key := range p.keys.Keys() {
			size := float64(key.N.BitLen()) / 2048
			cost += verifyRSACost * size * size
		}
	}
	return cost
}
