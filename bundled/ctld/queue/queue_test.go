package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Unix(1000, 0)

// always permits all jobs to start.
func always(uint32) bool { return true }

func TestFirstFitInOrder(t *testing.T) {
	q := New(Resources{CPUs: 4, Memory: 100})
	q.Add(3, Resources{CPUs: 1}, time.Time{}, 1) // added last, but submitted before 4
	q.Add(1, Resources{CPUs: 3, Memory: 60}, time.Time{}, 1)
	q.Add(2, Resources{CPUs: 2, Memory: 10}, time.Time{}, 1)
	q.Add(4, Resources{CPUs: 1}, time.Time{}, 1)
	steps := []struct {
		name    string
		release uint32
		want    []uint32
		used    Resources
	}{
		{"1 fits, 2 does not, 3 does", 0, []uint32{1, 3}, Resources{4, 60}},
		{"nothing is free", 0, nil, Resources{4, 60}},
		{"1 ends: 2 goes first", 1, []uint32{2, 4}, Resources{4, 10}},
		{"all end", 2, nil, Resources{2, 0}},
	}
	for _, s := range steps {
		q.Release(s.release)
		if diff := cmp.Diff(s.want, q.Start(t0, always)); diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
		if q.Used() != s.used {
			t.Errorf("%s: used %+v, want %+v", s.name, q.Used(), s.used)
		}
	}
}

func TestPriorityComesFirst(t *testing.T) {
	q := New(Resources{CPUs: 2})
	for id, priority := range map[uint32]uint32{1: 5, 2: 7, 3: 7, 4: 0, 5: 6} {
		q.Add(id, Resources{CPUs: 1}, time.Time{}, priority)
	}
	var order []uint32
	for list := q.Start(t0, always); list != nil; list = q.Start(t0, always) {
		order = append(order, list...)
		for _, id := range list {
			q.Release(id)
		}
	}
	if diff := cmp.Diff([]uint32{2, 3, 5, 1}, order); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryCounts(t *testing.T) {
	q := New(Resources{CPUs: 4, Memory: 100})
	q.Add(1, Resources{CPUs: 1, Memory: 70}, time.Time{}, 1)
	q.Add(2, Resources{CPUs: 1, Memory: 31}, time.Time{}, 1)
	q.Add(3, Resources{CPUs: 1, Memory: 30}, time.Time{}, 1)
	if diff := cmp.Diff([]uint32{1, 3}, q.Start(t0, always)); diff != "" {
		t.Error(diff)
	}
}

func TestHeldAndLaterJobsWait(t *testing.T) {
	q := New(Resources{CPUs: 1})
	q.Add(1, Resources{CPUs: 1}, time.Time{}, 0)
	q.Add(2, Resources{CPUs: 1}, t0.Add(time.Minute), 1)
	q.Add(3, Resources{CPUs: 1}, t0.Add(time.Second), 1)
	if got := q.Start(t0, always); got != nil {
		t.Errorf("started %v", got)
	}
	if got := q.NextBegin(t0); !got.Equal(t0.Add(time.Second)) {
		t.Errorf("next at %v", got)
	}
	if diff := cmp.Diff([]uint32{2}, q.Start(t0.Add(time.Minute), always)); diff != "" {
		t.Error(diff)
	}
	if !q.Remove(3) || q.Remove(3) {
		t.Error("remove")
	}
	if got := q.NextBegin(t0.Add(time.Minute)); !got.IsZero() {
		t.Errorf("next at %v", got)
	}
}

func TestOccupiedBeyondWhatThereIs(t *testing.T) {
	q := New(Resources{CPUs: 2})
	q.Occupy(1, Resources{CPUs: 2})
	q.Occupy(2, Resources{CPUs: 2})
	q.Occupy(2, Resources{CPUs: 2}) // a second Occupy changes nothing
	q.Add(3, Resources{CPUs: 1}, time.Time{}, 1)
	q.Release(1)
	if got := q.Start(t0, always); got != nil {
		t.Errorf("started %v", got)
	}
	q.Release(2)
	q.Release(2)
	if diff := cmp.Diff([]uint32{3}, q.Start(t0, always)); diff != "" {
		t.Error(diff)
	}
}

func TestFits(t *testing.T) {
	q := New(Resources{CPUs: 2, Memory: 100})
	for need, bad := range map[Resources]bool{{2, 100}: false, {3, 0}: true, {1, 101}: true, {1 << 63, 1 << 63}: true} {
		if err := q.Fits(need); errors.Is(err, ErrExceedsMachine) != bad {
			t.Errorf("%+v: %v", need, err)
		}
	}
}
