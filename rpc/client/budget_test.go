package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"schedrestd/errs"
)

// waiting waits until n are in the queue.
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

// TestBudgetInOrder: who needs much is not overtaken for ever by those who need little.
func TestBudgetInOrder(t *testing.T) {
	b := NewBudget(10)
	if !b.try(8) {
		t.Fatal("no room in an empty budget")
	}
	var wait sync.WaitGroup
	order := make(chan int, 3)
	for i, n := range []int{7, 1, 2} {
		wait.Go(func() {
			if err := b.take(context.Background(), n); err != nil {
				t.Error(err)
			}
			order <- n
		})
		b.waiting(t, i+1)
	}
	if b.try(1) {
		t.Error("one who came later was served first")
	}
	b.give(5)
	if got := <-order; got != 7 {
		t.Errorf("%d was served first", got)
	}
	b.waiting(t, 2)
	b.give(3)
	wait.Wait()
	if b.free != 10-7-1-2+0 {
		t.Errorf("%d are free", b.free)
	}
}

// TestBudgetIsGivenUp: who waited in vain is told to come back, takes nothing, and is in nobody's way.
func TestBudgetIsGivenUp(t *testing.T) {
	b := NewBudget(10)
	b.try(8)
	ctx, cancel := context.WithCancel(context.Background())
	gave := make(chan error)
	go func() { gave <- b.take(ctx, 5) }()
	b.waiting(t, 1)
	small := make(chan error)
	go func() { small <- b.take(context.Background(), 2) }()
	b.waiting(t, 2)
	cancel()
	if err := <-gave; errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
	if err := <-small; err != nil || b.free != 0 {
		t.Errorf("%v, %d are free", err, b.free)
	}
}

// TestRoom: room grows at once or not at all, and for more than there is nobody holds what others wait for.
func TestRoom(t *testing.T) {
	b := NewBudget(10)
	one, other := &room{budget: b}, &room{budget: b}
	if !one.set(6) || !other.set(4) || one.set(7) || !other.set(3) || !one.set(7) {
		t.Fatalf("%d and %d, %d free", one.has, other.has, b.free)
	}
	done := make(chan error)
	go func() { done <- one.wait(context.Background(), 9) }()
	b.waiting(t, 1)
	if err := other.wait(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || one.has != 9 || b.free != 1 {
		t.Errorf("%v, has %d, %d free", err, one.has, b.free)
	}
	if err := other.wait(context.Background(), 0); err != nil || one.has != 9 {
		t.Error(err)
	}
	one.less(20)
	if err := one.wait(context.Background(), 1000); err != nil || one.has != 10 {
		t.Errorf("more than there is: %v, has %d", err, one.has)
	}
	if one.less(1000); b.free != 10 {
		t.Errorf("%d free", b.free)
	}
}
