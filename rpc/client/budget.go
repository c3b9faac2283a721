package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/model"
)

// Budget limits the memory of answers that were received but not yet passed on.
// A daemon sends an answer faster than a slow client receives its records.
// Without a limit, a few dozen slow clients would make one process use
// gigabytes. A Budget is safe for concurrent use.
//
// An answer uses memory of the budget from the time when its length is known.
// It uses less as its records are decoded. An answer of a single piece
// (wire.PieceSize) uses none. These rules keep a few credentials from blocking
// all others:
//
// An eighth of the budget is reserved for short answers (see the method short).
//
// A credential gets at most half of the budget. Exception: the only answer of a
// credential may use all memory for long answers. The limit is per credential,
// not per user, because the user that a token belongs to is unknown here.
//
// An answer for which there is memory may overtake answers that wait for more.
// But long answers overtake a waiting answer at most maxPassed times, unless it
// waits only because of the limit on its credential.
//
// An expected answer reserves the size of the last answer to the same kind of
// request. The daemon may never answer, so an expected answer delays others for
// at most expectFor.
type Budget struct {
	size int

	mu    sync.Mutex
	here  ledger  // memory of answers that have arrived
	all   ledger  // the same, and memory of expected answers
	queue []*turn // waiting requests, oldest first
}

// ledger counts the memory in use, in total and by credential.
type ledger struct {
	taken int
	of    map[owner]int
}

func (l *ledger) add(who owner, n int) {
	l.taken += n
	if l.of[who] += n; l.of[who] == 0 {
		delete(l.of, who)
	}
}

// turn is a request's place in the queue.
type turn struct {
	allowance *allowance
	n         int
	come      bool // the answer has arrived, so expected answers are ignored
	passed    int  // number of times that others overtook it
	ready     chan struct{}
}

const (
	defaultAnswers = 256 << 20 // size of a Client's own Budget
	mostShort      = 1 << 20   // maximum length of a short answer
	maxPassed      = 16
	expectFor      = time.Second
)

// NewBudget returns a Budget of size bytes.
func NewBudget(size int) *Budget {
	return &Budget{size: size, here: ledger{of: map[owner]int{}}, all: ledger{of: map[owner]int{}}}
}

// reserve returns the number of bytes that long answers may not use.
func (b *Budget) reserve() int { return b.size / 8 }

// longest returns the size of the longest answer that fits into the budget.
func (b *Budget) longest() int { return b.size - b.reserve() }

// short reports whether an answer of n bytes may use the reserve.
func (b *Budget) short(n int) bool { return n <= min(mostShort, b.reserve()/4) }

// fits reports whether r may hold n bytes in total, according to the ledger l.
func (b *Budget) fits(l *ledger, r *allowance, n int) bool {
	has := r.has
	if l == &b.here && !r.come {
		has = 0
	}
	limit := b.longest()
	if b.short(n) {
		limit = b.size
	}
	return l.taken-has+n <= limit && b.fair(l, r, n, has)
}

// fair reports whether r can hold n bytes without exceeding the limit on its
// credential. The argument has is the number of bytes that r holds now,
// according to l. The n bytes replace them.
func (b *Budget) fair(l *ledger, r *allowance, n, has int) bool {
	others := l.of[r.who] - has
	return others == 0 || others+n <= b.size/2
}

// ledger returns a ledger of b. If come is set, the ledger has only the answers
// that have arrived; otherwise it also has the expected answers.
func (b *Budget) ledger(come bool) *ledger {
	if come {
		return &b.here
	}
	return &b.all
}

// admit gives t its memory if there is enough, and if t may overtake the
// requests that wait ahead of it. The caller holds the lock.
func (b *Budget) admit(t *turn, ahead []*turn) bool {
	if !b.fits(b.ledger(t.come), t.allowance, t.n) {
		return false
	}
	if !b.short(t.n) {
		for _, a := range ahead {
			// A request that waits because its own credential holds too much
			// memory may be overtaken any number of times.
			if a.passed >= maxPassed && b.fair(b.ledger(a.come), a.allowance, a.n, 0) {
				return false
			}
		}
		for _, a := range ahead {
			a.passed++
		}
	}
	b.put(t.allowance, t.n, t.come)
	return true
}

// put sets the memory that r has to n bytes. The caller holds the lock.
func (b *Budget) put(r *allowance, n int, come bool) {
	b.all.add(r.who, n-r.has)
	if r.come {
		b.here.add(r.who, -r.has)
	}
	if come {
		b.here.add(r.who, n)
	}
	r.has, r.come = n, come
}

// try gives r n bytes for an answer that has arrived. It does not wait, and
// reports whether it succeeded.
func (b *Budget) try(r *allowance, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n <= r.has && (r.come || b.fits(&b.here, r, n)) { // r has waited already, or shrinks
		b.put(r, n, true)
		b.serve()
		return true
	}
	return b.admit(&turn{allowance: r, n: n, come: true}, b.queue)
}

// take waits until r may have n bytes. It returns errs.Unavailable if ctx ends
// first. The argument come reports whether the answer has arrived; otherwise it
// is expected. An expected answer does not wait for long because of other
// expected answers: at intervals of expectFor, take checks whether the answers
// that have arrived leave enough memory. If they do, it returns nil without
// reserving memory.
func (b *Budget) take(ctx context.Context, r *allowance, n int, come bool) error {
	t := &turn{allowance: r, n: n, come: come, ready: make(chan struct{})}
	b.mu.Lock()
	admitted := b.admit(t, b.queue)
	if !admitted {
		b.queue = append(b.queue, t)
	}
	b.mu.Unlock()
	if admitted {
		return nil
	}
	look := time.NewTicker(expectFor)
	defer look.Stop()
	for {
		select {
		case <-t.ready:
			return nil
		case <-look.C:
			if !come && b.leave(t, func() bool { return b.fits(&b.here, r, n) }) {
				return nil
			}
		case <-ctx.Done():
			if b.leave(t, func() bool { return true }) {
				return errs.Wrap(context.Cause(ctx), errs.Unavailable, "too many long answers are being sent at this moment")
			}
			return nil // t was admitted just now
		}
	}
}

// claim reports whether a request may be sent whose answer is expected to have
// n bytes. It does not wait. It reserves n bytes for r, unless r already has
// that many or slightly fewer. The argument content reports whether take has
// already admitted r without reserving memory. In that case it is sufficient
// that the answers that have arrived leave n bytes: claim then returns true,
// even if it can't reserve them.
func (b *Budget) claim(r *allowance, n int, content bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n <= r.has+r.has/slack || b.admit(&turn{allowance: r, n: n}, b.queue) {
		return true
	}
	return content && b.fits(&b.here, r, n)
}

// leave removes t from the queue if t is still there and is() returns true. It
// reports whether it has removed t.
func (b *Budget) leave(t *turn, is func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, t)
	if i < 0 || !is() {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.serve() // the requests behind t may need less
	return true
}

// serve admits the waiting requests for which there is memory now. The caller
// holds the lock.
func (b *Budget) serve() {
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
// body of a client's request or the answer to it. They count towards the limit
// on cred. Hold does not wait, and reports whether it succeeded.
func (b *Budget) Hold(cred model.Credential, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &allowance{budget: b, who: ownerOf(nil, cred)}
	if !b.fits(&b.here, r, n) {
		return false
	}
	b.put(r, n, true)
	return true
}

// Release frees the memory that Hold reserved.
func (b *Budget) Release(cred model.Credential, n int) {
	(&allowance{budget: b, who: ownerOf(nil, cred), has: n, come: true}).less(n)
}
