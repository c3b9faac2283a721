package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
)

// testAuthenticator is an Authenticator with a clock of its own. It counts how
// often daemons and keys are asked.
type testAuthenticator struct {
	Authenticator
	now         time.Time
	daemonCalls map[string]int // number of calls by daemon
	answer      error          // answer of the daemons
	keyCalls    int            // number of calls to the keys
}

// newTestAuthenticator returns an authenticator whose keys give the answer
// *keyAnswer, for both algorithms. If keyAnswer is nil, the authenticator has
// no keys.
func newTestAuthenticator(keyAnswer *Answer) *testAuthenticator {
	a := &testAuthenticator{now: now, daemonCalls: map[string]int{}}
	a.Now = func() time.Time { return a.now }
	if keyAnswer != nil {
		a.HS256 = func(context.Context, Signature) Answer { a.keyCalls++; return *keyAnswer }
		a.RS256 = a.HS256
	}
	return a
}

func (a *testAuthenticator) authenticate(c Credential, daemon string) error {
	return a.Authenticate(context.Background(), c, daemon, func(context.Context, string) error {
		a.daemonCalls[daemon]++
		return a.answer
	})
}

// expect checks that Authenticate accepts c, and that it asks the daemon and
// the keys as often as given.
func (a *testAuthenticator) expect(t *testing.T, c Credential, daemon string, daemonCalls, keyCalls int) {
	t.Helper()
	clear(a.daemonCalls)
	a.keyCalls = 0
	if err := a.authenticate(c, daemon); err != nil || a.daemonCalls[daemon] != daemonCalls || a.keyCalls != keyCalls || len(a.daemonCalls) != min(daemonCalls, 1) {
		t.Errorf("%v at %s: got %v; asked %v, looked %d times; want %d and %d", c, daemon, err, a.daemonCalls, a.keyCalls, daemonCalls, keyCalls)
	}
}

// credentialOf returns the credential of a request with the given token and
// user name.
func credentialOf(t testing.TB, token, actAs string) Credential {
	t.Helper()
	claims, proof, err := inspect(token, Options{Now: clock})
	must(t, err)
	return Credential{Token: token, ActAs: actAs, Claims: claims, proof: proof}
}

const (
	controller = "controller"
	accounting = "accounting"
)

// TestAuthenticatorAsksTheDaemon checks that without a key the daemon decides,
// and that its acceptance is valid only for that daemon, token and name.
func TestAuthenticatorAsksTheDaemon(t *testing.T) {
	for algorithm, token := range map[string]string{"HS256": sign(goodHeader, goodClaims), "RS256": signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims)} {
		t.Run(algorithm, func(t *testing.T) {
			a, alice := newTestAuthenticator(nil), credentialOf(t, token, "")
			a.expect(t, alice, controller, 1, 0)
			a.expect(t, alice, controller, 0, 0)
			a.expect(t, alice, accounting, 1, 0) // each daemon is asked once
			a.expect(t, credentialOf(t, token, "bob"), controller, 1, 0)
			a.expect(t, credentialOf(t, token, "bob"), controller, 0, 0)
			a.expect(t, credentialOf(t, token, "carol"), controller, 1, 0)
			a.expect(t, credentialOf(t, token, "bob"), accounting, 1, 0)
			a.expect(t, credentialOf(t, sign(`{"alg":"HS256"}`, goodClaims), ""), controller, 1, 0) // another token with the same claims
			a.now = a.now.Add(memoryTTL - time.Second)
			a.expect(t, alice, controller, 0, 0)
			a.now = a.now.Add(time.Second)
			a.expect(t, alice, controller, 1, 0)
		})
	}
}

// TestAuthenticatorForgetsAtTheEndOfTheToken checks that an acceptance is
// forgotten when the token expires, although daemons accept the token for a few
// more seconds.
func TestAuthenticatorForgetsAtTheEndOfTheToken(t *testing.T) {
	good := Good
	for name, a := range map[string]*testAuthenticator{"asked": newTestAuthenticator(nil), "verified here": newTestAuthenticator(&good)} {
		t.Run(name, func(t *testing.T) {
			once := func(n int) (daemonCalls, keyCalls int) {
				if a.HS256 == nil {
					return n, 0
				}
				return 0, n
			}
			alice := credentialOf(t, sign(goodHeader, `{"iat":1699999999,"exp":1700000010,"sun":"alice"}`), "")
			for _, step := range []struct{ second, count int }{{0, 1}, {9, 0}, {10, 1}, {11, 1}} {
				a.now = now.Add(time.Duration(step.second) * time.Second)
				daemonCalls, keyCalls := once(step.count)
				a.expect(t, alice, controller, daemonCalls, keyCalls)
			}
		})
	}
}

// TestAuthenticatorWithKeys checks that if a key verifies the token, no daemon
// is asked about a request that acts as the token's own user. If the request
// acts as another user, the daemon must be asked.
func TestAuthenticatorWithKeys(t *testing.T) {
	good := Good
	token := sign(goodHeader, goodClaims)
	alice, same, bob := credentialOf(t, token, ""), credentialOf(t, token, "alice"), credentialOf(t, token, "bob")
	a := newTestAuthenticator(&good)
	a.expect(t, alice, controller, 0, 1)
	a.expect(t, alice, controller, 0, 0)
	a.expect(t, alice, accounting, 0, 0) // the result of a key is valid for every daemon
	a.expect(t, same, controller, 0, 0)
	a.expect(t, bob, controller, 1, 0)
	a.expect(t, bob, controller, 0, 0)
	a.expect(t, bob, accounting, 1, 0)
	a.now = a.now.Add(memoryTTL)
	a.expect(t, bob, controller, 1, 1)
	a.expect(t, alice, controller, 0, 0)
}

// TestAuthenticatorQuestion checks that the keys get the signed text, the
// signature and the kid, and that only the keys for the token's algorithm are
// asked.
func TestAuthenticatorQuestion(t *testing.T) {
	for _, test := range []struct{ alg, token, kid string }{
		{"HS256", sign(`{"alg":"HS256","kid":"h"}`, goodClaims), "h"},
		{"RS256", signRSA(t, providerKey(), `{"alg":"RS256","kid":"r"}`, goodClaims), "r"},
	} {
		var got []string
		answer := func(alg string) func(context.Context, Signature) Answer {
			return func(_ context.Context, s Signature) Answer {
				got = append(got, fmt.Sprintf("%s %s %s", alg, s.KeyID, s.Signed+"."+b64(string(s.Bytes))))
				return Good
			}
		}
		a := Authenticator{HS256: answer("HS256"), RS256: answer("RS256"), Now: clock}
		err := a.Authenticate(context.Background(), credentialOf(t, test.token, ""), controller, nil)
		if want := fmt.Sprintf("%s %s %s", test.alg, test.kid, test.token); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("got %v, asked %q, want %q", err, got, want)
		}
	}
	// Keys for one algorithm are not used for tokens with another algorithm.
	a := newTestAuthenticator(nil)
	a.RS256 = func(context.Context, Signature) Answer { a.keyCalls++; return Good }
	a.expect(t, credentialOf(t, sign(goodHeader, goodClaims), ""), controller, 1, 0)
}

func TestAuthenticatorRefuses(t *testing.T) {
	token := sign(goodHeader, goodClaims)
	down := errs.New(errs.Unavailable, "the controller is down")
	refusedThere := errs.New(errs.Unauthenticated, Refused)
	bad, unknown, good := Bad, Unknown, Good
	for _, test := range []struct {
		name      string
		keyAnswer *Answer
		actAs     string
		answer    error
		want      errs.Kind
		calls     int
	}{
		{"forged, according to a key", &bad, "", nil, errs.Unauthenticated, 0},
		{"forged, with a name to act as", &bad, "bob", nil, errs.Unauthenticated, 0},
		{"refused by the daemon", nil, "", refusedThere, errs.Unauthenticated, 1},
		{"refused by the daemon, unknown to the keys", &unknown, "", refusedThere, errs.Unauthenticated, 1},
		{"a user that may not act for others", &good, "bob", refusedThere, errs.Unauthenticated, 1},
		{"the daemon is down", nil, "", down, errs.Unavailable, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newTestAuthenticator(test.keyAnswer)
			a.answer = test.answer
			c := credentialOf(t, token, test.actAs)
			for i := range 2 { // only a daemon's rejection is remembered, and only for a moment
				err := a.authenticate(c, controller)
				if errs.KindOf(err) != test.want || a.daemonCalls[controller] != test.calls*(i+1) || test.answer != nil && !errors.Is(err, test.answer) {
					t.Errorf("got %v, asked %d times", err, a.daemonCalls[controller])
				}
				if test.calls == 0 {
					refused(t, err, errSignature.Error(), token)
				}
				if err := a.authenticate(c, controller); test.want == errs.Unauthenticated && (errs.KindOf(err) != test.want || a.daemonCalls[controller] != test.calls*(i+1)) {
					t.Errorf("repeated at once: got %v, asked %d times", err, a.daemonCalls[controller])
				}
				a.daemonCalls[controller] = test.calls * (i + 1)
				a.now = a.now.Add(rejectionTTL)
			}
			a.answer = nil
			if err := a.authenticate(c, controller); test.keyAnswer != &bad && err != nil {
				t.Errorf("accepted by the daemon later: %v", err)
			}
		})
	}
	t.Run("no token at all", func(t *testing.T) {
		a := newTestAuthenticator(&good)
		if err := a.authenticate(Credential{Token: "x.y"}, controller); errs.KindOf(err) != errs.Unauthenticated || len(a.daemonCalls) > 0 || a.keyCalls > 0 {
			t.Errorf("got %v, asked %v", err, a.daemonCalls)
		}
	})
}

// TestAuthenticatorUnknown checks that if the keys can't decide, the daemon is
// asked. When the daemon's answer is no longer remembered, the keys must be
// asked again.
func TestAuthenticatorUnknown(t *testing.T) {
	keyAnswer := Unknown
	a, alice := newTestAuthenticator(&keyAnswer), credentialOf(t, sign(goodHeader, goodClaims), "")
	a.expect(t, alice, controller, 1, 1)
	a.expect(t, alice, controller, 0, 0)
	a.expect(t, alice, accounting, 1, 1)
	keyAnswer = Good
	a.now = a.now.Add(memoryTTL)
	a.expect(t, alice, controller, 0, 1)
}

// TestAuthenticatorLocal checks that a local credential needs no verification.
func TestAuthenticatorLocal(t *testing.T) {
	bad := Bad
	a := newTestAuthenticator(&bad)
	a.answer = errors.New("must not be asked")
	a.expect(t, Credential{Local: true, UID: 1000, GID: 1000}, controller, 0, 0)
}

// TestAuthenticatorForget checks that Forget removes the acceptance of one
// credential by one daemon. It must also remove the keys' result for the
// credential's token.
func TestAuthenticatorForget(t *testing.T) {
	token := sign(goodHeader, goodClaims)
	alice, bob := credentialOf(t, token, ""), credentialOf(t, token, "bob")
	a := newTestAuthenticator(nil)
	for _, daemon := range []string{controller, accounting} {
		a.expect(t, alice, daemon, 1, 0)
		a.expect(t, bob, daemon, 1, 0)
	}
	a.Forget(alice, controller)
	a.expect(t, alice, accounting, 0, 0)
	a.expect(t, bob, controller, 1, 0) // only about the token: that alice may act as bob is still remembered
	a.expect(t, alice, controller, 0, 0)
	a.Forget(bob, controller)
	a.expect(t, bob, accounting, 0, 0)
	a.expect(t, bob, controller, 2, 0)

	good := Good
	a = newTestAuthenticator(&good)
	a.expect(t, alice, controller, 0, 1)
	a.Forget(alice, controller)
	a.expect(t, alice, controller, 0, 1)
	a.expect(t, bob, controller, 1, 0)
	a.Forget(bob, controller)
	a.expect(t, bob, controller, 1, 1)
}

// TestAuthenticatorForgetsMeanwhile tests a call to Forget while a question is
// pending. The answer must be used for the request that asked, but must not be
// remembered.
func TestAuthenticatorForgetsMeanwhile(t *testing.T) {
	alice, bob := credentialOf(t, sign(goodHeader, goodClaims), ""), credentialOf(t, sign(goodHeader, goodClaims), "bob")
	t.Run("the daemon is asked", func(t *testing.T) {
		a := newTestAuthenticator(nil)
		must(t, a.Authenticate(context.Background(), bob, controller, func(context.Context, string) error { a.Forget(bob, controller); return nil }))
		a.expect(t, bob, controller, 2, 0)
	})
	t.Run("a key is asked", func(t *testing.T) {
		good := Good
		a := newTestAuthenticator(&good)
		verify := a.HS256
		a.HS256 = func(ctx context.Context, s Signature) Answer { a.Forget(bob, controller); return verify(ctx, s) }
		must(t, a.authenticate(alice, controller))
		a.HS256 = verify
		a.expect(t, alice, controller, 0, 1)
	})
}

// TestAuthenticatorOfNoRequest checks that a credential that does not come from
// a request is verified like any other.
func TestAuthenticatorOfNoRequest(t *testing.T) {
	a, c := newTestAuthenticator(nil), credentialOf(t, sign(goodHeader, goodClaims), "")
	c.proof = nil
	a.expect(t, c, controller, 1, 0)
	a.expect(t, credentialOf(t, c.Token, ""), controller, 0, 0)
	a.Forget(c, controller)
	a.expect(t, c, controller, 1, 0)
}

// TestAuthenticatorCancelled checks that nothing is remembered if the client
// disconnects while the daemon is being asked.
func TestAuthenticatorCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var a Authenticator
	a.Now = clock
	alice := credentialOf(t, sign(goodHeader, goodClaims), "")
	for range 2 {
		err := a.Authenticate(ctx, alice, controller, func(ctx context.Context, _ string) error { return ctx.Err() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if len(a.accepted.expiry) > 0 {
		t.Error("an answer is remembered")
	}
}

// TestAuthenticatorTogether is for the race detector. Several goroutines use
// one Authenticator at the same time, and each of them calls Forget once.
func TestAuthenticatorTogether(t *testing.T) {
	set := parsedSet(t, jwk(&providerKey().PublicKey, ``))
	a := Authenticator{RS256: func(_ context.Context, s Signature) Answer { return set.Answer(s) }, Now: clock}
	hs, rs := credentialOf(t, sign(goodHeader, goodClaims), "bob"), credentialOf(t, signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims), "")
	var calls atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 50 {
				for _, c := range []Credential{hs, rs} {
					if err := a.Authenticate(context.Background(), c, controller, func(context.Context, string) error { calls.Add(1); return nil }); err != nil {
						t.Error(err)
					}
				}
				if i == 20 {
					a.Forget(hs, controller)
				}
			}
		})
	}
	wait.Wait()
	if n := calls.Load(); n < 1 || n > 8*3*8 {
		t.Errorf("asked %d times", n)
	}
}
