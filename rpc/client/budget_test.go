package client

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// allowanceOf returns an allowance in b for the given user.
func (b *Budget) allowanceOf(user string) *allowance {
	return &allowance{budget: b, owner: owner{actAs: user}}
}

// free returns the number of unused bytes.
func (b *Budget) free() int { return b.size - b.arrived.total }

// waitQueued waits until n requests are in the queue.
func (b *Budget) waitQueued(t *testing.T, n int) {
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

// acquireAsync runs b.acquire in the background.
func (b *Budget) acquireAsync(ctx context.Context, r *allowance, n int) chan error {
	done := make(chan error, 1)
	go func() { done <- b.acquire(ctx, r, n, true) }()
	return done
}

// TestBudgetInOrder checks that small requests may overtake a large request
// that waits, but only a limited number of times.
func TestBudgetInOrder(t *testing.T) {
	t.Parallel()
	b := NewBudget(800) // long answers may use 700 bytes; answers of up to 25 bytes are short
	first := b.allowanceOf("a")
	if !first.tryAcquire(600) {
		t.Fatal("no room in an empty budget")
	}
	much := b.acquireAsync(context.Background(), b.allowanceOf("b"), 300)
	b.waitQueued(t, 1)
	for i := range maxOvertaken {
		r := b.allowanceOf(fmt.Sprint("c", i))
		if !r.tryAcquire(50) {
			t.Fatalf("%d did not get past", i)
		}
		r.release(50)
	}
	late := b.allowanceOf("d")
	if late.tryAcquire(50) {
		t.Error("a waiting request is passed more than maxPassed times")
	}
	if !late.tryAcquire(25) {
		t.Error("a short answer has to wait")
	}
	first.release(600)
	if err := <-much; err != nil || b.free() != 800-300-25 {
		t.Errorf("%v, %d are free", err, b.free())
	}
}

// TestBudgetKeepsSomeForShortOnes checks that there is always memory for short
// answers, however much memory long answers use.
func TestBudgetKeepsSomeForShortOnes(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	for i := range 7 {
		if !b.allowanceOf(fmt.Sprint(i)).tryAcquire(100) {
			t.Fatal(i)
		}
	}
	if b.allowanceOf("late").tryAcquire(26) {
		t.Error("a long answer got memory reserved for short ones")
	}
	for i := range 4 {
		if !b.allowanceOf(fmt.Sprint("short", i)).tryAcquire(25) {
			t.Errorf("no room for short answer %d", i)
		}
	}
	if b.allowanceOf("late").tryAcquire(1) {
		t.Error("there is more than there is")
	}
}

// TestBudgetIsShared checks that a credential gets either a single answer of
// any length, or several answers that together use at most half of the budget.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	one, more := b.allowanceOf("ann"), b.allowanceOf("ann")
	if !one.tryAcquire(700) || more.tryAcquire(10) {
		t.Fatalf("%d are free", b.free())
	}
	one.release(400) // 300 remain
	if !more.tryAcquire(100) || b.allowanceOf("ann").tryAcquire(1) {
		t.Errorf("%d are free", b.free())
	}
	ann := b.acquireAsync(context.Background(), b.allowanceOf("ann"), 200)
	b.waitQueued(t, 1)
	for i := range 3 * maxOvertaken { // ann waits only until answers to ann are released, and delays no other credential
		r := b.allowanceOf(fmt.Sprint(i))
		if !r.tryAcquire(200) {
			t.Fatal("others don't get the other half")
		}
		r.release(200)
	}
	if one.release(300); <-ann != nil {
		t.Error("this user's turn did not come")
	}
}

// TestBudgetIsGivenUp checks a request whose context ends while the request
// waits. It must fail, hold no memory, and delay no other request.
func TestBudgetIsGivenUp(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	b.allowanceOf("a").tryAcquire(500)
	ctx, cancel := context.WithCancel(context.Background())
	gave := b.acquireAsync(ctx, b.allowanceOf("b"), 300)
	b.waitQueued(t, 1)
	b.queue[0].overtaken = maxOvertaken
	less := b.acquireAsync(context.Background(), b.allowanceOf("c"), 200)
	b.waitQueued(t, 2)
	cancel()
	if err := <-gave; errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
	if err := <-less; err != nil || b.free() != 100 {
		t.Errorf("%v, %d are free", err, b.free())
	}
}

// TestBudgetOfExpectations checks that an expected answer delays others only
// for a moment. An answer that has arrived must delay others as long as it
// holds memory.
func TestBudgetOfExpectations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(800)
		start := time.Now() // time of the synctest bubble
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var wait sync.WaitGroup
		allowances := make([]*allowance, 50) // requests to a daemon that does not answer
		for i := range allowances {
			allowances[i] = b.allowanceOf(fmt.Sprint(i))
			wait.Go(func() {
				if err := allowances[i].acquire(ctx, 600, false); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if took := time.Since(start); took > maxExpectedWait {
			t.Errorf("they waited for %v while nothing was held", took)
		}
		if !allowances[7].tryAcquire(600) || allowances[0].tryAcquire(600) || allowances[8].tryAcquire(200) {
			t.Errorf("%d are free", b.free())
		}
		wait.Go(func() {
			if err := allowances[8].acquire(ctx, 200, false); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * maxExpectedWait)
		b.mu.Lock()
		waiting := len(b.queue)
		b.mu.Unlock()
		if waiting != 1 {
			t.Error("it did not wait for the held memory")
		}
		for _, r := range allowances {
			if r != allowances[8] {
				r.release(r.held)
			}
		}
		wait.Wait()
		if allowances[8].release(200); b.arrived.total != 0 || b.reserved.total != 0 || len(b.arrived.byOwner)+len(b.reserved.byOwner) != 0 {
			t.Errorf("afterwards: %+v %+v", b.arrived, b.reserved)
		}
	})
}

// TestAllowance checks that tryAcquire enlarges an allowance immediately or not
// at all. A request that waits for more memory must hold none in the meantime,
// because other requests may need it.
func TestAllowance(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	one, other := b.allowanceOf("a"), b.allowanceOf("b")
	if !one.tryAcquire(400) || !other.tryAcquire(300) || one.tryAcquire(500) || !other.tryAcquire(200) || !one.tryAcquire(500) {
		t.Fatalf("%d and %d, %d free", one.held, other.held, b.free())
	}
	done := make(chan error)
	go func() { done <- one.acquire(context.Background(), 600, true) }()
	b.waitQueued(t, 1)
	if err := other.acquire(context.Background(), 0, true); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || one.held != 600 || b.free() != 200 {
		t.Errorf("%v, has %d, %d free", err, one.held, b.free())
	}
	one.release(2000)
	if err := one.acquire(context.Background(), 100_000, true); err != nil || one.held != 700 {
		t.Errorf("more than there is: %v, has %d", err, one.held)
	}
	if one.release(1000); b.free() != 800 {
		t.Errorf("%d free", b.free())
	}
}

// TestHold checks that the memory that Hold reserves counts towards the limit
// on the credential.
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
