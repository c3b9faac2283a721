package worker

import "sync"

// asked keeps pending questions by number. The method answer passes each answer
// to the goroutine that asked, or returns false if that goroutine no longer
// waits. A goroutine that stops waiting calls forget, which returns the answer
// if it has just arrived. So no answer is lost. The zero value has no
// questions.
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

// answer passes an answer to the goroutine that asked. If no goroutine waits
// for the answer, it returns false, and the caller has to handle the answer.
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

// forget stops waiting for an answer. If the answer arrived at the same moment,
// forget returns it, and the caller has to handle it.
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
