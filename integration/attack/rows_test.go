package attack

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"

	"schedrestd/integration/harness"
)

// row is a token and its expected result.
type row struct {
	name       string
	token      string
	signedWith string // algorithm of the cluster's key that correctly signed the token, or ""; if it is set, name states the token's only defect
	accepted   bool   // the token is accepted, because its oddity has no meaning and is ignored

	status int // expected status at the gateway; 0: 200 if accepted, otherwise 401. Tokens that can't be sent in HTTP get another status
}

// rows returns all rows of the table.
func (f *forger) rows() []row {
	var list []row
	for _, part := range [][]row{f.algorithms(), f.confusions(), f.headers(), f.embeddedKeys(), f.kids(), f.claims(), f.payloads(), f.signatures(), f.edits(), f.forms(), f.spellings()} {
		list = append(list, part...)
	}
	return list
}

// bothAlgorithms makes a row for each of the cluster's two keys, with a token
// that is signed with that key.
func (f *forger) bothAlgorithms(name, head, claims string, good bool) []row {
	var list []row
	for _, alg := range []string{"HS256", "RS256"} {
		list = append(list, row{name: alg + " " + name, token: f.token(alg, head, claims, f.ownSigner(alg)), signedWith: alg, accepted: good})
	}
	return list
}

// algorithms returns tokens whose algorithm is missing, unknown or ambiguous,
// or does not match their signature.
func (f *forger) algorithms() []row {
	var list []row
	for _, alg := range []string{`"none"`, `"None"`, `"NONE"`, `"nOnE"`, `" none"`, `"none "`, `"none\n"`, `"none\u0000"`, `"\u006eone"`, `"nоne"`,
		`"ｎｏｎｅ"`, `"no\u200bne"`, `"none,HS256"`, `""`, `" "`, `"null"`, `null`, `0`, `256`, `true`, `false`, `["HS256"]`, `["none"]`, `[]`, `{}`, `{"alg":"HS256"}`} {
		head := strings.Replace(plainHeader, `"$alg"`, alg, 1)
		list = append(list, row{name: "alg " + alg + ", no signature", token: f.token("", head, plainClaims, constant(nil))},
			row{name: "alg " + alg + ", signed HS256", token: f.token("", head, plainClaims, f.ownSigner("HS256"))},
			row{name: "alg " + alg + ", signed RS256", token: f.token("", head, plainClaims, f.ownSigner("RS256"))})
	}
	for _, head := range []string{`{"typ":"JWT"}`, `{"Alg":"$alg"}`, `{"ALG":"$alg"}`, `{"alg ":"$alg"}`, `{"alg":"none","alg":"$alg"}`, `{"alg":"$alg","alg":"none"}`,
		`{"alg":"$alg","alg":"$alg"}`, `{"alg":"$alg","\u0061lg":"none"}`, `{"\u0061lg":"none","alg":"$alg"}`, `{"alg":"none","Alg":"$alg"}`, `{"enc":"$alg"}`} {
		list = append(list, row{name: "head " + head + ", no signature", token: f.token("HS256", head, plainClaims, constant(nil))})
		list = append(list, f.bothAlgorithms("head "+head, head, plainClaims, false)...)
	}
	for _, alg := range []string{"HS256", "RS256"} {
		for _, odd := range []string{strings.ToLower(alg), alg + " ", " " + alg, alg + `\u0000`, alg + `\n`, alg[:2] + "-256", alg[:2] + "0256", alg[:4], alg + "K", "SHA256", "HMAC", "RSA", "A256KW"} {
			list = append(list, row{name: fmt.Sprintf("alg %q, signed %s", odd, alg), token: f.token(odd, plainHeader, plainClaims, f.ownSigner(alg))})
		}
	}
	// Each of the following tokens is correctly signed with one of the
	// cluster's keys, using the algorithm in its header. A verifier that lets
	// the token choose the algorithm would accept these tokens.
	list = append(list,
		row{name: "HS384", token: f.token("HS384", plainHeader, plainClaims, mac(crypto.SHA384, f.secret))},
		row{name: "HS512", token: f.token("HS512", plainHeader, plainClaims, mac(crypto.SHA512, f.secret))},
		row{name: "RS384", token: f.token("RS384", plainHeader, plainClaims, f.pkcs1(crypto.SHA384, f.providerKey))},
		row{name: "RS512", token: f.token("RS512", plainHeader, plainClaims, f.pkcs1(crypto.SHA512, f.providerKey))},
		row{name: "PS256", token: f.token("PS256", plainHeader, plainClaims, f.pss(f.providerKey))})
	for _, alg := range []string{"HS384", "HS512", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES256K", "ES512", "EdDSA", "Ed25519", "RSA1_5", "RSA-OAEP", "dir"} {
		list = append(list, row{name: alg + ", no signature", token: f.token(alg, plainHeader, plainClaims, constant(nil))},
			row{name: alg + ", signed HS256", token: f.token(alg, plainHeader, plainClaims, f.ownSigner("HS256"))},
			row{name: alg + ", signed RS256", token: f.token(alg, plainHeader, plainClaims, f.ownSigner("RS256"))})
	}
	return append(list, f.curves()...)
}

// curves returns tokens that name elliptic-curve algorithms and are signed with
// an attacker's keys. Some of the tokens contain the public key.
func (f *forger) curves() []row {
	pub, ed, err := ed25519.GenerateKey(rand.Reader)
	harness.Must(f.t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(f.t, err)
	point, err := ec.PublicKey.Bytes() // 4, x, y
	harness.Must(f.t, err)
	sign := func(signed string) []byte {
		h := sha256.Sum256([]byte(signed))
		r, s, err := ecdsa.Sign(rand.Reader, ec, h[:])
		harness.Must(f.t, err)
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	ecJWK := f.json(map[string]any{"kty": "EC", "crv": "P-256", "x": base64url(point[1:33]), "y": base64url(point[33:])})
	edJWK := f.json(map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64url(pub)})
	return []row{
		{name: "ES256", token: f.token("ES256", plainHeader, plainClaims, sign)},
		{name: "ES256 with its key", token: f.token("ES256", `{"alg":"$alg","jwk":`+ecJWK+`}`, plainClaims, sign)},
		{name: "ES256 with a signature of zeros", token: f.token("ES256", plainHeader, plainClaims, constant(make([]byte, 64)))},
		{name: "EdDSA", token: f.token("EdDSA", plainHeader, plainClaims, func(s string) []byte { return ed25519.Sign(ed, []byte(s)) })},
		{name: "EdDSA with its key", token: f.token("EdDSA", `{"alg":"$alg","jwk":`+edJWK+`}`, plainClaims, func(s string) []byte { return ed25519.Sign(ed, []byte(s)) })},
	}
}

// confusions returns tokens that confuse the two algorithms. They use a public
// key as a secret, or their header names the algorithm of the other key.
func (f *forger) confusions() []row {
	var list []row
	for _, key := range f.encodings() {
		list = append(list, row{name: "HS256 with " + key.name, token: f.token("HS256", plainHeader, plainClaims, mac(crypto.SHA256, key.text))},
			row{name: "HS256 and the kid, with " + key.name, token: f.token("HS256", `{"alg":"$alg","kid":"$kid"}`, plainClaims, mac(crypto.SHA256, key.text))},
			row{name: "RS256 by name, HMAC with " + key.name, token: f.token("RS256", plainHeader, plainClaims, mac(crypto.SHA256, key.text))})
	}
	return append(list,
		row{name: "an HS256 signature called RS256", token: f.token("RS256", plainHeader, plainClaims, f.ownSigner("HS256"))},
		row{name: "an RS256 signature called HS256", token: f.token("HS256", plainHeader, plainClaims, f.ownSigner("RS256"))},
		row{name: "an HS256 signature called RS256, filled up", token: f.token("RS256", plainHeader, plainClaims, func(s string) []byte { return append(f.ownSigner("HS256")(s), make([]byte, 224)...) })},
		row{name: "an RS256 signature called HS256, cut", token: f.token("HS256", plainHeader, plainClaims, func(s string) []byte { return f.ownSigner("RS256")(s)[:32] })})
}

// headers returns tokens with unusual, ambiguous or unsupported header
// parameters.
func (f *forger) headers() []row {
	var list []row
	for _, more := range []string{`"crit":["exp"]`, `"crit":["b64"],"b64":true`, `"crit":["b64"],"b64":false`, `"crit":["unknown"],"unknown":1`, `"crit":["unknown"]`, `"crit":[]`,
		`"crit":null`, `"crit":"exp"`, `"crit":["alg"]`, `"crit":["kid","jku"]`, `"b64":false`, `"b64":true`, `"\u0063rit":["exp"]`, `"cty":"JWT"`, `"cty":"jwt"`, `"cty":"application/json"`,
		`"kid":1`, `"kid":null`, `"kid":["$kid"]`, `"kid":{}`, `"kid":"a","kid":"b"`, `"x":1,"x":2`} {
		list = append(list, f.bothAlgorithms("head with "+more, `{"alg":"$alg",`+more+`}`, plainClaims, false)...)
	}
	for _, typ := range []string{`"JWE"`, `"JOSE"`, `"JOSE+JSON"`, `"dpop+jwt"`, `"logout+jwt"`, `"secevent+jwt"`, `"entity-statement+jwt"`, `"token-introspection+jwt"`, `"JWT "`, `"J\u0000WT"`,
		`"text/jwt"`, `""`, `null`, `1`, `["JWT"]`, `{}`} {
		list = append(list, f.bothAlgorithms("typ "+typ, `{"alg":"$alg","typ":`+typ+`}`, plainClaims, false)...)
	}
	for _, head := range []string{``, ` `, `null`, `[]`, `"$alg"`, `1`, `{}`, `{"alg":"$alg"`, `{"alg":"$alg"}}`, `{"alg":"$alg"}{"alg":"none"}`, `{"alg":"$alg"} x`, `{"alg":"$alg",}`,
		`{'alg':'$alg'}`, `{alg:"$alg"}`, `{"alg":"$alg"/**/}`, `[{"alg":"$alg"}]`, "\ufeff" + `{"alg":"$alg"}`, `{"alg":"$alg"}` + "\x00", "{\"alg\":\"$alg\",\"x\":\"\xff\"}",
		`{"alg":"$alg","x":NaN}`, `{"alg":"$alg","x":` + strings.Repeat("[", 2500) + `}`, `{"alg":"$alg","x":` + strings.Repeat(`{"x":`, 1000) + `}`} {
		list = append(list, f.bothAlgorithms("head "+brief(head), head, plainClaims, false)...)
	}
	for _, head := range []string{`{"alg":"$alg"}`, ` { "typ" : "at+jwt" , "alg" : "$alg" } `, `{"\u0061lg":"$alg","typ":"application/jwt"}`, `{"alg":"$alg","Crit":["x"],"Alg":"none","x":[[{}]]}`} {
		list = append(list, f.bothAlgorithms("good head "+head, head, plainClaims, true)...)
	}
	return list
}

// embeddedKeys returns tokens that contain their own keys. The gateway must use
// only keys that the administrator has configured.
func (f *forger) embeddedKeys() []row {
	var list []row
	jwk, kid := f.json(webKey(f.attackerKey, "")), f.json(webKey(f.attackerKey, f.kid))
	secret := []byte("a secret that the attacker has chosen")
	oct := f.json(map[string]any{"kty": "oct", "k": base64url(secret)})
	cert := `["MIIB"]`
	for _, more := range []string{`"jwk":` + jwk, `"jwk":` + kid, `"jwk":` + jwk + `,"kid":"$kid"`, `"kid":"$kid","jwk":{"keys":[` + jwk + `]}`, `"jwks":{"keys":[` + jwk + `]}`,
		`"jku":"$trap/jwks.json"`, `"jku":"$trap/jwks.json","kid":"$kid"`, `"jku":"file:///etc/passwd"`, `"jku":["$trap/jwks.json"]`, `"x5u":"$trap/cert.pem"`, `"x5u":"$trap/cert.pem","kid":"$kid"`,
		`"kid":"$trap/jwks.json"`, `"iss":"$trap"`, `"x5c":` + cert, `"x5c":` + cert + `,"kid":"$kid"`, `"x5c":"MIIB"`, `"x5t":"$kid"`, `"x5t#S256":"$kid"`, `"epk":` + jwk} {
		list = append(list, row{name: "an unknown key by " + brief(more), token: f.token("RS256", `{"alg":"$alg",`+more+`}`, plainClaims, f.pkcs1(crypto.SHA256, f.attackerKey))})
	}
	for _, more := range []string{`"jwk":` + oct, `"jwk":` + oct + `,"kid":"$kid"`, `"jku":"$trap/jwks.json"`, `"k":"` + base64url(secret) + `"`} {
		list = append(list, row{name: "an unknown secret by " + brief(more), token: f.token("HS256", `{"alg":"$alg",`+more+`}`, plainClaims, mac(crypto.SHA256, secret))})
	}
	list = append(list, row{name: "an unknown key", token: f.token("RS256", plainHeader, plainClaims, f.pkcs1(crypto.SHA256, f.attackerKey))},
		row{name: "an unknown key under the provider's kid", token: f.token("RS256", `{"alg":"$alg","kid":"$kid"}`, plainClaims, f.pkcs1(crypto.SHA256, f.attackerKey))})
	// Tokens with such headers and a good signature are accepted, and the keys
	// in the headers are ignored.
	for _, more := range []string{`"jwk":` + jwk, `"jku":"$trap/jwks.json"`, `"x5u":"$trap/cert.pem"`, `"x5c":` + cert, `"x5t":"AAAA"`, `"jwk":7`} {
		list = append(list, f.bothAlgorithms("good with "+brief(more), `{"alg":"$alg",`+more+`}`, plainClaims, true)...)
	}
	return list
}

// kids returns tokens whose key ids look like paths or commands.
func (f *forger) kids() []row {
	var list []row
	for _, kid := range []string{"/dev/null", "../../../../../../dev/null", "file:///dev/null", "/proc/self/environ", "/etc/hostname", "x' UNION SELECT 'secret", "x' UNION SELECT 'secret' -- ",
		"x'; DROP TABLE jobs; --", "x | sleep 30", "$(sleep 30)", "`sleep 30`", "; sleep 30 #", "$trap/key", "ldap://127.0.0.1/x", `\u0000`, `$kid\u0000`, "$kid ", "", " ", "*", "%s%s%n", "0",
		"../$kid", "${jndi:ldap://127.0.0.1/x}", "{{7*7}}", strings.Repeat("k", 5500), strings.Repeat("../", 1800), `\u202e\ud83d\ude00`} {
		head := `{"alg":"$alg","kid":"` + kid + `"}`
		for _, secret := range []string{"", "secret", kid, strings.Repeat("\x00", 32)} { // what a verifier would read as the secret: an empty file, the result of the SQL, the key id itself, or /dev/zero
			list = append(list, row{name: fmt.Sprintf("kid %s, HS256 with %q", brief(kid), brief(secret)), token: f.token("HS256", head, plainClaims, mac(crypto.SHA256, []byte(secret)))})
		}
		list = append(list, row{name: "kid " + brief(kid) + ", an unknown key", token: f.token("RS256", head, plainClaims, f.pkcs1(crypto.SHA256, f.attackerKey))})
		if len(kid) < 2000 { // HS256 has only one secret, so the id is ignored; RS256 needs a key with this id, and the key set has none
			list = append(list, row{name: "HS256 kid " + brief(kid), token: f.token("HS256", head, plainClaims, f.ownSigner("HS256")), signedWith: "HS256", accepted: true})
			if kid != "" {
				list = append(list, row{name: "RS256 kid " + brief(kid), token: f.token("RS256", head, plainClaims, f.ownSigner("RS256")), signedWith: "RS256"})
			}
		}
	}
	return append(list, row{name: "RS256 with its kid", token: f.token("RS256", `{"alg":"$alg","kid":"$kid"}`, plainClaims, f.ownSigner("RS256")), signedWith: "RS256", accepted: true})
}

// brief shortens a text for the name of a test.
func brief(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%s… (%d)", text[:60], len(text))
	}
	return text
}
