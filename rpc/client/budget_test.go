package client

import (
	"fmt"
	"testing"

	"schedrestd/model"
)

// allowanceOf returns an allowance in b for the given user.
func (b *Budget) allowanceOf(user string) *Allowance { return b.allowance(user) }

// TestBudgetKeepsSomeForShortOnes checks that there is always memory for short
// answers, however much memory long answers use.
func TestBudgetKeepsSomeForShortOnes(t *testing.T) {
	t.Parallel()
	b := NewBudget(800) // long answers may use 700 bytes; answers of up to 25 bytes are short
	if !b.short(25) || b.short(26) {
		t.Error("other answers are short")
	}
	for i := range 7 {
		if !b.allowanceOf(fmt.Sprint(i)).acquire(100) {
			t.Fatal(i)
		}
	}
	if b.allowanceOf("late").acquire(1) {
		t.Error("a long answer got memory reserved for short ones")
	}
	short := b.allowanceOf("short")
	if short.short = true; !short.acquire(100) {
		t.Error("no memory for short answers")
	}
	if short.acquire(1) {
		t.Error("there is more than there is")
	}
}

// TestBudgetIsShared checks that a credential gets either a single answer of
// any length, or several answers that together use at most half of the budget.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	one, more := b.allowanceOf("ann"), b.allowanceOf("ann")
	if !one.acquire(300) || !one.acquire(400) || more.acquire(10) {
		t.Fatalf("%d are free", b.Free())
	}
	one.Shrink(400) // 300 remain
	if !more.acquire(100) || more.acquire(1) || one.acquire(1) || b.allowanceOf("ann").acquire(1) {
		t.Errorf("%d are free", b.Free())
	}
	if !b.allowanceOf("bob").acquire(300) {
		t.Error("others don't get the other half")
	}
	one.Shrink(300)
	if !more.acquire(300) {
		t.Error("its only answer does not get all memory")
	}
	more.Shrink(400)
	if b.Free() != 500 {
		t.Errorf("%d are free", b.Free())
	}
}

// TestReserve checks that reserved memory counts towards the limit on the
// credential, and that long data in small parts does not use the reserve for short
// answers.
func TestReserve(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	reserve := func(user string) *Allowance { return b.Reserve(model.Credential{Token: user}) }
	ann := reserve("ann")
	if !ann.Grow(600) || reserve("ann").Grow(1) || !reserve("bob").Grow(100) {
		t.Errorf("%d free", b.Free())
	}
	if ann.Size() != 600 {
		t.Errorf("%d bytes are reserved", ann.Size())
	}
	ann.Shrink(1000)
	if b.Free() != 700 || !ann.Grow(300) {
		t.Errorf("%d free", b.Free())
	}
	eva := reserve("eva")
	if !reserve("dan").Grow(300) || !eva.Grow(15) || eva.Grow(15) {
		t.Errorf("%d free", b.Free())
	}
}
