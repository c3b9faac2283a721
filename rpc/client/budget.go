package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/model"
)

// Budget bounds the memory of answers that have come and were not handed on yet. An answer is
// read at its daemon's speed, and its records go to whoever asked at his: without a bound a few
// dozen who read slowly would have one process keep gigabytes. It is safe for concurrent use.
//
// An answer counts from the moment when its length is known, and less as its records are decoded.
// One of a single piece (wire.PieceSize) does not count. So that those who fill it are not in the way of all:
//
//   - An eighth is for short answers alone (short).
//   - One credential has no more than half, but for a single answer, which may take all there is for long ones. It is
//     the credential that counts: what a daemon takes for the same user is not known here.
//   - Who waits is passed by those whose answers fit, but only so often (maxPassed).
//   - What is only expected, by what the last answer to the same kind of request took, keeps nobody waiting for longer
//     than expectFor: the daemon may say nothing, and then nothing would be held by anybody.
type Budget struct {
	size int

	mu    sync.Mutex
	here  ledger  // what answers take that have come
	all   ledger  // and those that are expected
	queue []*turn // who waits, the first one first
}

// ledger is what is taken.
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

// turn is a place in the queue.
type turn struct {
	room   *room
	n      int
	come   bool // the answer has: what is expected does not count
	passed int  // how often others went by
	ready  chan struct{}
}

const (
	defaultAnswers = 256 << 20 // the Budget of a Client that was given none
	mostShort      = 1 << 20   // the longest answer that counts as a short one
	maxPassed      = 16
	expectFor      = time.Second
)

// NewBudget makes a Budget of size bytes.
func NewBudget(size int) *Budget {
	return &Budget{size: size, here: ledger{of: map[owner]int{}}, all: ledger{of: map[owner]int{}}}
}

// reserve is what long answers leave to the short ones.
func (b *Budget) reserve() int { return b.size / 8 }

// longest is the longest answer that there can be room for.
func (b *Budget) longest() int { return b.size - b.reserve() }

// short tells whether an answer of n bytes may take of the reserve.
func (b *Budget) short(n int) bool { return n <= min(mostShort, b.reserve()/4) }

// fits tells whether r may have n bytes in all, as l has it.
func (b *Budget) fits(l *ledger, r *room, n int) bool {
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

// fair tells whether r's credential may have n bytes for it instead of the has that it has.
func (b *Budget) fair(l *ledger, r *room, n, has int) bool {
	others := l.of[r.who] - has
	return others == 0 || others+n <= b.size/2
}

// ledger is what counts for t.
func (b *Budget) ledger(come bool) *ledger {
	if come {
		return &b.here
	}
	return &b.all
}

// admit gives t what it wants, if it may go before those of ahead, who wait. The caller holds the lock.
func (b *Budget) admit(t *turn, ahead []*turn) bool {
	if !b.fits(b.ledger(t.come), t.room, t.n) {
		return false
	}
	if !b.short(t.n) {
		for _, a := range ahead {
			// Who waits for his own other answers is in nobody's way.
			if a.passed >= maxPassed && b.fair(b.ledger(a.come), a.room, a.n, 0) {
				return false
			}
		}
		for _, a := range ahead {
			a.passed++
		}
	}
	b.put(t.room, t.n, t.come)
	return true
}

// put makes what r has n bytes. The caller holds the lock.
func (b *Budget) put(r *room, n int, come bool) {
	b.all.add(r.who, n-r.has)
	if r.come {
		b.here.add(r.who, -r.has)
	}
	if come {
		b.here.add(r.who, n)
	}
	r.has, r.come = n, come
}

// try gives r n bytes for an answer that has come, at once or not at all.
func (b *Budget) try(r *room, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n <= r.has && (r.come || b.fits(&b.here, r, n)) { // it has waited, or shrinks
		b.put(r, n, true)
		b.serve()
		return true
	}
	return b.admit(&turn{room: r, n: n, come: true}, b.queue)
}

// take gives r n bytes when its turn has come. When ctx ends before: errs.Unavailable. For an answer that
// has not come it is content with none when nobody but expectations is in the way.
func (b *Budget) take(ctx context.Context, r *room, n int, come bool) error {
	t := &turn{room: r, n: n, come: come, ready: make(chan struct{})}
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
			return nil // it came just now
		}
	}
}

// claim makes what r expects n bytes, if that may be at once. It is content with less when that is little less, or when
// r is content with none, having waited, and what has come leaves room.
func (b *Budget) claim(r *room, n int, content bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n <= r.has+r.has/slack || b.admit(&turn{room: r, n: n}, b.queue) {
		return true
	}
	return content && b.fits(&b.here, r, n)
}

// leave takes t out of the queue, if it is there and is so.
func (b *Budget) leave(t *turn, is func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, t)
	if i < 0 || !is() {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.serve() // the one behind may need less
	return true
}

// serve lets those in who have room now. The caller holds the lock.
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

// Hold takes n bytes for something else that is kept for cred's owner, a large
// body or an answer, at once or not at all.
func (b *Budget) Hold(cred model.Credential, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &room{budget: b, who: ownerOf(nil, cred)}
	if !b.fits(&b.here, r, n) {
		return false
	}
	b.put(r, n, true)
	return true
}

// Release gives back what Hold took.
func (b *Budget) Release(cred model.Credential, n int) {
	(&room{budget: b, who: ownerOf(nil, cred), has: n, come: true}).less(n)
}
