package auth

import (
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

var (
	secret = []byte("0123456789abcdef0123456789abcdef")
	now    = time.Unix(1_700_000_000, 0)
	clock  = func() time.Time { return now }
)

const (
	goodHeader = `{"alg":"HS256","typ":"JWT"}`
	goodClaims = `{"iat":1700000000,"exp":1700001800,"sun":"alice"}`
)

// sign returns a token. It uses only the standard library, so that these tests
// do not depend on the JWT library.
func sign(header, claims string) string {
	signed := b64(header) + "." + b64(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func deflated(text string) string {
	var b strings.Builder
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func testKey(t testing.TB) Key {
	key, err := NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func claim(members string) string { return `{"iat":1700000000,"exp":1700001800,` + members + `}` }

func TestAccepted(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	alice := Claims{User: "alice", IssuedAt: at(1_700_000_000), Expires: at(1_700_001_800), Algorithm: "HS256"}
	with := func(change func(*Claims)) Claims {
		c := alice
		change(&c)
		return c
	}
	tests := []struct {
		name           string
		header, claims string
		field          string
		want           Claims
	}{
		{"the usual", goodHeader, goodClaims, "", alice},
		{"no typ", `{"alg":"HS256"}`, goodClaims, "", alice},
		{"an access token", `{"alg":"HS256","typ":"application/at+JWT"}`, goodClaims, "", alice},
		{"kid", `{"alg":"HS256","kid":"../../etc/passwd"}`, goodClaims, "", with(func(c *Claims) { c.KeyID = "../../etc/passwd" })},
		{"keys in the token are ignored", `{"alg":"HS256","jku":"http://x/","jwk":{},"x5u":1}`, goodClaims, "", alice},
		{"blanks", " { \"alg\" : \"HS256\" }\n", " {\t\"exp\" : 1700001800 , \"iat\" :1700000000,\"sun\" : \"alice\" } ", "", alice},
		{"escapes", goodHeader, claim(`"s\u0075n":"\u0061lice"`), "", alice},
		{"username", goodHeader, claim(`"username":"alice"`), "", alice},
		{"sun before username", goodHeader, claim(`"username":"bob","sun":"alice"`), "", alice},
		{"the site's claim", goodHeader, claim(`"preferred_username":"alice"`), "preferred_username", alice},
		{"sun before the site's claim", goodHeader, claim(`"preferred_username":"bob","sun":"alice"`), "preferred_username", alice},
		{"whole numbers written otherwise", goodHeader, `{"iat":1.7e9,"exp":1700001800.0,"sun":"alice"}`, "", alice},
		{"nbf now", goodHeader, claim(`"nbf":1700000005,"sun":"alice"`), "", with(func(c *Claims) { c.NotBefore = at(1_700_000_005) })},
		{"issued within the leeway", goodHeader, `{"iat":1700000005,"exp":1700001800,"sun":"alice"}`, "", with(func(c *Claims) { c.IssuedAt = at(1_700_000_005) })},
		{"expired within the leeway", goodHeader, `{"iat":1699990000,"exp":1699999996,"sun":"alice"}`, "",
			with(func(c *Claims) { c.IssuedAt, c.Expires = at(1_699_990_000), at(1_699_999_996) })},
		{"claims of others", goodHeader, claim(`"sun":"alice","aud":["x"],"realm":{"sun":"root"},"SUN":"root"`), "", alice},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			token := sign(test.header, test.claims)
			got, err := Inspect(token, Options{Rules: Rules{UserField: test.field}, Now: clock})
			if d := cmp.Diff(test.want, got); d != "" || err != nil {
				t.Errorf("Inspect: %v, -want +got\n%s", err, d)
			}
			got, err = Verifier{Key: testKey(t), Rules: Rules{UserField: test.field}, Now: clock}.Verify(token)
			if d := cmp.Diff(test.want, got); d != "" || err != nil {
				t.Errorf("Verify: %v, -want +got\n%s", err, d)
			}
		})
	}
}

// attacks lists tokens that must be refused even with a valid signature. Each
// token has a valid signature if its form permits one.
var attacks = []struct{ name, token, why string }{
	{"nothing", "", "not three segments"},
	{"two segments", b64(goodHeader) + "." + b64(goodClaims), "not three segments"},
	{"four segments", sign(goodHeader, goodClaims) + ".", "not three segments"},
	{"an encrypted token", "a.b.c.d.e", "not three segments"},
	{"100 000 segments", strings.Repeat(".", 100_000), "too long"},
	{"a huge header", sign(`{"alg":"HS256","x":"`+strings.Repeat("x", maxToken)+`"}`, goodClaims), "too long"},
	{"three empty segments", "..", "header: not a JSON object"},
	{"no signature", b64(goodHeader) + "." + b64(goodClaims) + ".", "signature: wrong length"},
	{"a shortened signature", b64(goodHeader) + "." + b64(goodClaims) + "." + b64(strings.Repeat("x", 31)), "signature: wrong length"},
	{"padding", b64(goodHeader) + "=." + b64(goodClaims) + "." + b64(strings.Repeat("x", 32)), "header: not base64url"},
	{"the other alphabet", "a+/a." + b64(goodClaims) + "." + b64(strings.Repeat("x", 32)), "header: not base64url"},
	{"a line end", b64(goodHeader) + "\n." + b64(goodClaims) + "." + b64(strings.Repeat("x", 32)), "header: not base64url"},
	{"a line end in the signature", sign(goodHeader, goodClaims) + "\r", "signature: not base64url"},
	{"stray bits", sign(goodHeader, goodClaims)[:len(sign(goodHeader, goodClaims))-1] + "_", "signature: not base64url"},
	{"alg none", sign(`{"alg":"none"}`, goodClaims), "alg is not"},
	{"alg NONE", sign(`{"alg":"NONE"}`, goodClaims), "alg is not"},
	{"alg nOnE", sign(`{"alg":"nOnE"}`, goodClaims), "alg is not"},
	{"alg empty", sign(`{"alg":""}`, goodClaims), "alg is not"},
	{"alg absent", sign(`{"typ":"JWT"}`, goodClaims), "alg is not"},
	{"alg hs256", sign(`{"alg":"hs256"}`, goodClaims), "alg is not"},
	{"alg HS512", sign(`{"alg":"HS512"}`, goodClaims), "alg is not"},
	{"alg of another type", sign(`{"alg":["HS256"]}`, goodClaims), "alg is not"},
	{"alg twice", sign(`{"alg":"none","alg":"HS256"}`, goodClaims), "header: duplicate member"},
	{"alg twice by escapes", sign(`{"alg":"none","\u0061lg":"HS256"}`, goodClaims), "header: duplicate member"},
	{"RS256 with an HMAC", sign(`{"alg":"RS256"}`, goodClaims), "signature: wrong length"},
	{"crit", sign(`{"alg":"HS256","crit":["exp"]}`, goodClaims), "crit"},
	{"crit empty", sign(`{"alg":"HS256","crit":[]}`, goodClaims), "crit"},
	{"b64", sign(`{"alg":"HS256","b64":false}`, goodClaims), "b64"},
	{"a nested token", sign(`{"alg":"HS256","cty":"JWT"}`, goodClaims), "header: cty"},
	{"a token for something else", sign(`{"alg":"HS256","typ":"dpop+jwt"}`, goodClaims), "typ"},
	{"typ of another type", sign(`{"alg":"HS256","typ":1}`, goodClaims), "typ"},
	{"kid of another type", sign(`{"alg":"HS256","kid":{"a":1}}`, goodClaims), "kid"},
	{"header is an array", sign(`["HS256"]`, goodClaims), "header: not a JSON object"},
	{"header is not UTF-8", sign("{\"alg\":\"HS256\",\"kid\":\"\xff\"}", goodClaims), "not UTF-8"},
	{"a compressed payload", sign(`{"alg":"HS256","zip":"DEF"}`, deflated(goodClaims)), "payload: not UTF-8"},
	{"payload is a text", sign(goodHeader, `"x"`), "payload: not a JSON object"},
	{"payload breaks off", sign(goodHeader, goodClaims[:20]), "payload: not JSON"},
	{"text after the payload", sign(goodHeader, goodClaims+"x"), "payload: data after"},
	{"two payloads", sign(goodHeader, goodClaims+goodClaims), "payload: data after"},
	{"a comma too many", sign(goodHeader, claim(`"sun":"alice",`)), "payload: not JSON"},
	{"exp twice", sign(goodHeader, claim(`"exp":1900000000,"sun":"alice"`)), "duplicate member"},
	{"sun twice", sign(goodHeader, claim(`"sun":"alice","sun":"root"`)), "duplicate member"},
	{"no exp", sign(goodHeader, `{"iat":1700000000,"sun":"alice"}`), "no exp"},
	{"no iat", sign(goodHeader, `{"exp":1700001800,"sun":"alice"}`), "no iat"},
	{"exp as text", sign(goodHeader, `{"iat":1700000000,"exp":"1700001800","sun":"alice"}`), "exp: not a time"},
	{"exp null", sign(goodHeader, `{"iat":1700000000,"exp":null,"sun":"alice"}`), "exp: not a time"},
	{"exp negative", sign(goodHeader, `{"iat":1700000000,"exp":-1,"sun":"alice"}`), "exp: not a time"},
	{"exp with a fraction", sign(goodHeader, `{"iat":1700000000,"exp":1700001800.5,"sun":"alice"}`), "exp: not a time"},
	{"exp with a fraction that a float loses", sign(goodHeader, `{"iat":1700000000,"exp":1700001800.00000000000000000001,"sun":"alice"}`), "exp: not a time"},
	{"iat that a float makes nothing of", sign(goodHeader, `{"iat":1e-400,"exp":1700001800,"sun":"alice"}`), "iat: not a time"},
	{"exp with a long exponent", sign(goodHeader, `{"iat":1700000000,"exp":1e999999999,"sun":"alice"}`), "exp: not a time"},
	{"exp 1e400", sign(goodHeader, `{"iat":1700000000,"exp":1e400,"sun":"alice"}`), "exp: not a time"},
	{"exp of 400 digits", sign(goodHeader, `{"iat":1700000000,"exp":1`+strings.Repeat("0", 400)+`,"sun":"alice"}`), "exp: not a time"},
	{"exp beyond the year 9999", sign(goodHeader, `{"iat":1700000000,"exp":253402300800,"sun":"alice"}`), "exp: not a time"},
	{"iat true", sign(goodHeader, `{"iat":true,"exp":1700001800,"sun":"alice"}`), "iat: not a time"},
	{"expired", sign(goodHeader, `{"iat":1699990000,"exp":1699999995,"sun":"alice"}`), "expired 5s ago"},
	{"issued in the future", sign(goodHeader, `{"iat":1700000006,"exp":1700001800,"sun":"alice"}`), "issued 6s from now"},
	{"not yet valid", sign(goodHeader, claim(`"nbf":1700000006,"sun":"alice"`)), "valid 6s from now"},
	{"nbf as text", sign(goodHeader, claim(`"nbf":"0","sun":"alice"`)), "nbf: not a time"},
	{"no user", sign(goodHeader, claim(`"sub":"alice"`)), "no claim names the user"},
	{"an empty user", sign(goodHeader, claim(`"sun":"","username":"root"`)), "the user claim"},
	{"user null", sign(goodHeader, claim(`"sun":null,"username":"root"`)), "the user claim"},
	{"user of another type", sign(goodHeader, claim(`"sun":["root"]`)), "the user claim"},
	{"a hyphen first", sign(goodHeader, claim(`"sun":"-u0"`)), "the user claim"},
	{"user with a path", sign(goodHeader, claim(`"sun":"a/../root"`)), "the user claim"},
	{"user with a zero byte", sign(goodHeader, claim(`"sun":"root\u0000x"`)), "the user claim"},
	{"user with a line end", sign(goodHeader, claim(`"sun":"alice\n"`)), "the user claim"},
	{"user that looks like another", sign(goodHeader, claim(`"sun":"r\u043e\u043et"`)), "the user claim"},
	{"a very long user", sign(goodHeader, claim(`"sun":"`+strings.Repeat("a", 256)+`"`)), "the user claim"},
}

func TestAttacks(t *testing.T) {
	v := Verifier{Key: testKey(t), Now: clock}
	for _, test := range attacks {
		t.Run(test.name, func(t *testing.T) {
			_, err := Inspect(test.token, Options{Now: clock})
			refused(t, err, test.why, test.token)
			if _, err := v.Verify(test.token); errs.KindOf(err) != errs.Unauthenticated {
				t.Errorf("Verify: got %v", err)
			}
		})
	}
}

// TestForged checks that a well-formed token is refused if its signature can't
// be verified.
func TestForged(t *testing.T) {
	good := sign(goodHeader, goodClaims)
	head, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	tests := []struct{ name, token, reason string }{
		{"another payload", head + "." + b64(claim(`"sun":"root"`)) + "." + signature, "wrong signature"},
		{"another header", b64(`{"alg":"HS256","kid":"x"}`) + "." + payload + "." + signature, "wrong signature"},
		{"another signature", head + "." + payload + "." + b64(strings.Repeat("\x00", 32)), "wrong signature"},
		{"RS256, where the key is HS256's", b64(`{"alg":"RS256"}`) + "." + payload + "." + b64(strings.Repeat("\x00", 256)), "no key for its alg"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Inspect(test.token, Options{Now: clock}); err != nil {
				t.Errorf("Inspect: %v; the form is good", err)
			}
			_, err := Verifier{Key: testKey(t), Now: clock}.Verify(test.token)
			refused(t, err, test.reason, test.token)
		})
	}
	other, _ := NewKey([]byte(strings.Repeat("k", 32)))
	for name, v := range map[string]Verifier{"another key": {Key: other, Now: clock}, "no key": {Now: clock}} {
		if _, err := v.Verify(good); errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// A verifier without a key must not accept a signature that was made with
	// an empty key.
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte(head + "." + payload))
	empty := head + "." + payload + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	if _, err := (Verifier{Now: clock}).Verify(empty); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("signed with an empty key: got %v", err)
	}
}

// refused checks that err contains the expected reason, and that clients see
// only the message Refused. It also checks that the text of err contains no
// part of the token.
func refused(t *testing.T, err error, reason, token string) {
	t.Helper()
	if errs.KindOf(err) != errs.Unauthenticated || !strings.Contains(fmt.Sprint(err), reason) {
		t.Fatalf("got %v, want a refusal because of %q", err, reason)
	}
	if public := err.(*errs.Error); public.Message != Refused || public.Hint != "" || public.Code != "" {
		t.Errorf("the public text has more than it should: %+v", public)
	}
	for _, part := range strings.Split(token, ".") {
		if len(part) > 3 && strings.Contains(err.Error(), part) {
			t.Errorf("shows a part of the token: %v", err)
		}
	}
}

func TestCreate(t *testing.T) {
	key := testKey(t)
	token, err := Create(key, "alice", DefaultLifespan, now)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	var claims map[string]any
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"iat": 1.7e9, "exp": 1.7e9 + 1800, "sun": "alice"}
	if d := cmp.Diff(want, claims); d != "" {
		t.Errorf("claims: -want +got\n%s", d)
	}
	if c, err := (Verifier{Key: key, Now: clock}).Verify(token); err != nil || c.User != "alice" {
		t.Errorf("own token: %+v, %v", c, err)
	}
	for _, test := range []struct {
		name     string
		key      Key
		user     string
		lifespan time.Duration
	}{
		{"no key", Key{}, "alice", time.Hour},
		{"no user", key, "", time.Hour},
		{"not a user", key, "a b", time.Hour},
		{"no time", key, "alice", 0},
		{"less than none", key, "alice", -time.Hour},
		{"for ever", key, "alice", MaxLifespan + time.Second},
	} {
		if token, err := Create(test.key, test.user, test.lifespan, now); err == nil {
			t.Errorf("%s: made %q", test.name, token)
		}
	}
}

// FuzzToken checks that every accepted token is genuine: signing its header and
// claims again must create the same token, byte for byte. If Inspect refuses a
// token, its error must be Unauthenticated.
func FuzzToken(f *testing.F) {
	f.Add(sign(goodHeader, goodClaims))
	f.Add(signRSA(f, providerKey(), `{"alg":"RS256","kid":"a"}`, goodClaims))
	for _, a := range attacks {
		if len(a.token) < 1000 {
			f.Add(a.token)
		}
	}
	v := provider(f, "a")
	v.Key, v.Rules.UserField = testKey(f), "sub"
	f.Fuzz(func(t *testing.T, token string) {
		inspected, bad := Inspect(token, Options{Rules: Rules{UserField: "sub"}, Now: clock})
		if bad == nil && (!PosixName(inspected.User) || inspected.Expires.Add(leeway).Before(now)) {
			t.Errorf("accepted %+v", inspected)
		}
		if bad != nil && errs.KindOf(bad) != errs.Unauthenticated {
			t.Errorf("refused with %v", bad)
		}
		verified, err := v.Verify(token)
		if err != nil {
			return
		}
		if verified != inspected || bad != nil {
			t.Errorf("verified %+v, inspected %+v, %v", verified, inspected, bad)
		}
		header, claims := headerOf(token)
		resigned := sign(header, claims)
		if verified.Algorithm == "RS256" {
			resigned = signRSA(t, providerKey(), header, claims)
		}
		if token != resigned {
			t.Errorf("a forged token was taken for %s's", verified.User)
		}
	})
}

// headerOf returns the decoded header and claims of a token.
func headerOf(token string) (header, claims string) {
	parts := strings.Split(token, ".")
	h, _ := base64.RawURLEncoding.DecodeString(parts[0])
	c, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return string(h), string(c)
}

// FuzzClaims fuzzes the decoded content of a segment, because random base64
// seldom decodes to anything meaningful.
func FuzzClaims(f *testing.F) {
	f.Add(goodClaims)
	f.Add(claim(`"nbf":1e3,"username":"b","\u0073un":"a","x":{"y":[1,2,{}]}`))
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseObject([]byte(text))
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("accepted what is not JSON")
		}
		e := examination{rules: Rules{UserField: "sub"}, now: now, members: o}
		_ = e.run(claimChecks[1:])
	})
}
