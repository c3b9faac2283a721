package client

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/errs"
	"schedrestd/model"
)

// of returns an allowance in b for a user with the name who.
func (b *Budget) of(who string) *allowance { return &allowance{budget: b, who: owner{actAs: who}} }

// free returns the number of unused bytes.
func (b *Budget) free() int { return b.size - b.here.taken }

// waiting waits until n requests are in the queue.
func (b *Budget) waiting(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		queued := len(b.queue)
		b.mu.Unlock()
		switch {
		case queued == n:
			return
		case time.Now().After(end):
			t.Fatalf("%d wait, want %d", queued, n)
		}
	}
}

// taking runs b.take in the background.
func (b *Budget) taking(ctx context.Context, r *allowance, n int) chan error {
	done := make(chan error, 1)
	go func() { done <- b.take(ctx, r, n, true) }()
	return done
}

// TestBudgetInOrder checks that smaller requests may overtake a waiting large
// one, but only a limited number of times.
func TestBudgetInOrder(t *testing.T) {
	t.Parallel()
	b := NewBudget(800) // 700 for long answers; up to 25 is short
	first := b.of("a")
	if !first.set(600) {
		t.Fatal("no room in an empty budget")
	}
	much := b.taking(context.Background(), b.of("b"), 300)
	b.waiting(t, 1)
	for i := range maxPassed {
		r := b.of(fmt.Sprint("c", i))
		if !r.set(50) {
			t.Fatalf("%d did not get past", i)
		}
		r.less(50)
	}
	late := b.of("d")
	if late.set(50) {
		t.Error("a waiting request is passed more than maxPassed times")
	}
	if !late.set(25) {
		t.Error("a short answer has to wait")
	}
	first.less(600)
	if err := <-much; err != nil || b.free() != 800-300-25 {
		t.Errorf("%v, %d are free", err, b.free())
	}
}

// TestBudgetKeepsSomeForShortOnes checks that there is always memory for short
// answers, however much long ones use.
func TestBudgetKeepsSomeForShortOnes(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	for i := range 7 {
		if !b.of(fmt.Sprint(i)).set(100) {
			t.Fatal(i)
		}
	}
	if b.of("late").set(26) {
		t.Error("a long answer got memory reserved for short ones")
	}
	for i := range 4 {
		if !b.of(fmt.Sprint("short", i)).set(25) {
			t.Errorf("no room for short answer %d", i)
		}
	}
	if b.of("late").set(1) {
		t.Error("there is more than there is")
	}
}

// TestBudgetIsShared checks that a credential gets either a single answer of
// any length, or several answers that together use at most half of the budget.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	one, more := b.of("ann"), b.of("ann")
	if !one.set(700) || more.set(10) {
		t.Fatalf("%d are free", b.free())
	}
	one.less(400) // 300 remain
	if !more.set(100) || b.of("ann").set(1) {
		t.Errorf("%d are free", b.free())
	}
	ann := b.taking(context.Background(), b.of("ann"), 200)
	b.waiting(t, 1)
	for i := range 3 * maxPassed { // this credential waits for its own answers, and delays no other
		r := b.of(fmt.Sprint(i))
		if !r.set(200) {
			t.Fatal("others don't get the other half")
		}
		r.less(200)
	}
	if one.less(300); <-ann != nil {
		t.Error("this user's turn did not come")
	}
}

// TestBudgetIsGivenUp checks a request whose context ends while it waits. The
// request must fail, hold no memory, and delay no other request.
func TestBudgetIsGivenUp(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	b.of("a").set(500)
	ctx, cancel := context.WithCancel(context.Background())
	gave := b.taking(ctx, b.of("b"), 300)
	b.waiting(t, 1)
	b.queue[0].passed = maxPassed
	less := b.taking(context.Background(), b.of("c"), 200)
	b.waiting(t, 2)
	cancel()
	if err := <-gave; errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
	if err := <-less; err != nil || b.free() != 100 {
		t.Errorf("%v, %d are free", err, b.free())
	}
}

// TestBudgetOfExpectations checks that an expected answer delays others only
// for a moment. An answer that has arrived must delay others for as long as it
// is held.
func TestBudgetOfExpectations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(800)
		begun := time.Now() // time of the synctest bubble
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var wait sync.WaitGroup
		allowances := make([]*allowance, 50) // requests to a daemon that does not answer
		for i := range allowances {
			allowances[i] = b.of(fmt.Sprint(i))
			wait.Go(func() {
				if err := allowances[i].wait(ctx, 600, false); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if took := time.Since(begun); took > expectFor {
			t.Errorf("they waited for %v while nothing was held", took)
		}
		if !allowances[7].set(600) || allowances[0].set(600) || allowances[8].set(200) {
			t.Errorf("%d are free", b.free())
		}
		wait.Go(func() {
			if err := allowances[8].wait(ctx, 200, false); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * expectFor)
		b.mu.Lock()
		waiting := len(b.queue)
		b.mu.Unlock()
		if waiting != 1 {
			t.Error("it did not wait for the held memory")
		}
		for _, r := range allowances {
			if r != allowances[8] {
				r.less(r.has)
			}
		}
		wait.Wait()
		if allowances[8].less(200); b.here.taken != 0 || b.all.taken != 0 || len(b.here.of)+len(b.all.of) != 0 {
			t.Errorf("afterwards: %+v %+v", b.here, b.all)
		}
	})
}

// TestAllowance checks that an allowance grows immediately or not at all. A
// request for more memory than exists must hold no memory while it waits,
// because other requests may need that memory.
func TestAllowance(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	one, other := b.of("a"), b.of("b")
	if !one.set(400) || !other.set(300) || one.set(500) || !other.set(200) || !one.set(500) {
		t.Fatalf("%d and %d, %d free", one.has, other.has, b.free())
	}
	done := make(chan error)
	go func() { done <- one.wait(context.Background(), 600, true) }()
	b.waiting(t, 1)
	if err := other.wait(context.Background(), 0, true); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || one.has != 600 || b.free() != 200 {
		t.Errorf("%v, has %d, %d free", err, one.has, b.free())
	}
	one.less(2000)
	if err := one.wait(context.Background(), 100_000, true); err != nil || one.has != 700 {
		t.Errorf("more than there is: %v, has %d", err, one.has)
	}
	if one.less(1000); b.free() != 800 {
		t.Errorf("%d free", b.free())
	}
}

// TestHold checks that memory held for other data counts towards its owner's
// limit.
func TestHold(t *testing.T) {
	t.Parallel()
	b, ann := NewBudget(800), model.Credential{Token: "ann"}
	if !b.Hold(ann, 600) || b.Hold(ann, 1) || !b.Hold(model.Credential{Token: "bob"}, 100) {
		t.Errorf("%d free", b.free())
	}
	b.Release(ann, 600)
	if b.free() != 700 || !b.Hold(ann, 300) {
		t.Errorf("%d free", b.free())
	}
}
