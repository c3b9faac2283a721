package broker

import "sync"

// The type pending holds the unanswered questions, keyed by number. Each answer
// is delivered exactly once. If a goroutine is waiting for the answer, the
// method answer passes the answer to it. If the goroutine has just stopped
// waiting, it gets the answer from the method forget. Otherwise the caller of
// the method answer must handle the answer. The zero value holds no questions.
type pending[T any] struct {
	mu      sync.Mutex // guards the fields below
	last    uint64     // number of the last question
	waiting map[uint64]chan T
}

// register adds a question. It returns the question's number and the channel
// for its answer.
func (p *pending[T]) register() (id uint64, answer <-chan T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[uint64]chan T{}
	}
	ch := make(chan T, 1)
	p.last++
	p.waiting[p.last] = ch
	return p.last, ch
}

// answer passes an answer to the goroutine that asked. If no goroutine waits
// for it, the result is false, and the caller must handle the answer.
func (p *pending[T]) answer(id uint64, value T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch, ok := p.waiting[id]
	if ok {
		delete(p.waiting, id)
		ch <- value // the channel is buffered
	}
	return ok
}

// forget removes a question. If its answer has just arrived, ok is true, and
// the caller must handle the answer.
func (p *pending[T]) forget(id uint64, answer <-chan T) (value T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
	select {
	case value = <-answer:
		return value, true
	default:
		return value, false
	}
}
