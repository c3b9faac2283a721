package auditor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"schedrestd/auditor/claims"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/rate"
	"schedrestd/service"
)

// claimer is one worker and its claims.
type claimer struct {
	*service.Client
	ledger    *ledger
	perWorker bool // the worker's uid is its user
	most      int  // concurrent claims: more than the requests that it answers

	mu     sync.Mutex
	asked  *rate.Bucket
	later  *rate.Bucket      // how many claims over that rate it may send
	open   map[uint64]uint64 // from the worker's number of a claim to the store's, which is 0 until the store has the claim
	exited bool

	made   int  // claims in its life; only the ledger's goroutine uses it
	unfair uint // … and how many of its claims found no room
}

// The limits on the claims of a worker, above those of what it may submit.
const (
	claimBurst = 2000
	claimRate  = 1000 // a second
)

// Every answer that the protocol permits can be kept.
const _ = uint(claims.MaxAnswer - query.MaxKept)

func newClaimer(l *ledger, c *service.Client, perWorker bool) *claimer {
	return &claimer{Client: c, ledger: l, perWorker: perWorker, most: 2*int(c.Requests) + 16,
		asked: rate.New(claimBurst, claimRate, time.Now()), later: rate.New(laterRate, laterRate, time.Now()), open: map[uint64]uint64{}}
}

// handle handles messages about claims. It never waits for the file. done is
// false for any other message.
func (c *claimer) handle(m ipc.Message) (done bool, err error) {
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
	_, twice := c.open[m.ID]
	full := len(c.open) >= c.most
	if !twice && !full {
		c.open[m.ID] = 0
	}
	now := time.Now()
	tooOften := !c.asked.Take(now, 1)
	flood := tooOften && !c.later.Take(now, 1)
	c.mu.Unlock()
	switch {
	case twice:
		return fmt.Errorf("sent Claim %d twice", m.ID)
	case full:
		return errors.New("sent Claim for more requests than it can have")
	case flood:
		return errors.New("sent Claim too often")
	case tooOften:
		c.answer(m.ID, 0, claims.Full, nil)
		return nil
	}
	c.ledger.do(func(ready error) func(error) {
		if ready != nil {
			return func(error) { c.answer(m.ID, 0, claims.Full, nil) }
		}
		key, share := c.own(m)
		number, state, kept, failed := c.ledger.store.Claim(key, share, m.Body, c.made)
		if state == claims.Full && failed == nil {
			c.warnFull()
		}
		if state == claims.Fresh || failed != nil {
			c.ledger.note(failed)
		}
		return func(err error) {
			if err != nil || failed != nil {
				number, state, kept = 0, claims.Full, nil
			}
			if state == claims.Fresh {
				c.made++
			}
			c.answer(m.ID, number, state, kept)
		}
	})
	return nil
}

// own returns the key and the share of a claim. Where each worker has a user of
// its own, what it sends concerns no other user.
func (c *claimer) own(m *query.Claim) (key, share [32]byte) {
	if !c.perWorker {
		return m.Key, m.User
	}
	user := fmt.Appendf(nil, "uid %d ", c.UID)
	return sha256.Sum256(append(user, m.Key[:]...)), sha256.Sum256(user)
}

// warnFull logs that a claim found no room, the first, the second, the fourth
// time and so on.
func (c *claimer) warnFull() {
	if c.unfair++; bits.OnesCount(c.unfair) == 1 {
		slog.Warn("no room for an Idempotency-Key", "client", c.Number, "client_pid", c.PID, "client_uid", c.UID,
			"claims_of_this_client", c.made, "claims", c.ledger.store.Live(), "room", claims.Slots, "refused_so_far", c.unfair)
	}
}

// answer sends the worker the state of a key. The ledger's goroutine calls it,
// or that of the worker.
func (c *claimer) answer(id, number uint64, state claims.State, kept []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := &c.ledger.counts
	switch {
	case state != claims.Fresh:
		delete(c.open, id)
	case c.exited: // the worker never got the answer
		delete(c.open, id)
		c.end(number, claims.NotDone, nil, nil)
		return
	default:
		c.open[id] = number
	}
	switch state {
	case claims.Fresh:
		counts.claimed.add(1)
	case claims.Answered:
		counts.replayed.add(1)
	case claims.Full:
		counts.refused.add(1)
	}
	c.Answer(&query.Claimed{ID: id, State: query.ClaimState(state), Answer: kept})
}

// settle queues the end of a claim.
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
	c.end(number, claims.State(m.State), m.Answer, func() { c.Answer(&query.Settled{ID: m.ID}) })
	return nil
}

// end queues the end of a claim, until it is written. then is called once, when
// it is written or the first attempt has failed; it may be nil.
func (c *claimer) end(number uint64, state claims.State, kept []byte, then func()) {
	c.ledger.do(func(failed error) func(error) {
		if failed == nil {
			failed = c.ledger.store.Settle(number, state, kept)
			c.ledger.note(failed)
		}
		return func(error) { // of a sync: the end is in the file, and may be lost if the machine crashes
			if failed != nil {
				time.AfterFunc(ledgerPause, func() { c.end(number, state, kept, nil) })
			}
			if then != nil {
				then()
			}
		}
	})
}

// ended ends the claims that the worker left open: their requests may have been
// carried out. All its messages were handled.
func (c *claimer) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exited = true
	for id, number := range c.open {
		if number != 0 {
			delete(c.open, id)
			c.end(number, claims.Unknown, nil, nil)
		}
	}
}
