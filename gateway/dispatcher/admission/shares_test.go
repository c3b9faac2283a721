package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/penalty"
	"schedrestd/ipc/work"
)

var noon = time.Unix(1_700_000_000, 0)

// withSlots returns a State with the given limits: on all slots, on the slots
// of one source, and on the number of waiting connections.
func withSlots(slots, perSource, waiting int) *State {
	return New(Config{Slots: slots, PerSource: perSource, Waiting: waiting, Watching: 4, WaitLimit: 10 * time.Second})
}

// play reports events to s and returns the decisions. Each word of script is an
// event: "a" is a new connection of source a, "-a" closes the oldest connection
// of source a, "!a" reports a connection of source a as silent, "~a" makes one
// watch, "*a" makes one call, "^a" makes one of these go on, and "_a" makes one
// idle. Sources with a capital letter are exempt.
func play(s *State, script string) (events []string) {
	admitted := map[string][]*Conn{}
	follow := func() {
		for _, d := range s.Decisions() {
			name := d.Conn.Ref.(string)
			switch d.Action {
			case Admit:
				events = append(events, "+"+name)
				admitted[name] = append(admitted[name], d.Conn)
			case Refuse:
				events = append(events, "refused "+name)
			}
		}
	}
	for _, word := range strings.Fields(script) {
		name := strings.Trim(word, "-!~*^_")
		switch word[0] {
		case '-':
			c := admitted[name][0]
			admitted[name] = admitted[name][1:]
			s.Release(c)
		case '!':
			i := slices.IndexFunc(admitted[name], func(c *Conn) bool { return c.holds != lentSlot })
			s.Unresponsive(admitted[name][i : i+1])
		case '~', '*', '^', '_':
			stage := map[byte]work.Stage{'~': work.Watching, '*': work.Calling, '^': work.Answering, '_': work.Idle}[word[0]]
			i := slices.IndexFunc(admitted[name], func(c *Conn) bool { return c.stage != stage })
			s.Progress(admitted[name][i], stage)
		default:
			s.Arrived(noon, &Conn{Source: User(uint32(name[0])), Exempt: name[0] < 'a', Ref: name})
		}
		follow()
	}
	owed, total := s.demand()
	return append(events, fmt.Sprintf("owed %d of %d", owed, total))
}

// TestShares checks that a source can have all slots while no other source
// waits. If other sources wait, a free slot must go to the waiting source with
// the fewest slots.
func TestShares(t *testing.T) {
	for _, tt := range []struct {
		name   string
		state  *State
		script string
		want   string
	}{
		{"alone", withSlots(4, 0, 8), "a a a a", "+a +a +a +a owed 0 of 0"},
		{"a source alone", withSlots(4, 0, 8), "a a a a a -a", "+a +a +a +a +a owed 0 of 0"},
		{"no slots above the share are owed", withSlots(4, 0, 8), "a a a a a", "+a +a +a +a owed 0 of 1"},
		{"another source is owed its share", withSlots(4, 0, 8), "a a a a b b b", "+a +a +a +a owed 2 of 3"},
		{"another source is next", withSlots(4, 0, 8), "a a a a a a b -a -a", "+a +a +a +a +b +a owed 0 of 1"},
		{"the fewest slots first, then the first arrival", withSlots(4, 0, 8), "a a a a b c b -a -a -a", "+a +a +a +a +b +c +b owed 0 of 0"},
		{"a slot of another source becomes free", withSlots(4, 0, 8), "a a b b a -b", "+a +a +b +b +a owed 0 of 0"},
		{"one that watches needs no slot", withSlots(2, 0, 8), "a a ~a b", "+a +a +b owed 0 of 0"},
		{"nor one of its source", withSlots(4, 2, 8), "a a ~a a", "+a +a +a owed 0 of 0"},
		{"it has a slot again when it goes on", withSlots(2, 0, 8), "a a ~a b ^a b", "+a +a +b owed 0 of 1"},
		{"and takes none from others", withSlots(1, 0, 8), "a ~a b ^a c -b", "+a +b +c owed 0 of 0"},
		{"many that go on and rest take none either", withSlots(2, 0, 8), "a ~a a ~a b b _a _a -b c", "+a +a +b +b +c owed 0 of 0"},
		{"it goes on above the limit", withSlots(4, 1, 8), "a ~a a ^a -a b b", "+a +a +b owed 0 of 0"},
		{"it leaves while it watches", withSlots(1, 0, 8), "a ~a b -a b -b", "+a +b +b owed 0 of 0"},
		{"one that calls needs no slot either", withSlots(1, 0, 8), "a *a b -b ^a c", "+a +b owed 1 of 1"},
		{"a third one of a source keeps its slot", withSlots(3, 0, 8), "a a a ~a ~a ~a b b b", "+a +a +a +b +b owed 0 of 1"},
		{"a limit holds while slots are free", withSlots(4, 2, 8), "a a a b", "+a +a +b owed 0 of 0"},
		{"a limit counts only the source's own slots", withSlots(4, 2, 8), "a a a b -b -a", "+a +a +b +a owed 0 of 0"},
		{"exempt: has no share", withSlots(4, 0, 8), "A A A A A A", "+A +A +A +A owed 2 of 2"},
		{"exempt: waits as if it had none", withSlots(4, 0, 8), "A A A A A b -A -A", "+A +A +A +A +A +b owed 0 of 0"},
		{"exempt: the limit applies", withSlots(4, 2, 8), "A A A", "+A +A owed 0 of 0"},
		{"the slots of a silent worker go to others", withSlots(4, 2, 8), "a a b b c !a", "+a +a +b +b +c owed 0 of 0"},
		{"silent: count against their source", withSlots(4, 2, 8), "a a b b !a !a a c", "+a +a +b +b +c owed 0 of 0"},
		{"silent: free no slot when they end", withSlots(2, 1, 8), "a b c !a -a d", "+a +b +c owed 1 of 1"},
		{"silent: not more than there are slots", withSlots(2, 1, 8), "a b !a !b c d !c e", "+a +b +c +d owed 1 of 1"},
		{"one source does not keep others out", withSlots(1, 0, 4), "a a a a b b b", "+a refused a refused b owed 1 of 4"},
		{"as many as may wait, and another source", withSlots(1, 0, 4), "a a a b b c c c", "+a refused b refused c refused c owed 2 of 4"},
		{"as many as may wait, one of each source", withSlots(1, 0, 2), "a b c d", "+a refused d owed 2 of 2"},
	} {
		if got := strings.Join(play(tt.state, tt.script), " "); got != tt.want {
			t.Errorf("%s: %s", tt.name, cmp.Diff(tt.want, got))
		}
	}
}

// TestSlotsAreCounted checks that freeing a slot twice, which is a bug, panics.
func TestSlotsAreCounted(t *testing.T) {
	s := withSlots(1, 0, 1)
	c := new(Conn)
	s.Arrived(noon, c)
	s.Release(c)
	defer func() {
		if recover() == nil {
			t.Error("a slot was freed twice")
		}
	}()
	s.Release(c)
}

// TestProxyHasNoLimit checks that PerSource does not apply to proxies.
func TestProxyHasNoLimit(t *testing.T) {
	s := withSlots(4, 2, 8)
	admitted := 0
	for range 4 {
		s.Arrived(noon, &Conn{Source: User(1), Exempt: true, Proxy: true})
		for _, d := range s.Decisions() {
			if d.Action == Admit {
				admitted++
			}
		}
	}
	if admitted != 4 {
		t.Errorf("a proxy has %d of 4 slots", admitted)
	}
}

// TestWaitingHasAnEnd checks how long a connection may wait. If it waits for
// connections of its own source, it must be refused after WaitLimit. If it
// waits for other sources, it must not be refused before Close. Close must
// refuse all waiting connections.
func TestWaitingHasAnEnd(t *testing.T) {
	s := withSlots(3, 2, 8)
	conns := map[string]*Conn{}
	for _, name := range []string{"a1", "a2", "a3", "b1", "c1"} {
		conns[name] = &Conn{Source: User(uint32(name[0])), Ref: name}
		s.Arrived(noon, conns[name])
	}
	s.Decisions()
	refused := func() (text []string) {
		for _, d := range s.Decisions() {
			if d.Action == Refuse {
				text = append(text, d.Conn.Ref.(string)+": "+d.Reason.String())
			}
		}
		return text
	}
	for _, tt := range []struct {
		step string
		do   func()
		want []string
	}{
		{"at first", func() { s.Tick(noon) }, nil},
		{"in time", func() { s.Tick(noon.Add(10 * time.Second)) }, nil},
		{"late", func() { s.Tick(noon.Add(10*time.Second + 1)) }, []string{"a3: " + TimedOut.String()}},
		{"later", func() { s.Tick(noon.Add(time.Hour)) }, nil},
		{"closed", func() { s.Close() }, []string{"c1: " + ShutDown.String()}},
		{"after that", func() { s.Arrived(noon, &Conn{Ref: "d1"}) }, []string{"d1: " + ShutDown.String()}},
	} {
		tt.do()
		if got := refused(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.step, got, tt.want)
		}
	}
	for _, name := range []string{"a1", "a2", "b1"} {
		s.Release(conns[name])
	}
	if got := s.Stats(); got.Held != 0 || got.Waiting != 0 || got.Sources != 0 {
		t.Errorf("at the end: %+v", got)
	}
}

// TestWaitForOwnSource checks that a connection is refused only after it has waited
// for WaitLimit for its own source, whichever source it has waited for before.
func TestWaitForOwnSource(t *testing.T) {
	for name, tt := range map[string]struct {
		arrive string // one connection of each source
		leave  string // after five seconds
		want   []string
	}{
		"others leave, and its own source takes the slots": {"aabbccc", "bb", []string{"c"}},
		"its own source leaves, and others wait":           {"aabbacd", "a", nil},
	} {
		s := withSlots(4, 2, 8)
		admitted := map[string][]*Conn{}
		var refused []string
		follow := func() {
			for _, d := range s.Decisions() {
				switch name := d.Conn.Ref.(string); d.Action {
				case Admit:
					admitted[name] = append(admitted[name], d.Conn)
				case Refuse:
					refused = append(refused, name)
				}
			}
		}
		ticks := func(from, to time.Duration) {
			for at := from; at < to; at += time.Second {
				s.Tick(noon.Add(at))
				follow()
			}
		}
		for _, source := range tt.arrive {
			s.Arrived(noon, &Conn{Source: User(uint32(source)), Ref: string(source)})
			follow()
		}
		ticks(0, 5*time.Second)
		for _, source := range tt.leave {
			c := admitted[string(source)][0]
			admitted[string(source)] = admitted[string(source)][1:]
			s.Release(c)
			follow()
		}
		ticks(5*time.Second, time.Minute)
		if !slices.Equal(refused, tt.want) {
			t.Errorf("%s: refused %q, want %q", name, refused, tt.want)
		}
	}
}

var rules = penalty.Rules{Cost: [penalty.Kinds]time.Duration{time.Second, time.Second, 15 * time.Second}, Threshold: 30 * time.Second}
