package admission

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"schedrestd/internal/penalty"
	"schedrestd/ipc/work"
)

// TestRandom checks the invariants of a State while the connections of a few
// sources change in random order.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := &run{r: rand.New(rand.NewPCG(seed, 1)), waiting: map[*Conn]bool{}}
		config := Config{Slots: 1 + r.r.IntN(12), Waiting: 1 + r.r.IntN(20), Watching: r.r.IntN(6), WaitLimit: time.Second, Penalties: rules}
		if r.r.IntN(2) == 0 {
			config.PerSource = 1 + r.r.IntN(config.Slots)
		}
		r.State, r.now = New(config), noon
		for step := range 500 {
			r.step()
			r.apply()
			if r.check(config); r.fault != "" {
				t.Fatalf("seed %d, step %d: %s; %+v", seed, step, r.fault, r.Stats())
			}
		}
		r.Close()
		r.apply()
		for len(r.held) > 0 {
			r.leave(0)
		}
		if got := r.Stats(); got.Held != 0 || got.Waiting != 0 || got.Sources != 0 || len(r.waiting) != 0 ||
			r.queue.Free() != config.Slots || r.excused != 0 || r.watchers.Free() != config.Watching || r.watchers.Keys() != 0 || r.resting.Len() != 0 || r.busy.Len() != 0 || r.askedCount != 0 {
			t.Fatalf("seed %d: at the end %+v", seed, got)
		}
	}
}

// A run contains the test's own records of the connections of a State.
type run struct {
	*State
	r       *rand.Rand
	now     time.Time
	held    []*Conn
	waiting map[*Conn]bool
	fault   string

	withSlot int  // at the last check
	restored bool // slots were restored since then
}

func (r *run) step() {
	switch n := r.r.IntN(20); {
	case n < 6:
		uid := r.r.Uint32N(4)
		c := &Conn{Source: User(uid), Exempt: uid < 2, Proxy: uid < 1}
		r.waiting[c] = true // until there is a decision on the connection
		r.Arrived(r.now, c)
	case n < 7:
		r.now = r.now.Add(TickInterval)
		r.Tick(r.now)
	case len(r.held) == 0:
	case n < 12:
		r.leave(r.r.IntN(len(r.held)))
	case n < 13:
		r.Unresponsive(r.held[:r.r.IntN(len(r.held))])
	case n < 14 && r.r.IntN(2) == 0:
		r.Responsive(r.held[:r.r.IntN(len(r.held))])
		r.restored = true
	case n < 14:
		r.ReclaimAll(r.now, r.held[:r.r.IntN(len(r.held))], r.r.IntN(2) == 0)
	default:
		c := r.held[r.r.IntN(len(r.held))]
		switch {
		case c.stage == 0:
			r.Taken(c)
		case n == 14:
			r.Offence(r.now, c, penalty.Kind(r.r.IntN(int(penalty.Kinds))), r.r.Uint64N(9))
		default:
			if r.Progress(c, work.Stage(1+r.r.IntN(5))) && c.holds == watchPlace && !needsNoSlot(c.stage) && c.stage != work.Answering && !c.asked {
				r.fault = "a connection at rest without a slot was not reclaimed"
			}
		}
	}
}

func (r *run) leave(i int) {
	c := r.held[i]
	r.held = slices.Delete(r.held, i, i+1)
	r.Release(c)
	r.apply()
}

func (r *run) apply() {
	for _, d := range r.Decisions() {
		switch d.Action {
		case Admit, Refuse:
			if !r.waiting[d.Conn] {
				r.fault = "decided about a connection that does not wait"
			}
			delete(r.waiting, d.Conn)
			if d.Action == Admit {
				r.held = append(r.held, d.Conn)
			}
		default:
			if (d.Action == Reclaim || d.Action == Pause) && (!slices.Contains(r.held, d.Conn) || d.Conn.stage == 0) {
				r.fault = "asked a connection that no worker has"
			}
		}
	}
}

func (r *run) check(c Config) {
	withSlot, watching := 0, 0
	bySource, watchers := map[Source]int{}, map[Source]int{}
	for _, conn := range r.held {
		if conn.holds == watchPlace {
			watching++
			watchers[conn.Source]++
			continue
		}
		bySource[conn.Source]++
		if conn.holds != lentSlot {
			withSlot++
		}
	}
	got := r.Stats()
	switch {
	case withSlot > c.Slots && withSlot > r.withSlot && !r.restored:
		r.fault = "more connections than slots"
	case watching > c.Watching || watching != got.Watching:
		r.fault = "the number of connections that watch is wrong"
	case len(r.held) > 2*(c.Slots+c.Watching) || r.excused > c.Slots:
		r.fault = "more excused connections than slots"
	case got.Held != len(r.held)-watching || got.Waiting != len(r.waiting) || r.queue.Free() != c.Slots-withSlot:
		r.fault = "the counts are wrong"
	case got.Waiting > c.Waiting:
		r.fault = "more wait than there is room"
	case r.askedCount < 0:
		r.fault = "less than none was asked"
	}
	r.withSlot, r.restored = withSlot, false
	for conn := range r.waiting {
		limited := c.PerSource > 0 && !conn.Proxy
		if r.queue.Free() > 0 && (!limited || bySource[conn.Source] < c.PerSource) {
			r.fault = "a connection waits while a slot is free"
		}
	}
	for source, n := range watchers {
		if source != User(0) && n > (c.Watching+1)/2 {
			r.fault = "too many connections of a source watch"
		}
	}
	for source, n := range bySource {
		if c.PerSource > 0 && source != User(0) && n > c.PerSource {
			r.fault = "a source has more than its limit"
		}
	}
}
