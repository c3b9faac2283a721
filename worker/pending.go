package worker

import "sync"

// pending keeps pending questions by number. The method answer passes each answer
// to the goroutine that asked, or returns false if that goroutine no longer
// waits. A goroutine that stops waiting calls forget, which returns the answer
// if it has just arrived. So no answer is lost. The zero value has no
// questions.
type pending[T any] struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan T
}

// register registers a question. It returns the question's number and the channel
// for its answer.
func (a *pending[T]) register() (id uint64, answer <-chan T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[uint64]chan T{}
	}
	ch := make(chan T, 1)
	a.last++
	a.waiting[a.last] = ch
	return a.last, ch
}

// answer passes an answer to the goroutine that asked. If no goroutine waits
// for the answer, it returns false, and the caller has to handle the answer.
func (a *pending[T]) answer(id uint64, value T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch, ok := a.waiting[id]
	if ok {
		delete(a.waiting, id)
		ch <- value // the channel is buffered
	}
	return ok
}

// forget stops waiting for an answer. If the answer arrived at the same moment,
// forget returns it, and the caller has to handle it.
func (a *pending[T]) forget(id uint64, answer <-chan T) (value T, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
	select {
	case value = <-answer:
		return value, true
	default:
		return value, false
	}
}
