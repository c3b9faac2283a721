package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// Budget limits the memory for answers whose records have not been passed to
// the caller yet. A daemon sends an answer faster than a slow client reads the
// records. Without a limit, a few dozen slow clients would make one process use
// gigabytes. A Budget is safe for concurrent use.
//
// An answer uses memory of the budget from the time when its length is known.
// It uses less as its records are decoded. An answer that fits into a single
// piece (wire.PieceSize) uses none. Four rules prevent a few credentials from
// blocking all others:
//
// First, an eighth of the budget is reserved for short answers (see the method
// short).
//
// Second, a credential gets at most half of the budget, unless it has only one
// answer. The limit is per credential, not per user, because this package does
// not know the user that a token belongs to.
//
// Third, an answer for which there is memory may overtake answers that wait for
// more memory. Long answers may overtake a waiting answer at most maxOvertaken
// times. There is no such limit if the waiting answer waits only because its
// own credential holds too many bytes.
//
// Fourth, an answer that is only expected reserves the size of the last answer
// to a request of the same type. The daemon may never send the expected answer,
// so it delays other expected answers for at most maxExpectedWait.
type Budget struct {
	size int

	mu       sync.Mutex
	arrived  ledger    // memory of answers that have arrived
	reserved ledger    // memory of all answers, including expected ones
	queue    []*waiter // waiting requests, oldest first
}

// A ledger counts the memory in use, in total and for each credential.
type ledger struct {
	total   int
	byOwner map[owner]int
}

func (l *ledger) add(owner owner, n int) {
	l.total += n
	if l.byOwner[owner] += n; l.byOwner[owner] == 0 {
		delete(l.byOwner, owner)
	}
}

// A waiter is a request that waits in the queue.
type waiter struct {
	allowance *allowance
	n         int
	arrived   bool // the answer has arrived, so expected answers don't delay it
	overtaken int  // number of times that long answers overtook it
	ready     chan struct{}
}

const (
	defaultAnswers  = 256 << 20 // size of a Client's own Budget
	maxShort        = 1 << 20   // maximum length of a short answer
	maxOvertaken    = 16
	maxExpectedWait = time.Second
)

// NewBudget returns a Budget of size bytes.
func NewBudget(size int) *Budget {
	return &Budget{size: size, arrived: ledger{byOwner: map[owner]int{}}, reserved: ledger{byOwner: map[owner]int{}}}
}

// shortReserve returns the number of bytes that long answers may not use.
func (b *Budget) shortReserve() int { return b.size / 8 }

// longest returns the maximum size of an answer that fits into the budget.
func (b *Budget) longest() int { return b.size - b.shortReserve() }

// short reports whether an answer of n bytes may use the reserve.
func (b *Budget) short(n int) bool { return n <= min(maxShort, b.shortReserve()/4) }

// fits reports whether r can hold n bytes in total, according to the ledger l.
func (b *Budget) fits(l *ledger, r *allowance, n int) bool {
	held := r.held
	if l == &b.arrived && !r.arrived {
		held = 0
	}
	limit := b.longest()
	if b.short(n) {
		limit = b.size
	}
	return l.total-held+n <= limit && b.fair(l, r, n, held)
}

// fair reports whether r can hold n bytes in total without exceeding the limit
// on its credential. The argument held is the number of bytes that r already
// holds according to the ledger l.
func (b *Budget) fair(l *ledger, r *allowance, n, held int) bool {
	otherBytes := l.byOwner[r.owner] - held
	return otherBytes == 0 || otherBytes+n <= b.size/2
}

// ledger returns the ledger that limits an answer: the ledger of arrived
// answers if the answer has arrived, and otherwise the ledger of all answers.
func (b *Budget) ledger(arrived bool) *ledger {
	if arrived {
		return &b.arrived
	}
	return &b.reserved
}

// admit reserves the memory that t needs if there is enough, and if t may
// overtake the requests that wait ahead of it. The caller holds the lock.
func (b *Budget) admit(t *waiter, ahead []*waiter) bool {
	if !b.fits(b.ledger(t.arrived), t.allowance, t.n) {
		return false
	}
	if !b.short(t.n) {
		for _, a := range ahead {
			// A request that waits because its own credential holds too much
			// memory may be overtaken any number of times.
			if a.overtaken >= maxOvertaken && b.fair(b.ledger(a.arrived), a.allowance, a.n, 0) {
				return false
			}
		}
		for _, a := range ahead {
			a.overtaken++
		}
	}
	b.resize(t.allowance, t.n, t.arrived)
	return true
}

// resize changes the memory of r to n bytes. The caller holds the lock.
func (b *Budget) resize(r *allowance, n int, arrived bool) {
	b.reserved.add(r.owner, n-r.held)
	if r.arrived {
		b.arrived.add(r.owner, -r.held)
	}
	if arrived {
		b.arrived.add(r.owner, n)
	}
	r.held, r.arrived = n, arrived
}

// tryAcquire reserves n bytes in total for r, whose answer has arrived. It does
// not wait, and reports whether it succeeded.
func (b *Budget) tryAcquire(r *allowance, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n <= r.held && (r.arrived || b.fits(&b.arrived, r, n)) { // r has enough memory already
		b.resize(r, n, true)
		b.admitWaiting()
		return true
	}
	return b.admit(&waiter{allowance: r, n: n, arrived: true}, b.queue)
}

// acquire waits until it can reserve n bytes for r, whose answer has arrived or
// is expected. It returns errs.Unavailable if ctx ends first.
//
// Answers that are only expected may delay another expected answer for a short
// time. At intervals of maxExpectedWait, acquire checks whether there would be
// enough memory without the answers that are only expected. If so, it returns
// nil, but reserves no memory.
func (b *Budget) acquire(ctx context.Context, r *allowance, n int, arrived bool) error {
	t := &waiter{allowance: r, n: n, arrived: arrived, ready: make(chan struct{})}
	b.mu.Lock()
	admitted := b.admit(t, b.queue)
	if !admitted {
		b.queue = append(b.queue, t)
	}
	b.mu.Unlock()
	if admitted {
		return nil
	}
	ticker := time.NewTicker(maxExpectedWait)
	defer ticker.Stop()
	for {
		select {
		case <-t.ready:
			return nil
		case <-ticker.C:
			if !arrived && b.dequeue(t, func() bool { return b.fits(&b.arrived, r, n) }) {
				return nil
			}
		case <-ctx.Done():
			if b.dequeue(t, func() bool { return true }) {
				return errs.Wrap(context.Cause(ctx), errs.Unavailable, "server busy: memory limit for long answers reached")
			}
			return nil // t was admitted just now
		}
	}
}

// claim reports whether a request whose answer is expected to have n bytes may
// be sent now. It does not wait. It reserves n bytes for r, unless r already
// holds about that many. If unreserved is true, acquire has admitted r without
// reserving memory. In that case, claim also returns true if n bytes would be
// free without the answers that are only expected.
func (b *Budget) claim(r *allowance, n int, unreserved bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n <= r.held+r.held/slack || b.admit(&waiter{allowance: r, n: n}, b.queue) {
		return true
	}
	return unreserved && b.fits(&b.arrived, r, n)
}

// dequeue removes t from the queue if t is still in it and cond() returns true.
// It reports whether it has removed t.
func (b *Budget) dequeue(t *waiter, cond func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, t)
	if i < 0 || !cond() {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.admitWaiting() // the requests behind t may need less
	return true
}

// admitWaiting admits the waiting requests for which there is memory. The
// caller holds the lock.
func (b *Budget) admitWaiting() {
	for i := 0; i < len(b.queue); {
		t := b.queue[i]
		if !b.admit(t, b.queue[:i]) {
			i++
			continue
		}
		close(t.ready)
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}

// Hold reserves n bytes for data that this package does not store, such as the
// body of a client's request or of the gateway's answer. The bytes count
// towards the limit on the credential. Hold does not wait, and reports whether
// it succeeded.
func (b *Budget) Hold(cred model.Credential, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &allowance{budget: b, owner: ownerOf(nil, cred)}
	if !b.fits(&b.arrived, r, n) {
		return false
	}
	b.resize(r, n, true)
	return true
}

// Release frees the memory that Hold reserved.
func (b *Budget) Release(cred model.Credential, n int) {
	(&allowance{budget: b, owner: ownerOf(nil, cred), held: n, arrived: true}).release(n)
}
