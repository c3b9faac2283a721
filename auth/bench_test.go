package auth

import (
	"context"
	"fmt"
	"testing"
	"time"

	"schedrestd/auth/jose"
)

func BenchmarkVerifyHS256(b *testing.B) {
	v, token := Verifier{Key: testKey(b), Now: clock}, sign(goodHeader, goodClaims)
	for b.Loop() {
		if _, err := v.Verify(token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyRS256(b *testing.B) {
	for _, bits := range []int{2048, 4096} {
		b.Run(fmt.Sprint(bits), func(b *testing.B) {
			key := newRSA("the provider", bits)
			set := parsedSet(b, jwk(&key.PublicKey, `,"kid":"a"`))
			v, token := Verifier{Keys: func() *KeySet { return set }, Now: clock}, signRSA(b, key, `{"alg":"RS256","kid":"a"}`, goodClaims)
			for b.Loop() {
				if _, err := v.Verify(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRefuseRS256 measures the cost of the most expensive forged token. It
// has no kid, so all keys are tried, and the set has the maximum number of
// keys.
func BenchmarkRefuseRS256(b *testing.B) {
	keys := make([]string, jose.MaxKeys)
	for i := range keys {
		keys[i] = jwk(&providerKey().PublicKey, ``)
	}
	set, token := parsedSet(b, keys...), signRSA(b, otherKey(), `{"alg":"RS256"}`, goodClaims)
	v := Verifier{Keys: func() *KeySet { return set }, Now: clock}
	for b.Loop() {
		if _, err := v.Verify(token); err == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	token := sign(goodHeader, goodClaims)
	for b.Loop() {
		if _, err := Inspect(token, Options{Now: clock}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInspectSeen measures a token that a client sends with each request.
func BenchmarkInspectSeen(b *testing.B) {
	token, opt := sign(goodHeader, goodClaims), Options{Now: clock, Seen: new(Seen)}
	for b.Loop() {
		if _, err := Inspect(token, opt); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAuthenticateRemembered measures Authenticate for a token that a
// daemon has just accepted, while the memory of accepted tokens is full.
func BenchmarkAuthenticateRemembered(b *testing.B) {
	a := Authenticator{Now: clock}
	for i := range maxRemembered - 1 {
		a.accepted.add(acceptance{controller, hashOf(fmt.Sprint(i)), ""}, now.Add(time.Hour), now, 0)
	}
	c, calls := credentialOf(b, sign(goodHeader, goodClaims), "bob"), 0
	ask := func(context.Context, string) error { calls++; return nil }
	for b.Loop() {
		if err := a.Authenticate(context.Background(), c, controller, ask); err != nil {
			b.Fatal(err)
		}
	}
	if calls != 1 {
		b.Errorf("asked %d times", calls)
	}
}
