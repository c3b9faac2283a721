package admission

import (
	"slices"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// five is a State with five slots. The arguments of newFive are the numbers of
// slots that source 1, source 2 and so on have. The connections are numbered
// from 0, and a request is being answered on each of them.
type five struct {
	*State
	list []*Conn
}

func newFive(counts ...int) *five {
	f := &five{State: withSlots(5, 0, 8)}
	for i, n := range counts {
		for range min(n, 5-len(f.list)) {
			c := f.arrive(uint32(i + 1))
			c.Ref = len(f.list)
			f.Taken(c)
			f.list = append(f.list, c)
		}
	}
	return f
}

// arrive reports the arrival of a connection of the user uid.
func (f *five) arrive(uid uint32) *Conn {
	c := &Conn{Source: User(uid), Ref: -1}
	f.Arrived(noon, c)
	return c
}

func (f *five) setResting(c *Conn) { f.Progress(c, work.Idle) }

// wantAsked checks which connections were reclaimed since the last call of
// wantAsked.
func (f *five) wantAsked(t *testing.T, want ...int) {
	t.Helper()
	var asked []int
	for _, d := range f.Decisions() {
		if d.Action == Reclaim {
			asked = append(asked, d.Conn.Ref.(int))
		}
	}
	if !slices.Equal(asked, want) {
		t.Fatalf("asked %v, want %v", asked, want)
	}
}

// TestOldestIsAsked checks that for each waiting connection, one connection is
// reclaimed: the one that has rested longest. If that connection is still open at
// the next Tick, another one must be reclaimed.
func TestOldestIsAsked(t *testing.T) {
	f := newFive(5)
	for _, i := range []int{3, 1, 2} {
		f.setResting(f.list[i])
	}
	first := f.arrive(2)
	f.wantAsked(t, 3)
	f.Release(f.list[3])
	if first.holds != slot {
		t.Error("a slot was freed, but the waiting connection did not get it")
	}
	f.arrive(2)
	f.wantAsked(t, 1)
	f.Tick(noon) // connection 1 is still open
	f.wantAsked(t, 2)
	f.Tick(noon) // no connection rests any more, so the oldest busy one is asked
	f.wantAsked(t, 0)
	f.setResting(f.list[2])
	if f.Progress(f.list[2], work.Idle) {
		t.Error("an unchanged stage was reported as a change")
	}
}

// TestAskedBefore checks that between two Ticks, only one connection is reclaimed
// for each waiting connection. If a connection that was reclaimed since the last
// Tick changes its stage, another one must be. If a connection that was reclaimed
// before that changes its stage, no other may be.
func TestAskedBefore(t *testing.T) {
	f := newFive(5)
	for _, c := range f.list[:4] {
		f.setResting(c)
	}
	f.arrive(2)
	f.wantAsked(t, 0)
	f.Tick(noon) // connection 0 was reclaimed, but is still open
	f.wantAsked(t, 1)
	f.clearAsked(f.list[0])
	f.setResting(f.list[4])
	f.wantAsked(t)
	f.clearAsked(f.list[1])
	f.Progress(f.list[4], work.Waiting)
	f.wantAsked(t, 2)
}

// TestCrowdGivesWay tests a crowded source: it has most of the slots, and all
// of its connections are busy. If a client of a source without slots connects,
// a connection of the crowded source must be reclaimed at once. If another
// client of the crowded source connects, no connection may be asked at once.
func TestCrowdGivesWay(t *testing.T) {
	f := newFive(4, 1)
	f.setResting(f.list[4]) // the only connection of source 2
	f.arrive(1)
	f.wantAsked(t)
	third := f.arrive(3)
	f.wantAsked(t, 0)
	f.Release(f.list[0])
	f.wantAsked(t)
	if f.queue.Free() != 0 || third.holds != slot {
		t.Errorf("%d slots are free", f.queue.Free())
	}
}

// TestExcusedGiveNoWay tests connections whose slots were already given to
// others. Such a connection must not be reclaimed, because its end would
// free no slot.
func TestExcusedGiveNoWay(t *testing.T) {
	f := newFive(5)
	for _, c := range f.list {
		f.setResting(c)
	}
	f.Unresponsive(f.list[:2])
	for range 2 {
		if f.arrive(2).holds != slot {
			t.Error("the slot of a silent worker's connection is unavailable")
		}
	}
	f.arrive(3)
	f.wantAsked(t, 2)
}

// TestAnsweringWorker tests connections whose slots were given to others, and whose
// worker answers again. They can be reclaimed, and no slot is free until as many
// connections have ended as there are too many.
func TestAnsweringWorker(t *testing.T) {
	f := newFive(5)
	for _, c := range f.list {
		f.setResting(c)
	}
	f.Unresponsive(f.list[:2])
	for range 2 {
		f.arrive(2)
	}
	f.Responsive(f.list)
	if f.queue.Free() != -2 || f.Stats().Held != 7 || f.Lent() != 0 {
		t.Errorf("%d slots are free, and %d held", f.queue.Free(), f.Stats().Held)
	}
	third := f.arrive(3)
	f.wantAsked(t, 0)
	f.Release(f.list[0])
	f.Release(f.list[1])
	if third.holds != nothing {
		t.Error("it gets a slot while too many are held")
	}
	if f.Release(f.list[2]); third.holds != slot {
		t.Error("it gets no slot")
	}
}

// TestOwnSourceGivesWay tests a connection that waits because its source has
// reached PerSource. One of the source's own connections must be reclaimed
// as soon as it rests. No connection of another source may be asked.
func TestOwnSourceGivesWay(t *testing.T) {
	f := newFive(2, 2)
	f.limit = 2
	f.setResting(f.list[2])
	f.setResting(f.list[0])
	f.arrive(1)
	f.wantAsked(t, 0)
	f.Release(f.list[0])
	f.arrive(1)
	f.wantAsked(t)
	f.setResting(f.list[1])
	f.wantAsked(t, 1)
}

// TestMoreThanHalfHasToWait tests a waiting connection whose source already has
// at least half of the slots. At the next Tick, and not before, a connection at
// rest must be reclaimed. If no connection is at rest at the Tick after
// that, a busy connection of the waiting source must be asked.
func TestMoreThanHalfHasToWait(t *testing.T) {
	f := newFive(3, 2)
	f.setResting(f.list[4])
	f.arrive(1)
	f.wantAsked(t)
	f.Tick(noon)
	f.wantAsked(t, 4)
	f.Tick(noon)
	f.wantAsked(t, 0)
}

// TestReclaimAll checks that the connections of a worker are reclaimed only
// once, and only if busy is true or all of them are at rest. If a
// connection is still open after endLimit, closing must be false. If it is
// still at rest after closeLimit, stubborn must be true.
func TestReclaimAll(t *testing.T) {
	f := newFive(2)
	f.setResting(f.list[0])
	for _, tt := range []struct {
		name              string
		after             time.Duration
		busy              bool
		closing, stubborn bool
		asked             []int
	}{
		{"one is being answered", 0, false, false, false, nil},
		{"urgent", time.Second, true, true, false, []int{0, 1}},
		{"asked already", 2 * time.Second, true, true, false, nil},
		{"they stay", 4 * time.Second, true, false, false, nil},
		{"one is still at rest", 7 * time.Second, true, false, true, nil},
	} {
		if closing, stubborn := f.ReclaimAll(noon.Add(tt.after), f.list, tt.busy); closing != tt.closing || stubborn != tt.stubborn {
			t.Errorf("%s: closing %t, stubborn %t", tt.name, closing, stubborn)
		}
		f.wantAsked(t, tt.asked...)
	}
}

// TestRestWithoutSlot checks that a connection that has waited for a change, and
// finds no free slot when it goes on, is reclaimed once it is at rest, and
// that its end frees no slot.
func TestRestWithoutSlot(t *testing.T) {
	f := newFive(2, 3)
	c := f.list[0]
	f.Progress(c, work.Watching)
	f.Taken(f.arrive(3))
	f.Decisions()
	f.Progress(c, work.Answering)
	f.wantAsked(t)
	f.setResting(c)
	f.wantAsked(t, 0)
	f.Release(c)
	if got := f.Stats(); got.Held != 5 || f.watchers.Free() != 4 {
		t.Errorf("%+v, %d places to watch", got, f.watchers.Free())
	}
}
