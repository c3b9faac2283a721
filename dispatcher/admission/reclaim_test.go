package admission

import (
	"slices"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// five is a State with five slots. newFive gives the sources 1, 2 and so on the
// requested numbers of slots. The connections are numbered from 0, and are
// being answered.
type five struct {
	*State
	list []*Conn
}

func newFive(of ...int) *five {
	f := &five{State: withSlots(5, 0, 8)}
	for i, n := range of {
		for range min(n, 5-len(f.list)) {
			c := f.comes(uint32(i + 1))
			c.Ref = len(f.list)
			f.Taken(c)
			f.list = append(f.list, c)
		}
	}
	return f
}

// comes reports the arrival of a connection of the user uid.
func (f *five) comes(uid uint32) *Conn {
	c := &Conn{Source: User(uid), Ref: -1}
	f.Arrived(noon, c)
	return c
}

func (f *five) rests(c *Conn) { f.Progress(c, work.Resting) }

// next checks which connections were asked to yield since its last call.
func (f *five) next(t *testing.T, want ...int) {
	t.Helper()
	var asked []int
	for _, d := range f.Decisions() {
		if d.Do == Yield {
			asked = append(asked, d.Conn.Ref.(int))
		}
	}
	if !slices.Equal(asked, want) {
		t.Fatalf("asked %v, want %v", asked, want)
	}
}

// TestOldestIsAsked checks that one connection is asked to yield for each
// waiting connection, beginning with the connection that has rested longest. If
// a connection does not yield until the next Tick, another must be asked.
func TestOldestIsAsked(t *testing.T) {
	f := newFive(5)
	for _, i := range []int{3, 1, 2} {
		f.rests(f.list[i])
	}
	first := f.comes(2)
	f.next(t, 3)
	f.Left(f.list[3])
	if !first.held {
		t.Error("a slot was freed, but the waiting connection did not get it")
	}
	f.comes(2)
	f.next(t, 1)
	f.Tick(noon) // connection 1 is still open
	f.next(t, 2)
	f.Tick(noon) // no connection rests any more, so the oldest busy one is asked
	f.next(t, 0)
	f.rests(f.list[2])
	if f.Progress(f.list[2], work.Resting) {
		t.Error("an unchanged stage was reported as a change")
	}
}

// TestAskedBefore checks that only one connection at a time is asked for each
// waiting connection. If a connection that was asked in an earlier round
// changes its state, no further connection may be asked.
func TestAskedBefore(t *testing.T) {
	f := newFive(5)
	for _, c := range f.list[:4] {
		f.rests(c)
	}
	f.comes(2)
	f.next(t, 0)
	f.Tick(noon) // connection 0 was asked to close, and is still open
	f.next(t, 1)
	f.forget(f.list[0])
	f.rests(f.list[4])
	f.next(t)
	f.forget(f.list[1])
	f.Progress(f.list[4], work.Waiting)
	f.next(t, 2)
}

// TestCrowdGivesWay checks what happens while one source has most of the slots,
// and all of its connections are busy. If a client of a third source connects,
// a connection of the crowded source must be asked to yield at once. If another
// client of the crowded source itself connects, no connection may be asked at
// once.
func TestCrowdGivesWay(t *testing.T) {
	f := newFive(4, 1)
	f.rests(f.list[4]) // the only connection of source 2
	f.comes(1)
	f.next(t)
	third := f.comes(3)
	f.next(t, 0)
	f.Left(f.list[0])
	f.next(t)
	if f.free != 0 || !third.held {
		t.Errorf("%d slots are free", f.free)
	}
}

// TestExcusedGiveNoWay checks that a connection whose slot was given to another
// connection is not asked to yield, because its end frees no slot.
func TestExcusedGiveNoWay(t *testing.T) {
	f := newFive(5)
	for _, c := range f.list {
		f.rests(c)
	}
	f.Silent(f.list[:2])
	for range 2 {
		if !f.comes(2).held {
			t.Error("the slot of a silent worker's connection is unavailable")
		}
	}
	f.comes(3)
	f.next(t, 2)
}

// TestOwnSourceGivesWay checks what happens when a connection waits because its
// source has reached the limit for one source. One of this source's own
// connections must be asked to yield as soon as it rests. No connection of
// another source may be asked.
func TestOwnSourceGivesWay(t *testing.T) {
	f := newFive(2, 2)
	f.limit = 2
	f.rests(f.list[2])
	f.rests(f.list[0])
	f.comes(1)
	f.next(t, 0)
	f.Left(f.list[0])
	f.comes(1)
	f.next(t)
	f.rests(f.list[1])
	f.next(t, 1)
}

// TestMoreThanHalfHasToWait checks what happens when a connection waits and its
// source already has at least half of the slots. Connections at rest must be
// asked to yield only at the next Tick. If none is left at the Tick after that,
// a busy connection of the same source must be asked, but none of another
// source.
func TestMoreThanHalfHasToWait(t *testing.T) {
	f := newFive(3, 2)
	f.rests(f.list[4])
	f.comes(1)
	f.next(t)
	f.Tick(noon)
	f.next(t, 4)
	f.Tick(noon)
	f.next(t, 0)
}

// TestAskToYield checks that the connections of a worker are asked once, if all
// of them rest or if busy is true. Connections that stay for a while must not
// count as coming, and a connection that stays at rest must count as stubborn.
func TestAskToYield(t *testing.T) {
	f := newFive(2)
	f.rests(f.list[0])
	for _, tt := range []struct {
		what             string
		after            time.Duration
		busy             bool
		coming, stubborn bool
		asked            []int
	}{
		{"one is being answered", 0, false, false, false, nil},
		{"urgent", time.Second, true, true, false, []int{0, 1}},
		{"asked already", 2 * time.Second, true, true, false, nil},
		{"they stay", 4 * time.Second, true, false, false, nil},
		{"one is still at rest", 7 * time.Second, true, false, true, nil},
	} {
		if coming, stubborn := f.AskToYield(noon.Add(tt.after), f.list, tt.busy); coming != tt.coming || stubborn != tt.stubborn {
			t.Errorf("%s: coming %t, stubborn %t", tt.what, coming, stubborn)
		}
		f.next(t, tt.asked...)
	}
}
