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

// court is a Judge with a clock and daemons that count their calls.
type court struct {
	Judge
	now    time.Time
	asked  map[string]int // by daemon
	answer error          // theirs
	looked int            // how often a key that is here was tried
}

// newCourt returns a court whose keys give that answer for both algorithms;
// without keys when says is nil.
func newCourt(says *Answer) *court {
	b := &court{now: now, asked: map[string]int{}}
	b.Now = func() time.Time { return b.now }
	if says != nil {
		b.HS256 = func(context.Context, Signature) Answer { b.looked++; return *says }
		b.RS256 = b.HS256
	}
	return b
}

func (b *court) genuine(c Credential, daemon string) error {
	return b.Genuine(context.Background(), c, daemon, func(context.Context) error {
		b.asked[daemon]++
		return b.answer
	})
}

// wants has the judge accept c, and checks how often the daemon and the key
// were asked since the last call.
func (b *court) wants(t *testing.T, c Credential, daemon string, asked, looked int) {
	t.Helper()
	clear(b.asked)
	b.looked = 0
	if err := b.genuine(c, daemon); err != nil || b.asked[daemon] != asked || b.looked != looked || len(b.asked) != min(asked, 1) {
		t.Errorf("%v at %s: got %v; asked %v, looked %d times; want %d and %d", c, daemon, err, b.asked, b.looked, asked, looked)
	}
}

// credentialOf returns FromRequest's credential for a token and a name.
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

// Without a key the daemon decides, and its acceptance counts for that daemon,
// token and name.
func TestJudgeAsksTheDaemon(t *testing.T) {
	for algorithm, token := range map[string]string{"HS256": sign(goodHeader, goodClaims), "RS256": signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims)} {
		t.Run(algorithm, func(t *testing.T) {
			b, alice := newCourt(nil), credentialOf(t, token, "")
			b.wants(t, alice, controller, 1, 0)
			b.wants(t, alice, controller, 0, 0)
			b.wants(t, alice, accounting, 1, 0) // each daemon is asked
			b.wants(t, credentialOf(t, token, "bob"), controller, 1, 0)
			b.wants(t, credentialOf(t, token, "bob"), controller, 0, 0)
			b.wants(t, credentialOf(t, token, "carol"), controller, 1, 0)
			b.wants(t, credentialOf(t, token, "bob"), accounting, 1, 0)
			b.wants(t, credentialOf(t, sign(`{"alg":"HS256"}`, goodClaims), ""), controller, 1, 0) // says the same, and is another
			b.now = b.now.Add(remembered - time.Second)
			b.wants(t, alice, controller, 0, 0)
			b.now = b.now.Add(time.Second)
			b.wants(t, alice, controller, 1, 0)
		})
	}
}

// An answer is forgotten when the token expires, although tokens are accepted a
// few seconds longer.
func TestJudgeForgetsAtTheEndOfTheToken(t *testing.T) {
	good := Good
	for name, b := range map[string]*court{"asked": newCourt(nil), "verified here": newCourt(&good)} {
		t.Run(name, func(t *testing.T) {
			once := func(n int) (asked, looked int) {
				if b.HS256 == nil {
					return n, 0
				}
				return 0, n
			}
			alice := credentialOf(t, sign(goodHeader, `{"iat":1699999999,"exp":1700000010,"sun":"alice"}`), "")
			for _, step := range []struct{ second, count int }{{0, 1}, {9, 0}, {10, 1}, {11, 1}} {
				b.now = now.Add(time.Duration(step.second) * time.Second)
				asked, looked := once(step.count)
				b.wants(t, alice, controller, asked, looked)
			}
		})
	}
}

// A key decides about a token's own user, and no daemon is asked; for another
// name its daemon is.
func TestJudgeWithKeys(t *testing.T) {
	good := Good
	token := sign(goodHeader, goodClaims)
	alice, same, bob := credentialOf(t, token, ""), credentialOf(t, token, "alice"), credentialOf(t, token, "bob")
	b := newCourt(&good)
	b.wants(t, alice, controller, 0, 1)
	b.wants(t, alice, controller, 0, 0)
	b.wants(t, alice, accounting, 0, 0) // the key's word counts everywhere
	b.wants(t, same, controller, 0, 0)
	b.wants(t, bob, controller, 1, 0)
	b.wants(t, bob, controller, 0, 0)
	b.wants(t, bob, accounting, 1, 0)
	b.now = b.now.Add(remembered)
	b.wants(t, bob, controller, 1, 1)
	b.wants(t, alice, controller, 0, 0)
}

// The question has the signed text, the signature and the kid, and goes only to
// the keys of its algorithm.
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
		err := j.Genuine(context.Background(), credentialOf(t, test.token, ""), controller, nil)
		if want := fmt.Sprintf("%s %s %s", test.alg, test.kid, test.token); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("got %v, asked %q, want %q", err, got, want)
		}
	}
	// Keys for one algorithm say nothing of the other.
	b := newCourt(nil)
	b.RS256 = func(context.Context, Signature) Answer { b.looked++; return Good }
	b.wants(t, credentialOf(t, sign(goodHeader, goodClaims), ""), controller, 1, 0)
}

func TestJudgeRefuses(t *testing.T) {
	token := sign(goodHeader, goodClaims)
	down := errs.New(errs.Unavailable, "the controller is down")
	refusedThere := errs.New(errs.Unauthenticated, Refused)
	bad, unknown, good := Bad, Unknown, Good
	for _, test := range []struct {
		name   string
		says   *Answer
		actAs  string
		answer error
		want   errs.Kind
		asked  int
	}{
		{"forged, by a key that is here", &bad, "", nil, errs.Unauthenticated, 0},
		{"forged, with a name to act as", &bad, "bob", nil, errs.Unauthenticated, 0},
		{"refused by the daemon", nil, "", refusedThere, errs.Unauthenticated, 1},
		{"refused by the daemon, where no key can tell", &unknown, "", refusedThere, errs.Unauthenticated, 1},
		{"not one who acts for others", &good, "bob", refusedThere, errs.Unauthenticated, 1},
		{"the daemon is down", nil, "", down, errs.Unavailable, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newCourt(test.says)
			b.answer = test.answer
			c := credentialOf(t, token, test.actAs)
			for i := range 2 { // nothing of it is remembered but a daemon's no, for a moment
				err := b.genuine(c, controller)
				if errs.KindOf(err) != test.want || b.asked[controller] != test.asked*(i+1) || test.answer != nil && !errors.Is(err, test.answer) {
					t.Errorf("got %v, asked %d times", err, b.asked[controller])
				}
				if test.asked == 0 {
					refused(t, err, errSignature.Error(), token)
				}
				if err := b.genuine(c, controller); test.want == errs.Unauthenticated && (errs.KindOf(err) != test.want || b.asked[controller] != test.asked*(i+1)) {
					t.Errorf("repeated at once: got %v, asked %d times", err, b.asked[controller])
				}
				b.asked[controller] = test.asked * (i + 1)
				b.now = b.now.Add(refusedFor)
			}
			b.answer = nil
			if err := b.genuine(c, controller); test.says != &bad && err != nil {
				t.Errorf("good again: %v", err)
			}
		})
	}
	t.Run("no token at all", func(t *testing.T) {
		b := newCourt(&good)
		if err := b.genuine(Credential{Token: "x.y"}, controller); errs.KindOf(err) != errs.Unauthenticated || len(b.asked) > 0 || b.looked > 0 {
			t.Errorf("got %v, asked %v", err, b.asked)
		}
	})
}

// When the keys can't decide, the daemon is asked, and again when its answer is
// forgotten.
func TestJudgeUnknown(t *testing.T) {
	says := Unknown
	b, alice := newCourt(&says), credentialOf(t, sign(goodHeader, goodClaims), "")
	b.wants(t, alice, controller, 1, 1)
	b.wants(t, alice, controller, 0, 0)
	b.wants(t, alice, accounting, 1, 1)
	says = Good
	b.now = b.now.Add(remembered)
	b.wants(t, alice, controller, 0, 1)
}

// A local credential needs no look-up.
func TestJudgeLocal(t *testing.T) {
	bad := Bad
	b := newCourt(&bad)
	b.answer = errors.New("must not be asked")
	b.wants(t, Credential{Local: true, UID: 1000, GID: 1000}, controller, 0, 0)
}

// Forget drops one credential of one daemon, and the result of the keys for
// that token.
func TestJudgeForget(t *testing.T) {
	token := sign(goodHeader, goodClaims)
	alice, bob := credentialOf(t, token, ""), credentialOf(t, token, "bob")
	b := newCourt(nil)
	for _, daemon := range []string{controller, accounting} {
		b.wants(t, alice, daemon, 1, 0)
		b.wants(t, bob, daemon, 1, 0)
	}
	b.Forget(alice, controller)
	b.wants(t, bob, controller, 0, 0)
	b.wants(t, alice, accounting, 0, 0)
	b.wants(t, alice, controller, 1, 0)

	good := Good
	b = newCourt(&good)
	b.wants(t, alice, controller, 0, 1)
	b.Forget(alice, controller)
	b.wants(t, alice, controller, 0, 1)
	b.wants(t, bob, controller, 1, 0)
	b.Forget(bob, controller)
	b.wants(t, bob, controller, 1, 1)
}

// An answer to a question that was asked before a refusal is used only for that
// request.
func TestJudgeForgetsMeanwhile(t *testing.T) {
	alice, bob := credentialOf(t, sign(goodHeader, goodClaims), ""), credentialOf(t, sign(goodHeader, goodClaims), "bob")
	good := Good
	for name, forget := range map[string]func(*court){
		"refused after all": func(b *court) { b.Forget(bob, controller) },
	} {
		t.Run(name+", the daemon is asked", func(t *testing.T) {
			b := newCourt(nil)
			must(t, b.Genuine(context.Background(), bob, controller, func(context.Context) error { forget(b); return nil }))
			b.wants(t, bob, controller, 1, 0)
		})
		t.Run(name+", a key is asked", func(t *testing.T) {
			b := newCourt(&good)
			says := b.HS256
			b.HS256 = func(ctx context.Context, s Signature) Answer { forget(b); return says(ctx, s) }
			must(t, b.genuine(alice, controller))
			b.HS256 = says
			b.wants(t, alice, controller, 0, 1)
		})
	}
}

// A credential that does not come from a request is judged like any other.
func TestJudgeOfNoRequest(t *testing.T) {
	b, c := newCourt(nil), credentialOf(t, sign(goodHeader, goodClaims), "")
	c.proof = nil
	b.wants(t, c, controller, 1, 0)
	b.wants(t, credentialOf(t, c.Token, ""), controller, 0, 0)
	b.Forget(c, controller)
	b.wants(t, c, controller, 1, 0)
}

// When the client disconnects, no further question is asked and nothing is
// remembered.
func TestJudgeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var j Judge
	j.Now = clock
	alice := credentialOf(t, sign(goodHeader, goodClaims), "")
	for range 2 {
		err := j.Genuine(ctx, alice, controller, func(ctx context.Context) error { return ctx.Err() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if len(j.accepted.until) > 0 {
		t.Error("something is remembered")
	}
}

// For the race detector: many goroutines, with new keys meanwhile.
func TestJudgeTogether(t *testing.T) {
	set := parsedSet(t, jwk(&providerKey().PublicKey, ``))
	j := Judge{RS256: func(_ context.Context, s Signature) Answer { return set.Answer(s) }, Now: clock}
	hs, rs := credentialOf(t, sign(goodHeader, goodClaims), "bob"), credentialOf(t, signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims), "")
	var asked atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 50 {
				for _, c := range []Credential{hs, rs} {
					if err := j.Genuine(context.Background(), c, controller, func(context.Context) error { asked.Add(1); return nil }); err != nil {
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
	if n := asked.Load(); n < 1 || n > 8*3*8 {
		t.Errorf("asked %d times", n)
	}
}
