package dbd

import (
	"context"
	"runtime"
	"sync"

	"schedrestd/errs"
)

// maxQueries is how many queries run at a time. Others wait.
const maxQueries = 8

// maxUserQueries returns how many of them are of one user: no user's queries occupy all processors.
func maxUserQueries() int { return min(max(1, runtime.GOMAXPROCS(0)/2), maxQueries/2) }

// queries bounds how many queries run at a time, so that they fit into memory and no user has all of them.
// mu guards the fields below it.
type queries struct {
	most, each int

	mu      sync.Mutex
	running int
	held    map[uint32]int // by user
	waiting []*waiter      // of each user in the order in which they came
}

// waiter is a query that waits. start is closed when it may run.
type waiter struct {
	uid   uint32
	start chan struct{}
}

func newQueries(most, each int) *queries {
	return &queries{most: most, each: each, held: map[uint32]int{}}
}

// enter waits until a query of uid may run. It then runs until leave is called. An end of ctx, as when the
// client closes its connection, ends the wait.
func (q *queries) enter(ctx context.Context, uid uint32) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, longestQuery)
	defer cancel()
	w := &waiter{uid, make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.startNext()
	q.mu.Unlock()
	select {
	case <-w.start:
		return func() { q.leave(uid) }, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return nil, errs.New(errs.TooMany, "too many queries at a time")
		}
	}
	return func() { q.leave(uid) }, nil // it was started at the same moment
}

func (q *queries) leave(uid uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	if q.held[uid]--; q.held[uid] == 0 {
		delete(q.held, uid)
	}
	q.startNext()
}

// startNext starts queries that wait, while there is room: first one of the user with the fewest running. The
// others of that user then wait behind those of all other users. q.mu is held.
func (q *queries) startNext() {
	for q.running < q.most {
		best := -1
		for i, w := range q.waiting {
			if q.held[w.uid] < q.each && (best < 0 || q.held[w.uid] < q.held[q.waiting[best].uid]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := q.waiting[best]
		q.waiting = append(q.waiting[:best], q.waiting[best+1:]...)
		q.sendBack(w.uid)
		q.running++
		q.held[w.uid]++
		close(w.start)
	}
}

// sendBack lets the waiting queries of uid wait behind all others. q.mu is held.
func (q *queries) sendBack(uid uint32) {
	var others, own []*waiter
	for _, w := range q.waiting {
		if w.uid == uid {
			own = append(own, w)
		} else {
			others = append(others, w)
		}
	}
	q.waiting = append(others, own...)
}
