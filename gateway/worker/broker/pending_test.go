package broker

import "testing"

// TestPending checks that each answer is delivered exactly once, even if its
// question is removed at the same moment.
func TestPending(t *testing.T) {
	var p pending[string]
	one, first := p.register()
	two, second := p.register()
	if one == two || !p.answer(two, "b") || p.answer(two, "again") || p.answer(99, "?") {
		t.Fatal("a repeated number, or an answer to no question")
	}
	if got := <-second; got != "b" {
		t.Errorf("%q", got)
	}
	p.answer(one, "a")
	if value, ok := p.forget(one, first); value != "a" || !ok {
		t.Errorf("an answer that has just arrived: %q, %v", value, ok)
	}
	three, third := p.register()
	if value, ok := p.forget(three, third); ok || p.answer(three, "c") || p.size() != 0 {
		t.Errorf("answer %q, %d questions are pending", value, p.size())
	}
}

// size returns the number of pending questions.
func (p *pending[T]) size() (n int) {
	p.waiting.Range(func(any, any) bool { n++; return true })
	return n
}
