package admission

import (
	"slices"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// five is five slots of which so many are taken by each source in turn, from 1 on, by
// connections that are numbered from 0 and are being answered.
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

// comes reports the arrival of a connection of uid.
func (f *five) comes(uid uint32) *Conn {
	c := &Conn{Source: User(uid), Ref: -1}
	f.Arrived(noon, c)
	return c
}

func (f *five) rests(c *Conn) { f.Progress(c, work.Resting) }

// next fails the test unless exactly these connections were asked since the last call.
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

// TestOldestIsAsked: of those at rest the one that has rested longest goes first, one for each
// that waits; and one that was asked and stayed is followed by others.
func TestOldestIsAsked(t *testing.T) {
	f := newFive(5)
	for _, i := range []int{3, 1, 2} {
		f.rests(f.list[i])
	}
	first := f.comes(2)
	f.next(t, 3)
	f.Left(f.list[3])
	if !first.held {
		t.Error("a slot was freed, and the one that waited has none")
	}
	f.comes(2)
	f.next(t, 1)
	f.Tick(noon) // 1 is there still
	f.next(t, 2)
	f.Tick(noon) // none is left that rests: those that are busy, oldest first
	f.next(t, 0)
	f.rests(f.list[2])
	if f.Progress(f.list[2], work.Resting) {
		t.Error("what was known was taken for news")
	}
}

// TestAskedBefore: one that was asked before, stayed, and goes at last makes no room for another to
// be asked: one that waits gets one at a time.
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

// TestCrowdGivesWay: for a client of another source, the source that has most of the slots gives
// way at once, although its connections are busy; and for one of its own no other is asked at once.
func TestCrowdGivesWay(t *testing.T) {
	f := newFive(4, 1)
	f.rests(f.list[4]) // the only one of source 2
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

// TestExcusedGiveNoWay: the end of a connection whose slot others have makes no room, and none is
// asked for that.
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

// TestOwnSourceGivesWay: a source at its limit gets a slot by one of its own connections, whether
// that rests already or does so later, and no other source is asked.
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

// TestMoreThanHalfHasToWait: a source that has half of the slots gets what rests after a while, and
// then its own connections that are being answered, not another's.
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

// TestAskToYield: the connections of a worker whose room is needed are asked once, if all rest or it is
// urgent. Those that stay for a while are not about to end, and one that rests on is stubborn.
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
		{"one rests still", 7 * time.Second, true, false, true, nil},
	} {
		if coming, stubborn := f.AskToYield(noon.Add(tt.after), f.list, tt.busy); coming != tt.coming || stubborn != tt.stubborn {
			t.Errorf("%s: coming %t, stubborn %t", tt.what, coming, stubborn)
		}
		f.next(t, tt.asked...)
	}
}
