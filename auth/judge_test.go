package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/errs"
)

// testJudge is a Judge with a clock of its own. It counts the questions to daemons
// and to keys.
type testJudge struct {
	Judge
	now         time.Time
	daemonCalls map[string]int // number of calls by daemon
	answer      error          // answer of the daemons
	keyCalls    int            // number of questions to the keys
}

// newTestJudge returns a court whose keys, for both algorithms, give the answer
// *says. If says is nil, the court has no keys.
func newTestJudge(keyAnswer *Answer) *testJudge {
	b := &testJudge{now: now, daemonCalls: map[string]int{}}
	b.Now = func() time.Time { return b.now }
	if keyAnswer != nil {
		b.HS256 = func(context.Context, Signature) Answer { b.keyCalls++; return *keyAnswer }
		b.RS256 = b.HS256
	}
	return b
}

func (b *testJudge) authenticate(c Credential, daemon string) error {
	return b.Authenticate(context.Background(), c, daemon, func(context.Context) error {
		b.daemonCalls[daemon]++
		return b.answer
	})
}

// expect checks that the judge accepts c, and how often it asks the daemon and
// the keys for this.
func (b *testJudge) expect(t *testing.T, c Credential, daemon string, daemonCalls, keyCalls int) {
	t.Helper()
	clear(b.daemonCalls)
	b.keyCalls = 0
	if err := b.authenticate(c, daemon); err != nil || b.daemonCalls[daemon] != daemonCalls || b.keyCalls != keyCalls || len(b.daemonCalls) != min(daemonCalls, 1) {
		t.Errorf("%v at %s: got %v; asked %v, looked %d times; want %d and %d", c, daemon, err, b.daemonCalls, b.keyCalls, daemonCalls, keyCalls)
	}
}

// credentialOf returns the credential that FromRequest returns for a token and
// a name.
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

// TestJudgeAsksTheDaemon checks that without a key the daemon decides, and that
// its acceptance is valid only for that daemon, token and name.
func TestJudgeAsksTheDaemon(t *testing.T) {
	for algorithm, token := range map[string]string{"HS256": sign(goodHeader, goodClaims), "RS256": signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims)} {
		t.Run(algorithm, func(t *testing.T) {
			b, alice := newTestJudge(nil), credentialOf(t, token, "")
			b.expect(t, alice, controller, 1, 0)
			b.expect(t, alice, controller, 0, 0)
			b.expect(t, alice, accounting, 1, 0) // each daemon is asked once
			b.expect(t, credentialOf(t, token, "bob"), controller, 1, 0)
			b.expect(t, credentialOf(t, token, "bob"), controller, 0, 0)
			b.expect(t, credentialOf(t, token, "carol"), controller, 1, 0)
			b.expect(t, credentialOf(t, token, "bob"), accounting, 1, 0)
			b.expect(t, credentialOf(t, sign(`{"alg":"HS256"}`, goodClaims), ""), controller, 1, 0) // another token with the same claims
			b.now = b.now.Add(memoryTTL - time.Second)
			b.expect(t, alice, controller, 0, 0)
			b.now = b.now.Add(time.Second)
			b.expect(t, alice, controller, 1, 0)
		})
	}
}

// TestJudgeForgetsAtTheEndOfTheToken checks that an acceptance is forgotten
// when the token expires, although daemons accept a token for a few seconds
// longer.
func TestJudgeForgetsAtTheEndOfTheToken(t *testing.T) {
	good := Good
	for name, b := range map[string]*testJudge{"asked": newTestJudge(nil), "verified here": newTestJudge(&good)} {
		t.Run(name, func(t *testing.T) {
			once := func(n int) (daemonCalls, keyCalls int) {
				if b.HS256 == nil {
					return n, 0
				}
				return 0, n
			}
			alice := credentialOf(t, sign(goodHeader, `{"iat":1699999999,"exp":1700000010,"sun":"alice"}`), "")
			for _, step := range []struct{ second, count int }{{0, 1}, {9, 0}, {10, 1}, {11, 1}} {
				b.now = now.Add(time.Duration(step.second) * time.Second)
				daemonCalls, keyCalls := once(step.count)
				b.expect(t, alice, controller, daemonCalls, keyCalls)
			}
		})
	}
}

// TestJudgeWithKeys checks that no daemon is asked if a key verifies a token
// and the request acts as the token's own user. For any other name, the daemon
// must be asked.
func TestJudgeWithKeys(t *testing.T) {
	good := Good
	token := sign(goodHeader, goodClaims)
	alice, same, bob := credentialOf(t, token, ""), credentialOf(t, token, "alice"), credentialOf(t, token, "bob")
	b := newTestJudge(&good)
	b.expect(t, alice, controller, 0, 1)
	b.expect(t, alice, controller, 0, 0)
	b.expect(t, alice, accounting, 0, 0) // the result of a key is valid for every daemon
	b.expect(t, same, controller, 0, 0)
	b.expect(t, bob, controller, 1, 0)
	b.expect(t, bob, controller, 0, 0)
	b.expect(t, bob, accounting, 1, 0)
	b.now = b.now.Add(memoryTTL)
	b.expect(t, bob, controller, 1, 1)
	b.expect(t, alice, controller, 0, 0)
}

// TestJudgeQuestion checks that a question to the keys has the signed text, the
// signature and the kid, and that only keys for the token's algorithm are
// asked.
func TestJudgeQuestion(t *testing.T) {
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
		j := Judge{HS256: answer("HS256"), RS256: answer("RS256"), Now: clock}
		err := j.Authenticate(context.Background(), credentialOf(t, test.token, ""), controller, nil)
		if want := fmt.Sprintf("%s %s %s", test.alg, test.kid, test.token); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("got %v, asked %q, want %q", err, got, want)
		}
	}
	// Keys for one algorithm don't decide about the other.
	b := newTestJudge(nil)
	b.RS256 = func(context.Context, Signature) Answer { b.keyCalls++; return Good }
	b.expect(t, credentialOf(t, sign(goodHeader, goodClaims), ""), controller, 1, 0)
}

func TestJudgeRefuses(t *testing.T) {
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
		{"forged, by a key that is here", &bad, "", nil, errs.Unauthenticated, 0},
		{"forged, with a name to act as", &bad, "bob", nil, errs.Unauthenticated, 0},
		{"refused by the daemon", nil, "", refusedThere, errs.Unauthenticated, 1},
		{"refused by the daemon, where no key can tell", &unknown, "", refusedThere, errs.Unauthenticated, 1},
		{"not one who acts for others", &good, "bob", refusedThere, errs.Unauthenticated, 1},
		{"the daemon is down", nil, "", down, errs.Unavailable, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newTestJudge(test.keyAnswer)
			b.answer = test.answer
			c := credentialOf(t, token, test.actAs)
			for i := range 2 { // only a daemon's rejection is remembered, and only for a moment
				err := b.authenticate(c, controller)
				if errs.KindOf(err) != test.want || b.daemonCalls[controller] != test.calls*(i+1) || test.answer != nil && !errors.Is(err, test.answer) {
					t.Errorf("got %v, asked %d times", err, b.daemonCalls[controller])
				}
				if test.calls == 0 {
					refused(t, err, errSignature.Error(), token)
				}
				if err := b.authenticate(c, controller); test.want == errs.Unauthenticated && (errs.KindOf(err) != test.want || b.daemonCalls[controller] != test.calls*(i+1)) {
					t.Errorf("repeated at once: got %v, asked %d times", err, b.daemonCalls[controller])
				}
				b.daemonCalls[controller] = test.calls * (i + 1)
				b.now = b.now.Add(rejectionTTL)
			}
			b.answer = nil
			if err := b.authenticate(c, controller); test.keyAnswer != &bad && err != nil {
				t.Errorf("good again: %v", err)
			}
		})
	}
	t.Run("no token at all", func(t *testing.T) {
		b := newTestJudge(&good)
		if err := b.authenticate(Credential{Token: "x.y"}, controller); errs.KindOf(err) != errs.Unauthenticated || len(b.daemonCalls) > 0 || b.keyCalls > 0 {
			t.Errorf("got %v, asked %v", err, b.daemonCalls)
		}
	})
}

// TestJudgeUnknown checks that the daemon is asked if the keys can't decide,
// and that it is asked again when its answer is no longer remembered.
func TestJudgeUnknown(t *testing.T) {
	keyAnswer := Unknown
	b, alice := newTestJudge(&keyAnswer), credentialOf(t, sign(goodHeader, goodClaims), "")
	b.expect(t, alice, controller, 1, 1)
	b.expect(t, alice, controller, 0, 0)
	b.expect(t, alice, accounting, 1, 1)
	keyAnswer = Good
	b.now = b.now.Add(memoryTTL)
	b.expect(t, alice, controller, 0, 1)
}

// TestJudgeLocal checks that a local credential needs no verification.
func TestJudgeLocal(t *testing.T) {
	bad := Bad
	b := newTestJudge(&bad)
	b.answer = errors.New("must not be asked")
	b.expect(t, Credential{Local: true, UID: 1000, GID: 1000}, controller, 0, 0)
}

// TestJudgeForget checks that Forget removes the acceptance of one credential
// by one daemon, and the keys' result for its token.
func TestJudgeForget(t *testing.T) {
	token := sign(goodHeader, goodClaims)
	alice, bob := credentialOf(t, token, ""), credentialOf(t, token, "bob")
	b := newTestJudge(nil)
	for _, daemon := range []string{controller, accounting} {
		b.expect(t, alice, daemon, 1, 0)
		b.expect(t, bob, daemon, 1, 0)
	}
	b.Forget(alice, controller)
	b.expect(t, bob, controller, 0, 0)
	b.expect(t, alice, accounting, 0, 0)
	b.expect(t, alice, controller, 1, 0)

	good := Good
	b = newTestJudge(&good)
	b.expect(t, alice, controller, 0, 1)
	b.Forget(alice, controller)
	b.expect(t, alice, controller, 0, 1)
	b.expect(t, bob, controller, 1, 0)
	b.Forget(bob, controller)
	b.expect(t, bob, controller, 1, 1)
}

// TestJudgeForgetsMeanwhile checks that if Forget is called while a question is
// pending, the answer is used only for the request that asked, and not
// remembered.
func TestJudgeForgetsMeanwhile(t *testing.T) {
	alice, bob := credentialOf(t, sign(goodHeader, goodClaims), ""), credentialOf(t, sign(goodHeader, goodClaims), "bob")
	good := Good
	for name, forget := range map[string]func(*testJudge){
		"refused after all": func(b *testJudge) { b.Forget(bob, controller) },
	} {
		t.Run(name+", the daemon is asked", func(t *testing.T) {
			b := newTestJudge(nil)
			must(t, b.Authenticate(context.Background(), bob, controller, func(context.Context) error { forget(b); return nil }))
			b.expect(t, bob, controller, 1, 0)
		})
		t.Run(name+", a key is asked", func(t *testing.T) {
			b := newTestJudge(&good)
			verify := b.HS256
			b.HS256 = func(ctx context.Context, s Signature) Answer { forget(b); return verify(ctx, s) }
			must(t, b.authenticate(alice, controller))
			b.HS256 = verify
			b.expect(t, alice, controller, 0, 1)
		})
	}
}

// TestJudgeOfNoRequest checks that a credential that does not come from a
// request is judged like any other.
func TestJudgeOfNoRequest(t *testing.T) {
	b, c := newTestJudge(nil), credentialOf(t, sign(goodHeader, goodClaims), "")
	c.proof = nil
	b.expect(t, c, controller, 1, 0)
	b.expect(t, credentialOf(t, c.Token, ""), controller, 0, 0)
	b.Forget(c, controller)
	b.expect(t, c, controller, 1, 0)
}

// TestJudgeCancelled checks that after a client has disconnected, its request
// sends no question and nothing is remembered.
func TestJudgeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var j Judge
	j.Now = clock
	alice := credentialOf(t, sign(goodHeader, goodClaims), "")
	for range 2 {
		err := j.Authenticate(ctx, alice, controller, func(ctx context.Context) error { return ctx.Err() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if len(j.accepted.expiry) > 0 {
		t.Error("an answer is remembered")
	}
}

// TestJudgeTogether is for the race detector: many goroutines use a Judge while
// its keys change.
func TestJudgeTogether(t *testing.T) {
	set := parsedSet(t, jwk(&providerKey().PublicKey, ``))
	j := Judge{RS256: func(_ context.Context, s Signature) Answer { return set.Answer(s) }, Now: clock}
	hs, rs := credentialOf(t, sign(goodHeader, goodClaims), "bob"), credentialOf(t, signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims), "")
	var calls atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 50 {
				for _, c := range []Credential{hs, rs} {
					if err := j.Authenticate(context.Background(), c, controller, func(context.Context) error { calls.Add(1); return nil }); err != nil {
						t.Error(err)
					}
				}
				switch i {
				case 20:
					j.Forget(hs, controller)
				}
			}
		})
	}
	wait.Wait()
	if n := calls.Load(); n < 1 || n > 8*3*8 {
		t.Errorf("asked %d times", n)
	}
}
