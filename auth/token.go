package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxToken is the longest token that is looked at, in bytes. A token of ours has
// 200; an identity provider's with many claims a few thousand.
const MaxToken = 8 << 10

// The algorithms of RFC 7518 that a token may have. A list of what is good, as
// RFC 8725 section 3.1 asks for: "none" in any spelling is simply not on it.
const (
	hs256 = "HS256"
	rs256 = "RS256"
)

// parts is a token taken apart, its signature not yet checked and its payload not yet read.
type parts struct {
	alg       string
	kid       string // "" when the header has none
	payload   []byte
	signed    string // the text that the signature is over
	signature []byte
}

// Inspect judges everything about a token but its signature: size, form,
// algorithm, header, dates, user. It is a filter before whoever verifies.
func Inspect(token string, opt Options) (Claims, error) {
	claims, _, err := inspect(token, opt)
	return claims, err
}

// inspect is Inspect, with what is left for whoever verifies.
func inspect(token string, opt Options) (Claims, *proof, error) {
	p, err := parse(token)
	if err != nil {
		return Claims{}, nil, refuse("token: %w", err)
	}
	claims, err := p.claims(opt.UserClaimField, timeOf(opt.Now))
	return claims, p.proof(token), err
}

// proof is what is judged of a token besides its claims, and by what it is known. A token is taken
// apart once for a request: most of what a request costs would be that otherwise.
type proof struct {
	Signature
	alg  string
	hash hash
}

// hash is of a whole token. Whoever sees one can't ask for anything with it.
type hash [sha256.Size]byte

func hashOf(token string) hash { return sha256.Sum256([]byte(token)) }

func (p parts) proof(token string) *proof {
	return &proof{Signature{KeyID: p.kid, Signed: p.signed, Bytes: p.signature}, p.alg, hashOf(token)}
}

// claims reads the payload and judges what it says at the time now.
func (p parts) claims(field string, now time.Time) (Claims, error) {
	o, err := parseObject(p.payload)
	if err != nil {
		return Claims{}, refuse("token: payload: %w", err)
	}
	c, err := o.read(field, now)
	if err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	c.Algorithm, c.KeyID = p.alg, p.kid
	return c, nil
}

// parse takes the compact form of RFC 7515 apart: header, payload and signature,
// each in base64url. Two segments, or five (an encrypted token), are not that.
func parse(token string) (parts, error) {
	if len(token) > MaxToken {
		return parts{}, errors.New("too long")
	}
	if strings.Count(token, ".") != 2 {
		return parts{}, errors.New("not three segments")
	}
	end := strings.LastIndexByte(token, '.')
	head, payload, _ := strings.Cut(token[:end], ".")
	raw, err := decode(head)
	if err != nil {
		return parts{}, errors.New("header: not base64url")
	}
	header, err := parseObject(raw)
	if err != nil {
		return parts{}, fmt.Errorf("header: %w", err)
	}
	p := parts{signed: token[:end]}
	if p.payload, err = decode(payload); err != nil {
		return parts{}, errors.New("payload: not base64url")
	}
	if p.signature, err = decode(token[end+1:]); err != nil {
		return parts{}, errors.New("signature: not base64url")
	}
	return p, p.header(header)
}

// decode reads base64url in its one canonical form: no padding, no line ends
// (which Go's decoder skips), no stray bits in the last letter. Otherwise one
// token would have many texts, and what is remembered or revoked by its text
// could be walked around.
func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("line end")
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

// header judges the JOSE header. What would bring a key along (jwk, jku, x5c, x5u)
// is not looked at, ever: keys come from the administrator.
func (p *parts) header(h object) error {
	if _, ok := h["crit"]; ok {
		return errors.New("header: crit") // we know no extension, and RFC 7515 4.1.11 says to refuse
	}
	if _, ok := h["b64"]; ok {
		return errors.New("header: b64") // RFC 7797: would change what the signature is over
	}
	if _, ok := h["cty"]; ok {
		return errors.New("header: cty") // RFC 7519 5.2: a token within a token
	}
	if typ, ok, err := h.text("typ"); err != nil || ok && !tokenType(typ) {
		return errors.New("header: typ is not JWT") // RFC 8725 3.11: a token made for something else
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

// tokenType says whether typ is that of a plain or of an OAuth access token (RFC 9068).
func tokenType(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return typ == "jwt" || typ == "at+jwt"
}
