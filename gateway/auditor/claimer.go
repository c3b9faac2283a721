package auditor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"schedrestd/gateway/auditor/claims"
	"schedrestd/gateway/service"
	"schedrestd/internal/keystate"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// claimer handles the claims of one worker.
type claimer struct {
	*service.Client
	ledger    *ledger
	perWorker bool // the worker serves only the user whose uid it has
	maxOpen   int  // maximum number of open claims; higher than the limit on the worker's concurrent requests

	mu        sync.Mutex // guards the fields up to hasExited
	quota     *rate.Bucket
	excess    *rate.Bucket      // limits claims that exceed quota and are therefore refused
	open      map[uint64]uint64 // maps the worker's number for an open claim to the store's number; 0: the claim is not in the store yet
	hasExited bool

	claimCount int  // number of claims that the worker has made; only the ledger's goroutine uses this field
	refusals   uint // number of claims refused because the file had no room for them; only the ledger's goroutine uses this field
}

func newClaimer(l *ledger, c *service.Client, perWorker bool) *claimer {
	return &claimer{Client: c, ledger: l, perWorker: perWorker, maxOpen: 2*int(c.Requests) + 16,
		quota:  rate.New(limit.Claims, time.Now()),
		excess: rate.New(limit.ClaimRetries, time.Now()), open: map[uint64]uint64{}}
}

// handle handles messages about claims. It never waits for the file. handled is
// false if m is not about claims.
func (c *claimer) handle(m ipc.Message) (handled bool, err error) {
	if c.ledger == nil {
		return false, nil
	}
	switch m := m.(type) {
	case *query.Claim:
		return true, c.claim(m)
	case *query.Settle:
		return true, c.settle(m)
	}
	return false, nil
}

// claim queues a claim.
func (c *claimer) claim(m *query.Claim) error {
	c.mu.Lock()
	_, duplicate := c.open[m.ID]
	full := len(c.open) >= c.maxOpen
	if !duplicate && !full {
		c.open[m.ID] = 0
	}
	now := time.Now()
	tooOften := !c.quota.Take(now, 1)
	flood := tooOften && !c.excess.Take(now, 1)
	c.mu.Unlock()
	switch {
	case duplicate:
		return fmt.Errorf("sent Claim %d twice", m.ID)
	case full:
		return errors.New("sent Claim for more requests than it can have")
	case flood:
		return errors.New("sent Claim too often")
	case tooOften:
		c.answer(m.ID, 0, keystate.Full, nil)
		return nil
	}
	c.ledger.enqueue(func(fileErr error) func(error) {
		if fileErr != nil {
			return func(error) { c.answer(m.ID, 0, keystate.Full, nil) }
		}
		key, share := c.keyAndShare(m)
		number, state, answer, claimErr := c.ledger.store.Claim(key, share, m.Body, c.claimCount)
		if state == keystate.Full && claimErr == nil {
			c.warnFull()
		}
		if state == keystate.Fresh || claimErr != nil {
			c.ledger.noteWrite(claimErr)
		}
		return func(err error) {
			if err != nil || claimErr != nil {
				number, state, answer = 0, keystate.Full, nil
			}
			if state == keystate.Fresh {
				c.claimCount++
			}
			c.answer(m.ID, number, state, answer)
		}
	})
	return nil
}

// keyAndShare returns the key under which a claim is stored, and the hash of
// the user whose limit the claim counts against. If each worker serves a single
// user, the key also depends on the worker's uid, and the hash depends only on
// this uid. So a worker can't use the keys or the limit of another user.
func (c *claimer) keyAndShare(m *query.Claim) (key, share [32]byte) {
	if !c.perWorker {
		return m.Key, m.User
	}
	user := fmt.Appendf(nil, "uid %d ", c.UID)
	return sha256.Sum256(append(user, m.Key[:]...)), sha256.Sum256(user)
}

// warnFull logs that a claim was refused because the file has no room for it.
// To keep the log short, warnFull logs only the worker's first, second, fourth
// and eighth refusal, and so on.
func (c *claimer) warnFull() {
	if c.refusals++; bits.OnesCount(c.refusals) == 1 {
		slog.Warn("no room for an Idempotency-Key", "client", c.Number, "client_pid", c.PID, "client_uid", c.UID,
			"claims_of_client", c.claimCount, "claims", c.ledger.store.Live(), "limit", claims.Slots, "refused_so_far", c.refusals)
	}
}

// answer sends the worker the state of an Idempotency-Key. It runs in the
// ledger's goroutine, or in the goroutine that handles the worker's messages.
func (c *claimer) answer(id, number uint64, state keystate.State, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := &c.ledger.counts
	switch {
	case state != keystate.Fresh:
		delete(c.open, id)
	case c.hasExited: // the worker never got the answer, so it has not sent the request
		delete(c.open, id)
		c.recordEnd(number, keystate.NotDone, nil, nil)
		return
	default:
		c.open[id] = number
	}
	switch state {
	case keystate.Fresh:
		counts.claimed.add(1)
	case keystate.Answered:
		counts.replayed.add(1)
	case keystate.Full:
		counts.refused.add(1)
	}
	c.Answer(&query.Claimed{ID: id, State: state, Answer: answer})
}

// settle queues the final state of a claimed Idempotency-Key.
func (c *claimer) settle(m *query.Settle) error {
	c.mu.Lock()
	number := c.open[m.Claim]
	if number != 0 {
		delete(c.open, m.Claim)
	}
	c.mu.Unlock()
	if number == 0 {
		return fmt.Errorf("sent Settle for claim %d, which it does not have", m.Claim)
	}
	c.recordEnd(number, m.State, m.Answer, func() { c.Answer(&query.Settled{ID: m.ID}) })
	return nil
}

// recordEnd queues a record of the final state of a claim, and tries again
// until the record is written. If done is not nil, recordEnd calls it after the
// first attempt, whether or not the attempt succeeds.
func (c *claimer) recordEnd(number uint64, state keystate.State, answer []byte, done func()) {
	c.ledger.countEnds(1)
	c.tryRecordEnd(number, state, answer, done)
}

func (c *claimer) tryRecordEnd(number uint64, state keystate.State, answer []byte, done func()) {
	c.ledger.enqueue(func(endErr error) func(error) {
		if endErr == nil {
			endErr = c.ledger.store.Settle(number, state, answer)
			c.ledger.noteWrite(endErr)
		}
		return func(error) { // a failed sync is ignored: only a crash of the machine could still lose the record
			if endErr != nil {
				time.AfterFunc(ledgerPause, func() { c.tryRecordEnd(number, state, answer, nil) })
			} else {
				c.ledger.countEnds(-1)
			}
			if done != nil {
				done()
			}
		}
	})
}

// handleExit handles the claims that the worker left open when it exited. It
// marks them as unknown, because their requests may have been carried out. It
// is called after all messages of the worker have been handled.
func (c *claimer) handleExit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasExited = true
	for id, number := range c.open {
		if number != 0 {
			delete(c.open, id)
			c.recordEnd(number, keystate.Unknown, nil, nil)
		}
	}
}
