package worker

import "sync"

// asked is questions that are out, by number. An answer comes to who asked, or it is said that nobody waits for it; none
// is lost in between. The zero value has none.
type asked[T any] struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan T
}

// next is the number of one more question, and where its answer comes.
func (a *asked[T]) next() (id uint64, answer <-chan T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[uint64]chan T{}
	}
	who := make(chan T, 1)
	a.last++
	a.waiting[a.last] = who
	return a.last, who
}

// answer gives an answer to who waits for it. It reports false when nobody does.
func (a *asked[T]) answer(id uint64, with T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	who, waits := a.waiting[id]
	if waits {
		delete(a.waiting, id)
		who <- with // there is room
	}
	return waits
}

// forget has nobody wait for an answer any more. One that came in this very moment is late, and the caller's.
func (a *asked[T]) forget(id uint64, answer <-chan T) (late T, came bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
	select {
	case late = <-answer:
		return late, true
	default:
		return late, false
	}
}
