package auditor

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/bits"

	"schedrestd/gateway/auditor/claims"
	"schedrestd/internal/keystate"
	"schedrestd/ipc/query"
)

// claim queues a claim of the Idempotency-Key of a change. If the key is free,
// the ledger's goroutine then announces the change. Otherwise it refuses the
// change with the key's state.
func (a *client) claim(u *openChange, k *query.Key) {
	a.ledger.enqueue(func(fileErr error) func(error) {
		if fileErr != nil {
			return func(error) { a.refuse(u, keystate.Full, nil) }
		}
		number, state, answer, claimErr := a.claimOrLookup(k)
		if state == keystate.Full && claimErr == nil {
			a.warnFull()
		}
		if state == keystate.Fresh || claimErr != nil {
			a.ledger.noteWrite(claimErr)
		}
		return func(err error) {
			switch {
			case err != nil || claimErr != nil:
				a.refuse(u, keystate.Full, nil)
			case state == keystate.Fresh:
				a.claimCount++
				a.claimed(u, number)
			default:
				a.refuse(u, state, answer)
			}
		}
	})
}

func (a *client) claimOrLookup(k *query.Key) (number uint64, state keystate.State, answer []byte, err error) {
	key, share := a.keyAndShare(k)
	if k.Lookup {
		if state, answer, err = a.ledger.store.Lookup(key, k.Body); k.Search && state == keystate.Unknown {
			state = keystate.NotDone // the worker may try again later
		}
		return 0, state, answer, err
	}
	return a.ledger.store.Claim(key, share, k.Body, a.claimCount, k.Search)
}

// keyAndShare returns the key under which a claim is stored, and the hash of
// the user whose limit the claim counts against. If each worker serves a single
// user, the key also depends on the worker's uid, and the hash depends only on
// this uid. So a worker can't use the keys or the limit of another user.
func (a *client) keyAndShare(k *query.Key) (key, share [32]byte) {
	if !a.perWorker {
		return k.Value, k.User
	}
	user := fmt.Appendf(nil, "uid %d ", a.UID)
	return sha256.Sum256(append(user, k.Value[:]...)), sha256.Sum256(user)
}

// warnFull logs that a claim was refused because the file has no room for it.
// To keep the log short, warnFull logs only the worker's first, second, fourth
// and eighth refusal, and so on.
func (a *client) warnFull() {
	if a.refusals++; bits.OnesCount(a.refusals) == 1 {
		slog.Warn("no room for an Idempotency-Key", "client", a.Number, "client_pid", a.PID, "client_uid", a.UID,
			"claims_of_client", a.claimCount, "claims", a.ledger.store.Live(), "limit", claims.Slots, "refused_so_far", a.refusals)
	}
}

// claimed announces a change whose Idempotency-Key is now claimed.
func (a *client) claimed(u *openChange, number uint64) {
	a.ledger.counts.claimed.add(1)
	a.mu.Lock()
	u.claim = number
	exited := a.hasExited
	if exited {
		delete(a.open, u.msg.ID)
	}
	a.mu.Unlock()
	if exited { // the worker never got an answer, so it has not made the change
		a.ledger.recordEnd(number, keystate.NotDone, nil, nil)
		return
	}
	a.announce(u)
}

// refuse informs the worker that the state of the Idempotency-Key forbids the
// change.
func (a *client) refuse(u *openChange, state keystate.State, answer []byte) {
	switch state {
	case keystate.Answered:
		a.ledger.counts.replayed.add(1)
	case keystate.Full:
		a.ledger.counts.refused.add(1)
	}
	a.mu.Lock()
	delete(a.open, u.msg.ID)
	a.mu.Unlock()
	a.Answer(&query.IntentDecision{ID: u.msg.ID, Decision: query.Denied, State: state, Answer: answer})
}
