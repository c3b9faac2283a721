package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
)

// together starts n concurrent requests with the credential c, and waits until
// each of them has finished or is blocked. Each request stores its result in
// answers.
func together(t *testing.T, a *Authenticator, n int, c Credential, ask func(context.Context, string) error) (answers []error) {
	t.Helper()
	answers = make([]error, n)
	for i := range n {
		go func() { answers[i] = a.Authenticate(context.Background(), c, controller, ask) }()
	}
	synctest.Wait()
	return answers
}

// TestOneQuestion checks that concurrent requests with the same new token cause
// only one question to the daemon, whatever the answer is. A request with
// another token or user name, or for another daemon, must ask its own question.
func TestOneQuestion(t *testing.T) {
	token := sign(goodHeader, goodClaims)
	alice := credentialOf(t, token, "")
	for name, result := range map[string]error{
		"accepted": nil, "rejected": errs.New(errs.Unauthenticated, Refused), "down": errs.New(errs.Unavailable, "the controller is down"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, answer := &Authenticator{Now: clock}, make(chan struct{})
				var calls atomic.Int64
				ask := func(context.Context, string) error { calls.Add(1); <-answer; return result }
				answers := together(t, a, 100, alice, ask)
				if n := calls.Load(); n != 1 {
					t.Errorf("asked %d times", n)
				}
				for _, other := range []Credential{credentialOf(t, token, "bob"), credentialOf(t, sign(`{"alg":"HS256"}`, goodClaims), "")} {
					go a.Authenticate(context.Background(), other, controller, ask)
				}
				go a.Authenticate(context.Background(), alice, accounting, ask)
				synctest.Wait()
				if n := calls.Load(); n != 3 { // bob is asked about when the token has been verified
					t.Errorf("with others: asked %d times", n)
				}
				close(answer)
				synctest.Wait()
				for i, err := range answers {
					if !errors.Is(err, result) {
						t.Errorf("%d: %v", i, err)
					}
				}
				if len(a.questions.pending) > 0 {
					t.Errorf("%d questions are left", len(a.questions.pending))
				}
			})
		})
	}
}

// TestAnotherAsks checks that when the client of the first request disconnects,
// one of the waiting requests asks the daemon. A waiting request must end when
// its own client disconnects.
func TestAnotherAsks(t *testing.T) {
	alice := credentialOf(t, sign(goodHeader, goodClaims), "")
	synctest.Test(t, func(t *testing.T) {
		a, answer := &Authenticator{Now: clock}, make(chan struct{})
		var calls atomic.Int64
		ask := func(ctx context.Context, _ string) error {
			calls.Add(1)
			select {
			case <-answer:
				return nil
			case <-ctx.Done():
				return errs.Wrap(ctx.Err(), errs.Unavailable, "the controller can't be reached")
			}
		}
		firstCtx, cancelFirst := context.WithCancel(context.Background())
		first := make(chan error, 1)
		go func() { first <- a.Authenticate(firstCtx, alice, controller, ask) }()
		synctest.Wait()
		answers := together(t, a, 10, alice, ask)
		waiting, stop := context.WithCancel(context.Background())
		second := make(chan error, 1)
		go func() { second <- a.Authenticate(waiting, alice, controller, ask) }()
		synctest.Wait()
		stop()
		if err := <-second; !errors.Is(err, context.Canceled) || errs.KindOf(err) != errs.Unavailable || calls.Load() != 1 {
			t.Errorf("the request whose client disconnected: %v, asked %d times", err, calls.Load())
		}
		cancelFirst()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first request: %v", err)
		}
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		close(answer)
		synctest.Wait()
		for i, err := range answers {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
	})
}

// TestJustAnswered checks that a request does not repeat a question that has
// just been answered.
func TestJustAnswered(t *testing.T) {
	a, alice := newTestAuthenticator(nil), credentialOf(t, sign(goodHeader, goodClaims), "")
	a.HS256 = func(context.Context, Signature) Answer {
		a.HS256 = nil
		must(t, a.authenticate(alice, controller)) // another request that finishes first
		return Unknown
	}
	a.expect(t, alice, controller, 1, 0)
}

// TestQuestionPanics checks that waiting requests continue after a panic in
// ask.
func TestQuestionPanics(t *testing.T) {
	alice := credentialOf(t, sign(goodHeader, goodClaims), "")
	synctest.Test(t, func(t *testing.T) {
		a, start, recovered := &Authenticator{Now: clock}, make(chan struct{}), make(chan any, 1)
		go func() {
			defer func() { recovered <- recover() }()
			a.Authenticate(context.Background(), alice, controller, func(context.Context, string) error { <-start; panic("in the client") })
		}()
		synctest.Wait()
		answers := together(t, a, 1, alice, func(context.Context, string) error { return errAsked })
		close(start)
		synctest.Wait()
		if p := <-recovered; p == nil || !errors.Is(answers[0], errAsked) {
			t.Errorf("%v; the other: %v", p, answers[0])
		}
	})
}

var errAsked = errors.New("the daemon was asked")

// TestForgetSeparatesQuestions checks that after a refusal, new requests do not
// wait for the answers to earlier questions.
func TestForgetSeparatesQuestions(t *testing.T) {
	alice := credentialOf(t, sign(goodHeader, goodClaims), "")
	synctest.Test(t, func(t *testing.T) {
		a, answer := &Authenticator{Now: clock}, make(chan struct{})
		before := together(t, a, 2, alice, func(context.Context, string) error { <-answer; return nil })
		a.Forget(alice, controller)
		refusal := errs.New(errs.Unauthenticated, Refused)
		for _, err := range together(t, a, 2, alice, func(context.Context, string) error { return refusal }) {
			if errs.KindOf(err) != errs.Unauthenticated {
				t.Errorf("after: %v", err)
			}
		}
		close(answer)
		synctest.Wait()
		if err := errors.Join(before...); err != nil {
			t.Errorf("before: %v", err)
		}
		if a.accepted.has(acceptance{controller, hashOf(alice.Token), ""}, now) {
			t.Error("the answer to the earlier question is remembered")
		}
	})
}

// TestQuestionsAreBounded checks that the number of concurrent questions to
// each daemon is limited. Further requests wait until a slot is free or their
// clients disconnect.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, answer := &Authenticator{Now: clock}, make(chan struct{})
		var now, peak, total atomic.Int64
		ask := func(context.Context, string) error {
			if n := now.Add(1); n > peak.Load() {
				peak.Store(n)
			}
			total.Add(1)
			<-answer
			now.Add(-1)
			return nil
		}
		credential := func(i int) Credential {
			return credentialOf(t, sign(fmt.Sprintf(`{"alg":"HS256","kid":"%d"}`, i), goodClaims), "")
		}
		tokens := 3 * limit.TokenQuestions.Total
		errors := make(chan error, tokens)
		for i := range tokens {
			go func() { errors <- a.Authenticate(context.Background(), credential(i), controller, ask) }()
		}
		synctest.Wait()
		if n := now.Load(); n != int64(limit.TokenQuestions.Total) {
			t.Errorf("%d questions are asked concurrently", n)
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		if err := a.Authenticate(cancelled, credential(tokens), controller, ask); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("the request whose client disconnected: %v", err)
		}
		if err := a.Authenticate(context.Background(), credential(0), accounting, func(context.Context, string) error { return nil }); err != nil {
			t.Errorf("the other daemon: %v", err)
		}
		close(answer)
		synctest.Wait()
		for range tokens {
			if err := <-errors; err != nil {
				t.Error(err)
			}
		}
		if int(total.Load()) != tokens {
			t.Errorf("%d of %d were asked", total.Load(), tokens)
		}
	})
}
