package auth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
)

// A Step is one check of a token, with its result. The texts contain parts of
// the token's header and claims, but nothing of its signature.
type Step struct {
	Name    string
	Outcome Outcome
	Text    string // what was found, or the reason of a refusal
}

// Outcome is the result of a Step.
type Outcome uint8

// The outcomes.
const (
	Passed Outcome = iota
	Refuses
	Unchecked // only a daemon can decide
)

// A KeySource is where Explain finds the key for one algorithm.
type KeySource struct {
	Name    string            // such as jwt_key=/etc/slurm/jwt.key
	Missing string            // why the key can't be used; "" if it can
	verify  func(parts) error // nil without a key
}

// KeyFile returns the source of an HS256 key.
func KeyFile(name string, key Key) KeySource {
	return KeySource{Name: name, verify: func(p parts) error {
		if p.gateway {
			return key.Derive(gatewaytoken.Purpose).verify(p.signed, p.signature)
		}
		return key.verify(p.signed, p.signature)
	}}
}

// KeySetFile returns the source of the keys for RS256.
func KeySetFile(name string, set *KeySet) KeySource {
	return KeySource{Name: name + ", " + set.String(), verify: func(p parts) error { return set.verify(p.kid, p.signed, p.signature) }}
}

// Explain makes the checks of Inspect, FromRequest and Verifier, and describes
// each of them. It goes on after a refusal as far as possible. The result is for
// an administrator of the gateway's machine. A client must not get it, because it
// would help to guess tokens.
func Explain(token string, opt Options, hs256, rs256 KeySource) (steps []Step, claims Claims) {
	e := examination{token: token, rules: opt.Rules, now: timeOf(opt.Now)}
	x := explanation{examination: &e}
	for _, c := range formChecks {
		if !x.add(c.name, c.run(&e)) {
			return x.steps, Claims{}
		}
	}
	x.explainClaims()
	return append(x.steps, e.explainSignature(hs256, rs256)), e.claims
}

// explanation collects the steps of an examination.
type explanation struct {
	*examination
	steps []Step
}

// add adds a step, and reports whether it has passed.
func (x *explanation) add(name string, err error) bool {
	if err != nil {
		x.steps = append(x.steps, Step{name, Refuses, err.Error()})
		return false
	}
	if text := x.describe(name); text != "" {
		x.steps = append(x.steps, Step{name, Passed, text})
	}
	return true
}

// explainClaims adds the steps of the payload. Wrong dates do not hide what else
// is wrong.
func (x *explanation) explainClaims() {
	for _, c := range x.claimChecks() {
		err := c.run(x.examination)
		if c.name == "dates" && err == nil {
			err = x.claims.checkExpiry(x.now)
		}
		if !x.add(c.name, err) && x.members == nil {
			return
		}
		if last := &x.steps[len(x.steps)-1]; c.name == "dates" && !x.claims.Expires.IsZero() && last.Outcome == Refuses {
			last.Text += "; " + x.describe("dates")
		}
	}
}

// describe says what a check has found; "" if it has nothing to do with the token.
func (e *examination) describe(check string) string {
	switch check {
	case "size":
		return fmt.Sprintf("%d bytes, at most %d are accepted", len(e.token), maxToken)
	case "form":
		return "a header, a payload and a signature in base64url"
	case "header":
		kid := "no kid"
		if e.kid != "" {
			kid = "kid " + e.kid
		}
		return fmt.Sprintf("alg %s, %s", e.alg, kid)
	case "payload":
		if e.gateway {
			text := fmt.Sprintf("gateway token %s for %s, permits %s", e.claims.ID, e.claims.User, scope.All&^e.claims.Withheld)
			if e.claims.ActFor != "" {
				text += "; acts only for the members of the group " + e.claims.ActFor + ", one of whom each request must name"
			}
			return text
		}
		return "claims " + strings.Join(slices.Sorted(maps.Keys(e.members)), ", ")
	case "dates":
		text := fmt.Sprintf("issued at %s, expires at %s", e.claims.IssuedAt.Format(time.RFC3339), e.claims.Expires.Format(time.RFC3339))
		if !e.claims.NotBefore.IsZero() {
			text += ", valid from " + e.claims.NotBefore.Format(time.RFC3339)
		}
		return text + ", this machine's clock is at " + e.now.UTC().Format(time.RFC3339)
	case "user":
		if e.claims.UID != nil {
			return fmt.Sprintf("%s with uid %d, from the claims uid, gid and id", e.claims.User, *e.claims.UID)
		}
		return e.claims.User + ", from the claim " + e.nameClaim()
	case "provider":
		return e.describeProvider()
	}
	return ""
}

// describeProvider says which rules the token obeys, and what it permits. It
// returns "" for a token of the cluster's own.
func (e *examination) describeProvider() string {
	r, texts := e.rules, []string(nil)
	switch {
	case e.alg != rs256:
		return ""
	case r.Issuer != "":
		texts = append(texts, "iss "+r.Issuer)
	}
	if r.Audience != "" {
		texts = append(texts, "aud "+r.Audience)
	}
	if r.ScopeClaim != "" {
		texts = append(texts, "permits "+cmp.Or((scope.All&^e.claims.Withheld).String(), "nothing"))
	}
	return cmp.Or(strings.Join(texts, ", "), "any iss and aud, permits everything")
}

// nameClaim returns the name of the claim that names the user.
func (e *examination) nameClaim() string {
	for _, name := range []string{"sun", "username"} {
		if _, ok := e.members[name]; ok {
			return name
		}
	}
	return e.rules.UserField
}

// explainSignature verifies the signature with the key for the token's algorithm.
func (e *examination) explainSignature(hs256Key, rs256Keys KeySource) Step {
	source := hs256Key
	if e.alg == rs256 {
		source = rs256Keys
	}
	if source.verify == nil {
		return Step{"signature", Unchecked, cmp.Or(source.Missing, "there is no key for "+e.alg+" here")}
	}
	if err := source.verify(e.parts); err != nil {
		return Step{"signature", Refuses, err.Error() + ": " + source.Name}
	}
	return Step{"signature", Passed, "verified with " + source.Name}
}
