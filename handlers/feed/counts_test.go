package feed

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
	"schedrestd/model"
)

// TestCounts checks what is counted of the passes of a feed that has two clients.
// The source stops each pass, so that the test sees its counts.
func TestCounts(t *testing.T) {
	t.Parallel()
	c := &controller{items: map[string]item{"a": {key: "a"}, "b": {key: "b", group: 1}}}
	reading, proceed := make(chan time.Time), make(chan struct{})
	all := c.source("all", true, everything)
	gated := all
	gated.Read = func(ctx context.Context, q model.Query, each func(*item) error) (model.ListTimes, error) {
		reading <- origin.From(ctx).After
		<-proceed
		return all.Read(ctx, q, each)
	}
	var mu sync.Mutex
	counts := map[Count]int{}
	set := newSet()
	set.Count = func(what Count, n int) {
		mu.Lock()
		defer mu.Unlock()
		counts[what] += n
	}
	count := func(what Count) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[what]
	}
	joined := make(chan error)
	go func() {
		_, err := set.Join(t.Context(), ownerNamed("alice"), interest(-1), gated)
		joined <- err
	}()
	for first := true; first; {
		select {
		case <-reading:
			proceed <- struct{}{}
		case err := <-joined:
			if first = false; err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := set.Join(t.Context(), ownerNamed("alice"), interest(-1), gated); err != nil {
		t.Fatal(err)
	}
	saved := count(Saved)
	if saved != 0 {
		t.Errorf("%d requests saved with one client", saved)
	}
	for begun, tt := range []struct {
		name   string
		change func(map[string]item)
		fail   error
		want   Count
	}{
		{"while the second client joins", nil, nil, ReadUnchanged},
		{"nothing", nil, nil, ReadUnchanged},
		{"a change", func(items map[string]item) { items["a"] = item{key: "a", shown: 1} }, nil, ReadChanged},
		{"a change that is not shown", func(items map[string]item) { items["a"] = item{key: "a", shown: 1, other: 1} }, nil, ReadChanged},
		{"a new record", func(items map[string]item) { items["c"] = item{key: "c"} }, nil, ReadChanged},
		{"a record is deleted", func(items map[string]item) { delete(items, "c") }, nil, ReadChanged},
		{"a failure", nil, errs.New(errs.Unavailable, "busy"), ReadFailed},
		{"nothing after a failure", nil, nil, ReadUnchanged},
		{"refused", nil, errs.New(errs.Unauthenticated, "refused"), ReadFailed},
	} {
		after := <-reading // the pass before this one has ended
		mu.Lock()
		before := maps.Clone(counts)
		mu.Unlock()
		if before[Readers] != 1 {
			t.Errorf("%s: %d readers", tt.name, before[Readers])
		}
		if after.IsZero() && begun > 0 {
			saved++
		}
		if begun > 0 && before[Saved] != saved {
			t.Errorf("%s: %d requests saved, want %d", tt.name, before[Saved], saved)
		}
		saved = before[Saved]
		c.mu.Lock()
		if tt.change != nil {
			tt.change(c.items)
		}
		c.fail = tt.fail
		c.mu.Unlock()
		proceed <- struct{}{}
		for deadline := time.Now().Add(30 * time.Second); count(tt.want) == before[tt.want]; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not counted: %v, before %v", tt.name, counts, before)
			}
		}
		for _, what := range []Count{ReadChanged, ReadUnchanged, ReadFailed} {
			want := before[what]
			if what == tt.want {
				want++
			}
			if got := count(what); got != want {
				t.Errorf("%s: count %d is %d, want %d", tt.name, what, got, want)
			}
		}
	}
	for deadline := time.Now().Add(30 * time.Second); count(Readers) != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d readers at the end", count(Readers))
		}
	}
}
