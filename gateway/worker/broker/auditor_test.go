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
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestIntentHasForwardedAddress checks that the auditor gets the client address
// that a trusted proxy reported.
func TestIntentHasForwardedAddress(t *testing.T) {
	if m := intent(1, 2, rest.Change{Request: "r", Forwarded: "203.0.113.9"}); m.Forwarded != "203.0.113.9" || m.UID != ipc.NoID {
		t.Errorf("%+v", m)
	}
}

// newAuditPair returns an auditor and the auditor's end of its channel, so
// that the test can act as the auditor.
func newAuditPair(t *testing.T) (*auditor, *ipc.Channel) {
	t.Helper()
	channel, fd, err := ipc.Pair(ipc.Auditor, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { channel.Close() })
	c := newAuditor()
	must(t, c.service.connect(fd))
	return c, channel
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
				return intent(n, 1, rest.Change{})
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
