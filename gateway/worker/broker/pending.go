package broker

import (
	"sync"
	"sync/atomic"
)

// The type pending holds the unanswered questions, keyed by number. Each answer
// is delivered exactly once. If the method answer removes the question from the
// map, the goroutine that asked gets the answer, even if it has just stopped
// waiting: then from the method forget. If the method forget removes the
// question, the caller of the method answer must handle the answer. The zero
// value holds no questions.
type pending[T any] struct {
	last    atomic.Uint64 // number of the last question
	waiting sync.Map      // from uint64 to chan T
}

// register adds a question. It returns the question's number and the channel
// for its answer. The caller must receive the answer, or call forget.
func (p *pending[T]) register() (id uint64, answer <-chan T) {
	id = p.last.Add(1)
	return id, p.registerAs(id)
}

// registerAs adds a question with the number of an earlier question, which has
// been answered.
func (p *pending[T]) registerAs(id uint64) (answer <-chan T) {
	ch := make(chan T, 1)
	p.waiting.Store(id, ch)
	return ch
}

// answer passes an answer to the goroutine that asked. If no goroutine waits
// for it, the result is false, and the caller must handle the answer.
func (p *pending[T]) answer(id uint64, value T) bool {
	ch, ok := p.waiting.LoadAndDelete(id)
	if ok {
		ch.(chan T) <- value // the channel is buffered
	}
	return ok
}

// forget removes a question whose answer was not received. If the answer has
// just arrived, ok is true, and the caller must handle the answer.
func (p *pending[T]) forget(id uint64, answer <-chan T) (value T, ok bool) {
	if _, waits := p.waiting.LoadAndDelete(id); waits {
		return value, false
	}
	return <-answer, true
}
