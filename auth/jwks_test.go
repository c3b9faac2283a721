package auth

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"schedrestd/auth/jose"
	"schedrestd/internal/errs"
)

// The identity provider's key and an unrelated key. Each is generated once for
// all tests.
var (
	providerKey = sync.OnceValue(func() *rsa.PrivateKey { return newRSA("the provider", 2048) })
	otherKey    = sync.OnceValue(func() *rsa.PrivateKey { return newRSA("somebody else", 2048) })
)

// newRSA derives an RSA key from a seed. The same seed always results in the
// same key, so that fuzzer findings are reproducible.
func newRSA(seed string, bits int) *rsa.PrivateKey {
	p, q := newPrime(seed+", p", bits/2), newPrime(seed+", q", bits/2)
	one := big.NewInt(1)
	n, phi := new(big.Int).Mul(p, q), new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n, E: 65537}, D: new(big.Int).ModInverse(big.NewInt(65537), phi), Primes: []*big.Int{p, q}}
	key.Precompute()
	if err := key.Validate(); err != nil {
		panic(err)
	}
	return key
}

// newPrime returns a prime with the given number of bits, which must be a
// multiple of 256. The two highest bits of the prime are set.
func newPrime(seed string, bits int) *big.Int {
	var raw []byte
	for i := range bits / 256 {
		block := sha256.Sum256(fmt.Append(nil, seed, i))
		raw = append(raw, block[:]...)
	}
	raw[0] |= 0xc0
	p := new(big.Int).SetBytes(raw)
	for p.SetBit(p, 0, 1); !p.ProbablyPrime(20); p.Add(p, big.NewInt(2)) {
	}
	return p
}

// jwk returns key as a JSON Web Key. members is text for additional members,
// such as `,"kid":"1"`.
func jwk(key *rsa.PublicKey, members string) string {
	return fmt.Sprintf(`{"kty":"RSA","n":"%s","e":"%s"%s}`, number(key.N), number(big.NewInt(int64(key.E))), members)
}

func number(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }

func keySet(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

func parsedSet(t testing.TB, keys ...string) *KeySet {
	t.Helper()
	set, err := ParseKeySet([]byte(keySet(keys...)))
	must(t, err)
	return set
}

// odd returns an odd number with the given number of bits, for use as a
// modulus.
func odd(bits uint) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return n.Add(n, big.NewInt(1))
}

// rocaLike returns a 2048-bit modulus that has the ROCA vulnerability modulo each of
// the small primes.
func rocaLike() *big.Int {
	product := big.NewInt(2)
	for p := int64(3); p < 170; p += 2 {
		if n := big.NewInt(p); n.ProbablyPrime(0) {
			product.Mul(product, n)
		}
	}
	n := new(big.Int).Exp(big.NewInt(65537), big.NewInt(1234567), product)
	return n.Add(n, product.Lsh(product, 2048-uint(product.BitLen())))
}

const ec = `{"kty":"EC","kid":"ec","use":"sig","alg":"ES256","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}`

// TestKeySetAccepted checks that valid sets are accepted, including sets like
// those that well-known providers publish. Every set contains the public part
// of providerKey.
func TestKeySetAccepted(t *testing.T) {
	public := &providerKey().PublicKey
	n := number(public.N)
	tests := []struct {
		name, set, want string // want is the result of KeySet.String
	}{
		{"nothing but n and e", keySet(jwk(public, ``)), `kid ""`},
		{"as Google", `{"keys": [` + jwk(public, `,"alg":"RS256","kid":"a","use":"sig"`) + `, ` + jwk(&otherKey().PublicKey, `,"alg":"RS256","kid":"b","use":"sig"`) + "]}\n", `kid "a", "b"`},
		{"as Okta", keySet(`{"kty":"RSA","alg":"RS256","kid":"a","use":"sig","e":"AQAB","n":"` + n + `"}`), `kid "a"`},
		{"as Azure AD, without alg", keySet(jwk(public, `,"use":"sig","kid":"a","x5t":"a","x5c":["MIIC/TCC"],"cloud_instance_name":"x","issuer":"https://x/v2.0"`)), `kid "a"`},
		{"as Keycloak, with a key for encryption", keySet(
			jwk(&otherKey().PublicKey, `,"kid":"enc","alg":"RSA-OAEP","use":"enc","x5c":["MIICmz=="],"x5t":"e","x5t#S256":"0"`),
			jwk(public, `,"kid":"a","alg":"RS256","use":"sig","x5c":["MIICmz=="],"x5t":"e","x5t#S256":"0"`), ec,
			`{"kid":"o","kty":"OKP","alg":"EdDSA","use":"sig","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`),
			`kid "a"; 2 ignored: kty is not RSA; 1 ignored: use is not sig`},
		{"other algorithms of RSA", keySet(jwk(public, `,"alg":"RS256"`), jwk(public, `,"alg":"PS256"`), jwk(public, `,"alg":"RS512"`), jwk(public, `,"alg":"rs256"`)),
			`kid ""; 3 ignored: alg is not RS256`},
		{"key_ops", keySet(jwk(public, `,"key_ops":["verify"]`), jwk(public, `,"key_ops":["encrypt","wrapKey"]`), jwk(public, `,"key_ops":[]`)),
			`kid ""; 2 ignored: key_ops does not include verify`},
		{"keys of kinds to come", keySet(jwk(public, ``), `{}`, `{"kty":""}`, `{"kty":"rsa"}`, `{"kty":"AKP","pub":"AA"}`), `kid ""; 4 ignored: kty is not RSA`},
		{"an oct key without its secret", keySet(jwk(public, ``), `{"kty":"oct","kid":"o"}`), `kid ""; 1 ignored: kty is not RSA`},
		{"a weak key that is not for signatures", keySet(jwk(public, ``), `{"kty":"RSA","use":"enc","n":"AQ","e":"AQ"}`), `kid ""; 1 ignored: use is not sig`},
		{"absent members written as null", keySet(jwk(public, `,"alg":null,"use":null,"d":null,"k":null,"oth":null,"key_ops":null,"kid":null`)), `kid ""`},
		{"certificates that are none", keySet(jwk(public, `,"x5c":"?","x5t":7,"x5u":{"a":[]}`)), `kid ""`},
		{"zeros in front, padding behind", keySet(`{"kty":"RSA","n":"` + base64.URLEncoding.EncodeToString(append([]byte{0}, public.N.Bytes()...)) + `","e":"AAEAAQ=="}`), `kid ""`},
		{"two keys of one kid", keySet(jwk(&otherKey().PublicKey, `,"kid":"a"`), jwk(public, `,"kid":"a"`)), `kid "a", "a"`},
		{"the most", keySet(strings.Split(strings.Repeat("|"+jwk(public, `,"kid":"a"`), jose.MaxKeys)[1:], "|")...), `kid "a"` + strings.Repeat(`, "a"`, jose.MaxKeys-1)},
		{"members beside keys", `{"keys":[` + jwk(public, ``) + `],"d":"x","version":1}`, `kid ""`},
		{"a very long kid", keySet(jwk(public, `,"kid":"`+strings.Repeat("k\\n", 100)+`"`)), `kid "` + strings.Repeat(`k\n`, 30) + `"`},
	}
	token := signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set, err := ParseKeySet([]byte(test.set))
			must(t, err)
			if got := set.String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if _, err := (Verifier{Keys: func() *KeySet { return set }, Now: clock}).Verify(token); err != nil {
				t.Errorf("a token of the provider: %v", err)
			}
		})
	}
}

// refusedSets returns sets that are refused.
func refusedSets() []struct{ name, set, why string } {
	public := &providerKey().PublicKey
	good := jwk(public, ``)
	rsaJWK := func(n *big.Int, e string) string { return fmt.Sprintf(`{"kty":"RSA","n":"%s","e":"%s"}`, number(n), e) }
	sets := []struct{ name, set, why string }{
		{"nothing", "", "not a JSON object"},
		{"an array", "[" + good + "]", "not a JSON object"},
		{"breaks off", keySet(good)[:100], "not JSON"},
		{"text after it", keySet(good) + "x", "data after the object"},
		{"keys twice", `{"keys":[],"keys":[` + good + `]}`, "duplicate member"},
		{"not UTF-8", keySet(good, "{\"kid\":\"\xff\"}"), "not UTF-8"},
		{"one key alone", good, "no list named keys"},
		{"keys is no list", `{"keys":` + good + `}`, "no list named keys"},
		{"no keys", keySet(), "no RSA key for RS256 signatures"},
		{"keys is null", `{"keys":null}`, "no RSA key for RS256 signatures"},
		{"none of use", keySet(ec, ec, jwk(public, `,"use":"enc"`)), "no RSA key for RS256 signatures; 2 ignored: kty is not RSA; 1 ignored: use is not sig"},
		{"too many", keySet(strings.Split(strings.Repeat("|"+good, jose.MaxKeys+1)[1:], "|")...), "33 RS256 keys; at most 32"},
		{"a key that is no object", keySet(good, `"x"`), "key 2: not a JSON object"},
		{"a key that is null", keySet(good, `null`), "key 2: not a JSON object"},
		{"a member twice", keySet(`{"kty":"RSA","kty":"EC"}`), "key 1: duplicate member"},
		{"a secret key", keySet(good, `{"kty":"oct","kid":"o","alg":"HS256","k":"c2VjcmV0"}`), "key 2: contains k"},
		{"a private EC key", keySet(good, `{"kty":"EC","d":"c2VjcmV0"}`), "key 2: contains d"},
		{"a private key for encryption", keySet(good, jwk(public, `,"use":"enc","d":"c2VjcmV0"`)), "key 2: contains d"},
		{"a private key, empty", keySet(jwk(public, `,"d":""`)), "key 1: contains d"},
		{"1024 bits", keySet(good, rsaJWK(odd(1024), "AQAB")), "key 2: RSA key has 1024 bits; must have 2048 to 8192"},
		{"2047 bits", keySet(rsaJWK(odd(2047), "AQAB")), "RSA key has 2047 bits"},
		{"2047 bits, zeros in front", keySet(`{"kty":"RSA","n":"` + base64.RawURLEncoding.EncodeToString(append(make([]byte, 64), odd(2047).Bytes()...)) + `","e":"AQAB"}`), "RSA key has 2047 bits"},
		{"8193 bits", keySet(rsaJWK(odd(8193), "AQAB")), "RSA key has 8193 bits"},
		{"no bits", keySet(rsaJWK(new(big.Int), "AQAB")), "RSA key has 0 bits"},
		{"n even", keySet(rsaJWK(new(big.Int).Add(public.N, big.NewInt(1)), "AQAB")), "n is even"},
		{"e of 0", keySet(rsaJWK(public.N, "")), "e is not an odd number"},
		{"e of 1", keySet(rsaJWK(public.N, "AQ")), "e is not an odd number"},
		{"e of 2", keySet(rsaJWK(public.N, "Ag")), "e is not an odd number"},
		{"e of 65536", keySet(rsaJWK(public.N, "AQAA")), "e is not an odd number"},
		{"e of 2^31+1", keySet(rsaJWK(public.N, "gAAAAQ")), "e is not an odd number"},
		{"e of 2^64+3", keySet(rsaJWK(public.N, "AQAAAAAAAAAD")), "e is not an odd number"},
		{"a faulty chip's", keySet(rsaJWK(rocaLike(), "AQAB")), "CVE-2017-15361"},
		{"no n", keySet(`{"kty":"RSA","e":"AQAB"}`), "n is not a string"},
		{"no e", keySet(`{"kty":"RSA","n":"` + number(public.N) + `"}`), "e is not a string"},
		{"n a number", keySet(`{"kty":"RSA","n":7,"e":"AQAB"}`), "n is not a string"},
		{"n in another base64", keySet(`{"kty":"RSA","n":"+/+/","e":"AQAB"}`), "n is not base64url"},
		{"e as a number", keySet(`{"kty":"RSA","n":"` + number(public.N) + `","e":65537}`), "e is not a string"},
		{"kty of another type", keySet(`{"kty":["RSA"]}`), "kty is not a string"},
		{"use of another type", keySet(jwk(public, `,"use":["sig"]`)), "use is not a string"},
		{"alg of another type", keySet(jwk(public, `,"alg":1`)), "alg is not a string"},
		{"key_ops of another type", keySet(jwk(public, `,"key_ops":"verify"`)), "key_ops is not a list"},
		{"kid of another type", keySet(jwk(public, `,"kid":7`)), "kid is not a string"},
	}
	for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"} {
		sets = append(sets, struct{ name, set, why string }{"with " + name, keySet(good, jwk(public, `,"`+name+`":"c2VjcmV0"`)), "key 2: contains " + name})
	}
	return sets
}

func TestKeySetRefused(t *testing.T) {
	for _, test := range refusedSets() {
		t.Run(test.name, func(t *testing.T) {
			set, err := ParseKeySet([]byte(test.set))
			if set != nil || errs.KindOf(err) != errs.Invalid || !strings.Contains(fmt.Sprint(err), test.why) {
				t.Errorf("got %v, %v; want a refusal because of %q", set, err, test.why)
			}
			if strings.Contains(fmt.Sprint(err), "c2VjcmV0") {
				t.Errorf("shows the secret: %v", err)
			}
			path := filepath.Join(t.TempDir(), "key set.json")
			write(t, path, test.set, 0o644)
			_, err = LoadKeySet(path, trusting())
			refusedFile(t, err, errs.Invalid, path, test.why, "curl --fail --output ")
		})
	}
}

func TestLoadKeySet(t *testing.T) {
	good := keySet(jwk(&providerKey().PublicKey, ``))
	for _, test := range []struct {
		name, set string
		mode      os.FileMode
		want      string // part of the error; "" if the set is accepted
		hint      string
	}{
		{"for its owner alone", good, 0o400, "", ""},
		{"readable by all users", good, 0o644, "", ""},
		{"its group may write it", good, 0o664, "", ""},
		{"others may write it", good, 0o646, "mode 0646 lets other users write it", "chmod o-w "},
		{"the longest", good + strings.Repeat(" ", jose.MaxKeySet-len(good)), 0o644, "", ""},
		{"too long", good + strings.Repeat(" ", jose.MaxKeySet-len(good)+1), 0o644, "longer than", "curl --fail --output "},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it's a set")
			write(t, path, test.set, test.mode)
			set, err := LoadKeySet(path, trusting())
			if test.want != "" {
				refusedFile(t, err, errs.Invalid, path, test.want, test.hint)
				return
			}
			if err != nil || set.Len() != 1 || len(set.Warnings()) != 0 {
				t.Errorf("got %v, %v", set, err)
			}
		})
	}
	t.Run("another user's file", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root, to give a file away")
		}
		path := filepath.Join(t.TempDir(), "set")
		write(t, path, good, 0o644)
		if _, err := LoadKeySet(path, trusting(4711)); err != nil {
			t.Errorf("root's: %v", err)
		}
		must(t, os.Chown(path, 4711, 0))
		if _, err := LoadKeySet(path, trusting(4711)); err != nil {
			t.Errorf("the file's own user: %v", err)
		}
		must(t, os.Chown(path, 4712, 0))
		_, err := LoadKeySet(path, trusting(4711))
		refusedFile(t, err, errs.Invalid, path, "owned by uid 4712, must be owned by uid 4711 or 0", "chown 4711 ")
	})
}

// TestKeySetKid checks that a token's kid selects the keys to try, and that
// keys without a kid are tried for every token.
func TestKeySetKid(t *testing.T) {
	a, b := &providerKey().PublicKey, &otherKey().PublicKey
	signed := b64("{}") + "." + b64("{}")
	signature := signatureOf(t, providerKey(), signed) // signature by key a
	for _, test := range []struct {
		name string
		keys []string
		kid  string
		want string // "" if the signature is valid
	}{
		{"the same kid", []string{jwk(b, `,"kid":"b"`), jwk(a, `,"kid":"a"`)}, "a", ""},
		{"another key's kid", []string{jwk(b, `,"kid":"b"`), jwk(a, `,"kid":"a"`)}, "b", errSignature.Error()},
		{"nobody's kid", []string{jwk(b, `,"kid":"b"`), jwk(a, `,"kid":"a"`)}, "c", "no key matches its kid"},
		{"a kid in other letters", []string{jwk(a, `,"kid":"a"`)}, "A", "no key matches its kid"},
		{"a kid that begins alike", []string{jwk(a, `,"kid":"a"`)}, "a\x00", "no key matches its kid"},
		{"none in the token", []string{jwk(b, `,"kid":"b"`), jwk(a, `,"kid":"a"`)}, "", ""},
		{"none at the key", []string{jwk(b, `,"kid":"b"`), jwk(a, ``)}, "c", ""},
		{"none at the key, the kid another's", []string{jwk(b, `,"kid":"b"`), jwk(a, ``)}, "b", ""},
		{"an empty one at the key", []string{jwk(a, `,"kid":""`)}, "c", ""},
		{"two keys have it", []string{jwk(b, `,"kid":"a"`), jwk(a, `,"kid":"a"`)}, "a", ""},
		{"nobody's signature", []string{jwk(b, ``)}, "", errSignature.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := parsedSet(t, test.keys...)
			err := set.verify(test.kid, signed, signature)
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			want := map[bool]Answer{true: Good, false: Bad}[test.want == ""]
			if got := set.Answer(Signature{test.kid, signed, signature}); got != want {
				t.Errorf("answer %v, want %v", got, want)
			}
		})
	}
	var none *KeySet
	if none.Answer(Signature{"", signed, signature}) != Unknown || none.verify("", signed, signature) == nil {
		t.Error("a nil set gives an answer")
	}
}

// FuzzKeySet checks that no input makes the parser panic, and that all keys in
// an accepted set are valid. It also checks that an accepted set verifies the
// provider's signature if and only if it contains the provider's key.
func FuzzKeySet(f *testing.F) {
	public := &providerKey().PublicKey
	f.Add([]byte(keySet(jwk(public, `,"kid":"a","use":"sig","alg":"RS256","key_ops":["verify"],"x5c":null`), ec)))
	for _, set := range refusedSets() {
		if len(set.set) < 4000 {
			f.Add([]byte(set.set))
		}
	}
	signed := b64("{}") + "." + b64("{}")
	signature := signatureOf(f, providerKey(), signed)
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := ParseKeySet(text)
		if err != nil {
			if set != nil || errs.KindOf(err) != errs.Invalid {
				t.Errorf("got %v, %v", set, err)
			}
			return
		}
		if !json.Valid(text) || set.Len() < 1 || set.Len() > jose.MaxKeys {
			t.Errorf("accepted %d keys", set.Len())
		}
		hasProviderKey, copies := false, []string{}
		for _, key := range set.Keys() {
			n, e := key.N, key.E
			if bits := n.BitLen(); bits < 2048 || bits > 8192 || n.Bit(0) == 0 || e < 3 || e%2 == 0 || e > 1<<31-1 {
				t.Errorf("accepted n of %d bits, e %d", bits, e)
			}
			hasProviderKey = hasProviderKey || public.Equal(key)
			copies = append(copies, jwk(key, ``))
		}
		// The set must verify the provider's signature if and only if it
		// contains the provider's key. The same must be true of a copy, which
		// is made by encoding the keys of the set and parsing the result.
		for _, s := range []*KeySet{set, parsedSet(t, copies...)} {
			if (s.verify("", signed, signature) == nil) != hasProviderKey {
				t.Errorf("the set has the provider's key: %v; verify contradicts this", hasProviderKey)
			}
		}
	})
}
