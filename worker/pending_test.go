package worker

import "testing"

// TestPending checks that an answer is delivered to its question exactly once,
// even if the question is abandoned at the same moment.
func TestPending(t *testing.T) {
	var a pending[string]
	one, first := a.register()
	two, second := a.register()
	if one == two || !a.answer(two, "b") || a.answer(two, "again") || a.answer(99, "?") {
		t.Fatal("numbers or waiting requests are left")
	}
	if got := <-second; got != "b" {
		t.Errorf("%q", got)
	}
	a.answer(one, "a")
	if value, ok := a.forget(one, first); value != "a" || !ok {
		t.Errorf("late: %q, %v", value, ok)
	}
	three, third := a.register()
	if value, ok := a.forget(three, third); ok || a.answer(three, "c") || len(a.waiting) != 0 {
		t.Errorf("%q came, %d wait", value, len(a.waiting))
	}
}
