package broker

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestIntentHasForwardedAddress checks that the auditor gets the client address
// that a trusted proxy reported.
func TestIntentHasForwardedAddress(t *testing.T) {
	if m := intent(1, 2, rest.Change{Request: "r", Forwarded: "203.0.113.9"}, false); m.Forwarded != "203.0.113.9" || m.UID != ipc.NoID {
		t.Errorf("%+v", m)
	}
}

// newAuditPair returns an auditor with an audit log, and the auditor's end of
// its channel, so that the test can act as the auditor.
func newAuditPair(t *testing.T) (changes, *ipc.Channel) {
	t.Helper()
	channel, fd, err := ipc.Pair(ipc.Auditor, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { channel.Close() })
	c := newAuditor()
	must(t, c.service.connect(fd))
	return changes{c, true, false}, channel
}

// TestChangesWait checks that a worker that gets the answer TryLater asks again
// with a new number. The worker must report one outcome, with the number of its
// last question. Without permission, it must make no change.
func TestChangesWait(t *testing.T) {
	decisions := []query.Decision{query.TryLater, query.TryLater, query.Granted, query.Denied}
	c, auditor := newAuditPair(t)
	var mu sync.Mutex // guards intents
	var intents []uint64
	outcomes := make(chan uint64, 2)
	go func() {
		for {
			m, err := auditor.Receive()
			if err != nil {
				return
			}
			switch m := m.Message.(type) {
			case *query.Intent:
				mu.Lock()
				intents = append(intents, m.ID)
				decision := decisions[len(intents)-1]
				mu.Unlock()
				_ = auditor.Send(&query.IntentDecision{ID: m.ID, Decision: decision})
			case *query.Outcome:
				outcomes <- m.ID
			}
		}
	}()
	ctx := WithConnection(t.Context(), 7)
	report, err := c.Intend(ctx, rest.Change{User: "alice"})
	must(t, err)
	report(rest.Result{Status: 200, Code: "ok"})
	id := <-outcomes
	mu.Lock()
	if len(intents) != 3 || id != intents[2] || intents[0] == intents[2] {
		t.Errorf("intents %v, outcome of %d", intents, id)
	}
	mu.Unlock()
	if _, err := c.Intend(ctx, rest.Change{}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without permission: %v", err)
	}
	must(t, auditor.Send(&query.IntentDecision{ID: 99, Decision: query.Granted})) // no request waits for this permission, so the worker must decline it
	if id := <-outcomes; id != 99 {
		t.Errorf("outcome of %d", id)
	}
}

// TestAuditShare checks that a user who makes changes too fast is refused before
// the auditor is asked, and that other users are not. A name that a request
// acts as must not use up the share of the user with this name.
func TestAuditShare(t *testing.T) {
	c, auditor := newAuditPair(t)
	go func() {
		for {
			m, err := auditor.Receive()
			if err != nil {
				return
			}
			if m, ok := m.Message.(*query.Intent); ok {
				_ = auditor.Send(&query.IntentDecision{ID: m.ID, Decision: query.Granted})
			}
		}
	}()
	c.bytes = rate.NewBuckets[string](limit.AuditBytes.Of(20_000, 1))
	submit := func(change rest.Change) error {
		report, err := c.Intend(t.Context(), change)
		if err == nil {
			report(rest.Result{})
		}
		return err
	}
	mallory := rest.Change{User: "mallory", ActAs: "alice", Object: strings.Repeat("\x01", 255)}
	n := 0
	for n < 100 && submit(mallory) == nil {
		n++
	}
	if n != 5 { // each takes 400 bytes, and 6 for each of 255 characters, in both of its lines
		t.Errorf("%d changes were made", n)
	}
	err := submit(mallory)
	if retry, ok := errors.AsType[*rest.RetryAfterError](err); !ok || retry.After < time.Second || errs.KindOf(err) != errs.TooMany {
		t.Errorf("the user is refused with %v", err)
	}
	must(t, submit(rest.Change{User: "alice"}))
	must(t, submit(rest.Change{Local: true, UID: 1000}))
}

// TestLatePermission checks permissions that arrive just when the worker stops
// waiting for them. Each must be used or declined. Otherwise, when this worker
// exits, the auditor would record that the change may have been made.
func TestLatePermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const times = 64
		used, declined := 0, 0
		l := &link{closed: make(chan struct{}), onLate: func(*link, ipc.Message) { declined++ }}
		for range times {
			var id uint64
			send := func(ipc.Message, ...int) error {
				time.Sleep(intentTimeout)
				if answer := (&query.IntentDecision{ID: id, Decision: query.Granted}); !l.pending.answer(id, answer) {
					l.handleLate(answer)
				}
				return nil
			}
			limit, cancel := within(intentTimeout)
			_, err := l.ask(limit, send, func(n uint64) ipc.Message {
				id = n
				return intent(n, 1, rest.Change{}, false)
			})
			cancel()
			if err == nil {
				used++
			}
		}
		if used+declined != times {
			t.Errorf("permission for %d changes was used %d times and declined %d times", times, used, declined)
		}
	})
}

// TestKeyed checks the exchange with the auditor for a change with an
// Idempotency-Key, and what it adds to the counts and to the user's share of
// the audit log. A user whose share is used up gets earlier answers, but can
// make no change.
func TestKeyed(t *testing.T) {
	key := &rest.KeyClaim{Key: [32]byte{1}, User: [32]byte{2}, Body: [32]byte{3}, Search: true}
	answer := []byte("17")
	for _, tt := range []struct {
		name     string
		decision query.IntentDecision
		limited  bool
		state    keystate.State // of the KeyError; None for no KeyError
		kind     errs.Kind      // of any other error
		charged  bool
		counts   [3]uint64 // changes, limited, unrecorded
	}{
		{name: "granted", decision: query.IntentDecision{Decision: query.Granted, State: keystate.Fresh}, charged: true, counts: [3]uint64{1, 0, 0}},
		{name: "answered before", decision: query.IntentDecision{State: keystate.Answered, Answer: answer}, state: keystate.Answered},
		{name: "in progress", decision: query.IntentDecision{State: keystate.Running}, state: keystate.Running},
		{name: "no log", decision: query.IntentDecision{Decision: query.Denied}, kind: errs.Unavailable, charged: true, counts: [3]uint64{1, 0, 1}},
		{name: "limited", limited: true, decision: query.IntentDecision{State: keystate.NotDone}, kind: errs.TooMany, counts: [3]uint64{1, 1, 0}},
		{name: "limited, answered before", limited: true, decision: query.IntentDecision{State: keystate.Answered, Answer: answer}, state: keystate.Answered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, auditor := newAuditPair(t)
			change := rest.Change{User: "alice", Key: key}
			c.bytes = rate.NewBuckets[string](limit.AuditBytes.Of(1.5*auditSize(change), 0.01))
			if tt.limited {
				c.bytes.Take(time.Now(), "alice", auditSize(change))
			}
			received := make(chan ipc.Message, 2)
			go func() {
				m, _ := auditor.Receive()
				received <- m.Message
				tt.decision.ID = m.Message.(*query.Intent).ID
				_ = auditor.Send(&tt.decision)
				if m, err := auditor.Receive(); err == nil {
					received <- m.Message
					_ = auditor.Send(&query.Settled{ID: m.Message.(*query.Outcome).ID})
				}
			}()
			report, err := c.Intend(t.Context(), change)
			if m := (<-received).(*query.Intent); len(m.Key) != 1 || m.Key[0] != (query.Key{Value: key.Key, User: key.User, Body: key.Body, Lookup: tt.limited, Search: key.Search}) {
				t.Errorf("sent %+v", m)
			}
			keyErr, isKeyErr := errors.AsType[*rest.KeyError](err)
			switch {
			case isKeyErr != (tt.state != keystate.None) || isKeyErr && (keyErr.State != tt.state || (string(keyErr.Answer) == "17") != (tt.state == keystate.Answered)):
				t.Errorf("%+v, want state %d", err, tt.state)
			case !isKeyErr && tt.kind != 0 && errs.KindOf(err) != tt.kind:
				t.Errorf("%v", err)
			case err == nil:
				report(rest.Result{Status: 200, Code: "ok", Objects: "17", Answer: answer}) // returns when the auditor has answered
				if m := (<-received).(*query.Outcome); m.State != keystate.Answered || string(m.Answer) != "17" || m.Result != "17" {
					t.Errorf("reported %+v", m)
				}
			}
			if wait := c.bytes.Take(time.Now(), "alice", auditSize(change)); (wait > 0) != (tt.charged || tt.limited) {
				t.Errorf("the next change waits for %s", wait)
			}
			if counts := [3]uint64{c.counts.Changes.Total(), c.counts.Limited.Total(), c.counts.Unrecorded.Total()}; counts != tt.counts {
				t.Errorf("counts %v, want %v", counts, tt.counts)
			}
		})
	}
}

// TestLateKey checks that the worker gives a key back if the permission comes
// too late, and refuses the change if the auditor has exited.
func TestLateKey(t *testing.T) {
	c, auditor := newAuditPair(t)
	must(t, auditor.Send(&query.IntentDecision{ID: 99, Decision: query.Granted, State: keystate.Fresh}))
	m, err := auditor.Receive()
	must(t, err)
	if o := m.Message.(*query.Outcome); o.ID != 99 || o.State != keystate.NotDone {
		t.Errorf("%+v", o)
	}
	must(t, auditor.Close())
	_, err = c.Intend(t.Context(), rest.Change{Key: new(rest.KeyClaim)})
	if e, ok := errors.AsType[*rest.KeyError](err); !ok || e.State != keystate.Full || !errors.Is(err, errGone) {
		t.Errorf("%v", err)
	}
}

// TestOnlyKeys checks that, without an audit log, only changes with an
// Idempotency-Key are announced to the auditor.
func TestOnlyKeys(t *testing.T) {
	c, auditor := newAuditPair(t)
	c.logged = false
	report, err := c.Intend(t.Context(), rest.Change{User: "alice"})
	must(t, err)
	report(rest.Result{})
	go func() {
		if m, err := auditor.Receive(); err == nil {
			intent := m.Message.(*query.Intent)
			_ = auditor.Send(&query.IntentDecision{ID: intent.ID, State: keystate.Running})
		}
	}()
	_, err = c.Intend(t.Context(), rest.Change{Key: new(rest.KeyClaim)})
	if e, ok := errors.AsType[*rest.KeyError](err); !ok || e.State != keystate.Running || c.counts.Changes.Total() != 0 || c.bytes.Len() != 0 {
		t.Errorf("%v, %d changes", err, c.counts.Changes.Total())
	}
}
