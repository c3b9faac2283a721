package worker

import "testing"

// TestAsked checks that an answer is delivered to its question exactly once,
// even if the question is abandoned at the same moment.
func TestAsked(t *testing.T) {
	var a asked[string]
	one, first := a.next()
	two, second := a.next()
	if one == two || !a.answer(two, "b") || a.answer(two, "again") || a.answer(99, "?") {
		t.Fatal("numbers or waiting requests are left")
	}
	if got := <-second; got != "b" {
		t.Errorf("%q", got)
	}
	a.answer(one, "a")
	if late, came := a.forget(one, first); late != "a" || !came {
		t.Errorf("late: %q, %v", late, came)
	}
	three, third := a.next()
	if late, came := a.forget(three, third); came || a.answer(three, "c") || len(a.waiting) != 0 {
		t.Errorf("%q came, %d wait", late, len(a.waiting))
	}
}
