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

func TestForecast(t *testing.T) {
	minutes := func(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }
	ends := map[uint32]time.Time{1: minutes(10), 2: minutes(20)}
	limits := map[uint32]time.Duration{3: 30 * time.Minute, 4: time.Minute}
	queue := func() *Queue {
		q := New(Resources{CPUs: 4, Memory: 100})
		q.Occupy(1, Resources{CPUs: 2})
		q.Occupy(2, Resources{CPUs: 1})
		return q
	}
	for _, tt := range []struct {
		name     string
		add      func(*Queue)
		begin    time.Time
		cpus     uint64
		priority uint32
		want     time.Time
	}{
		{name: "before another", cpus: 4, priority: 10, add: func(q *Queue) { q.Add(3, Resources{CPUs: 4}, time.Time{}, 9) }, want: minutes(20)},
		{name: "behind another of this size", cpus: 4, add: func(q *Queue) { q.Add(3, Resources{CPUs: 4}, time.Time{}, 9) }, want: minutes(50)},
		{name: "fits now", cpus: 1, want: t0},
		{name: "fits later", cpus: 2, want: minutes(10)},
		{name: "needs everything", cpus: 4, want: minutes(20)},
		{name: "begins later", cpus: 1, begin: minutes(5), want: minutes(5)},
		{name: "behind another", cpus: 4, add: func(q *Queue) { q.Add(3, Resources{CPUs: 3}, time.Time{}, 9) }, want: minutes(40)},
		{name: "beside another", cpus: 1, add: func(q *Queue) { q.Add(3, Resources{CPUs: 3}, time.Time{}, 9) }, want: t0},
		{name: "one that is held does not count", cpus: 2, add: func(q *Queue) { q.Add(3, Resources{CPUs: 4}, time.Time{}, 0) }, want: minutes(10)},
		{name: "one that begins later", cpus: 2, add: func(q *Queue) { q.Add(3, Resources{CPUs: 4}, minutes(1000), 9) }, want: minutes(10)},
		{name: "one without a limit", cpus: 4, add: func(q *Queue) { q.Add(5, Resources{CPUs: 1}, time.Time{}, 9) }},
		{name: "a running one without a limit", cpus: 4, add: func(q *Queue) { q.Occupy(6, Resources{CPUs: 1}) }},
	} {
		q := queue()
		if tt.add != nil {
			tt.add(q)
		}
		waiting := len(q.waiting)
		got := q.Forecast(
			func(id uint32) (time.Time, bool) { end, ok := ends[id]; return end, ok },
			func(id uint32) (time.Duration, bool) { limit, ok := limits[id]; return limit, ok }).
			Start(t0, tt.begin, 99, Resources{CPUs: tt.cpus}, max(tt.priority, 1))
		if !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if len(q.waiting) != waiting {
			t.Errorf("%s: the queue has %d jobs", tt.name, len(q.waiting))
		}
	}
}

// TestForecastIsBounded checks that many jobs make a start unknown, not slow.
func TestForecastIsBounded(t *testing.T) {
	q := New(Resources{CPUs: 1})
	for id := uint32(1); id <= 20_000; id++ {
		q.Add(id, Resources{CPUs: 1}, time.Time{}, 1)
	}
	f := q.Forecast(nil, func(uint32) (time.Duration, bool) { return time.Minute, true })
	if got := f.Start(t0, time.Time{}, 99_999, Resources{CPUs: 1}, 1); !got.IsZero() || len(f.queue.waiting) < 19_000 {
		t.Errorf("%v, %d jobs still wait", got, len(f.queue.waiting))
	}
}
