package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"schedrestd/auth/gatewaytoken"
)

// maxToken is the maximum length of a token, in bytes. A token from Create has
// about 200 bytes. An identity provider's token with many claims has a few
// thousand. A token with a user's identity (see Rules) takes 13 to 40 bytes for
// each of the user's groups. A request's whole header may have 32 KiB.
const maxToken = 24 << 10

// The accepted algorithms (RFC 7518). RFC 8725, 3.1 requires such a list. The
// algorithm "none" is not accepted.
const (
	hs256 = "HS256"
	rs256 = "RS256"
)

// parts is a token that has been split and decoded. Its signature has not been
// checked, and its payload has not been parsed.
type parts struct {
	alg       string
	kid       string // "" if the header has none
	gateway   bool   // it is a gateway token
	payload   []byte
	signed    string // the text that the signature covers
	signature []byte
}

// Inspect checks everything about a token except its signature: size, form,
// algorithm, header, dates and user. So malformed tokens are rejected before
// their signatures are verified.
func Inspect(token string, opt Options) (Claims, error) {
	claims, _, err := inspect(token, opt)
	return claims, err
}

// inspect does the work of Inspect. It also returns the token's proof, which
// still has to be verified.
func inspect(token string, opt Options) (Claims, *proof, error) {
	e := examination{token: token, rules: opt.Rules, now: timeOf(opt.Now)}
	key := hashOf(token)
	if claims, ok := opt.Seen.get(key); ok {
		e.resume(claims)
		if err := claims.checkDates(e.now); err != nil {
			return Claims{}, nil, refuse("token: %w", err)
		}
		return claims, e.proof(key), nil
	}
	if err := e.run(formChecks); err != nil {
		return Claims{}, nil, refuse("token: %w", err)
	}
	if err := e.run(e.claimChecks()); err != nil {
		return Claims{}, nil, refuse("token: %w", err)
	}
	opt.Seen.add(key, e.claims)
	return e.claims, e.proof(key), nil
}

// resume restores the parts of a token from which its proof is made. All checks
// have accepted the same token before, and found its claims.
func (e *examination) resume(c Claims) {
	end := strings.LastIndexByte(e.token, '.')
	e.alg, e.kid, e.gateway, e.signed = c.Algorithm, c.KeyID, c.Gateway, e.token[:end]
	e.signature, _ = decode(e.token[end+1:])
}

// A proof contains the data that is needed to verify the signature of a token
// whose claims have already been checked. The proof is kept so that each
// request's token is parsed only once: parsing is expensive compared with the
// other steps.
type proof struct {
	Signature
	alg     string
	gateway bool // the signature is that of a gateway token
	hash    hash
}

// A hash is the hash of a whole token. It can't be used as a credential.
type hash [sha256.Size]byte

func hashOf(token string) hash { return sha256.Sum256([]byte(token)) }

func (p parts) proof(key hash) *proof {
	return &proof{Signature{KeyID: p.kid, Signed: p.signed, Bytes: p.signature}, p.alg, p.gateway, key}
}

// parse checks the form of a token.
func parse(token string) (parts, error) {
	e := examination{token: token}
	err := e.run(formChecks)
	return e.parts, err
}

// decode decodes base64url. It accepts only the canonical form: no padding, no
// line ends (which Go's decoder skips), and no stray bits in the last
// character. Otherwise the same token could be written in many ways, and a
// client could evade a remembered decision by writing its token in another way.
func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("line end")
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

// checkHeader checks the JOSE header. Members that would supply a key (jwk,
// jku, x5c, x5u) are ignored, because keys come from the administrator.
func (e *examination) checkHeader() error {
	h, p := e.header, &e.parts
	if gatewaytoken.Is(e.token) && e.rules.Gateway != "" {
		if p.alg, p.gateway = hs256, true; len(p.signature) != sha256.Size {
			return errors.New("signature: wrong length")
		}
		return nil
	}
	if _, ok := h["crit"]; ok {
		return errors.New("header: crit") // RFC 7515 4.1.11 requires refusing unknown extensions, and all extensions are unknown here
	}
	if _, ok := h["b64"]; ok {
		return errors.New("header: b64") // RFC 7797: b64 would change the text that the signature covers
	}
	if _, ok := h["cty"]; ok {
		return errors.New("header: cty") // RFC 7519 5.2: cty marks a token within a token
	}
	if gatewaytoken.Is(e.token) {
		return errors.New("header: a gateway token, but SCHEDRESTD_TOKEN_REGISTER is not set")
	}
	if typ, ok, err := h.text("typ"); err != nil || ok && !isTokenType(typ) {
		return errors.New("header: typ is not JWT") // RFC 8725 3.11: the token was issued for another purpose
	}
	var err error
	if p.kid, _, err = h.text("kid"); err != nil {
		return errors.New("header: kid is not a string")
	}
	p.alg, _, _ = h.text("alg")
	n := len(p.signature)
	switch {
	case p.alg != hs256 && p.alg != rs256:
		return errors.New("header: alg is not HS256 or RS256")
	case p.alg == hs256 && n != 32, p.alg == rs256 && (n < 256 || n > 1024):
		return errors.New("signature: wrong length")
	}
	return nil
}

// isTokenType reports whether typ denotes a plain JWT or an OAuth access token
// (RFC 9068).
func isTokenType(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return typ == "jwt" || typ == "at+jwt"
}
