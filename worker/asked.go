package worker

import "sync"

// asked keeps pending questions by number. Each answer goes to the goroutine
// that asked. An answer that arrives too late is returned to the caller that
// delivers it, so that none is lost. The zero value has no questions.
type asked[T any] struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan T
}

// next registers a question. It returns the question's number and the channel
// for its answer.
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

// answer passes an answer to the goroutine that asked. It returns false if no
// goroutine waits for it.
func (a *asked[T]) answer(id uint64, with T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	who, waits := a.waiting[id]
	if waits {
		delete(a.waiting, id)
		who <- with // the channel is buffered
	}
	return waits
}

// forget stops waiting for an answer. If an answer arrived at the same moment,
// it is returned as late and belongs to the caller.
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
