package privsep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// playShares has connections come and go, a word each, and returns what became of them.
// "a" is a connection of source a that comes, "-a" the oldest one of it that ends, and
// "!a" the oldest one whose worker is silent. A capital is a source that is exempt.
func playShares(s *shares, script string) (happened []string) {
	inside := map[string][]*connection{}
	admit := func() {
		for c := s.pick(); c != nil; c = s.pick() {
			happened = append(happened, "+"+c.Listener)
			inside[c.Listener] = append(inside[c.Listener], c)
		}
	}
	for _, word := range strings.Fields(script) {
		who := strings.Trim(word, "-!")
		switch {
		case word[0] == '-':
			c := inside[who][0]
			inside[who] = inside[who][1:]
			s.leave(c)
			admit()
		case word[0] == '!':
			i := slices.IndexFunc(inside[who], func(c *connection) bool { return !c.excused })
			s.excuse(inside[who][i])
			admit()
		default:
			c := &connection{source: source{uid: uint32(who[0]), local: true}, exempt: who[0] < 'a'}
			c.Listener = who
			what, evicted := s.enter(c)
			if evicted != nil {
				happened = append(happened, "evicted "+evicted.Listener)
			}
			switch what {
			case entered:
				happened = append(happened, "+"+who)
				inside[who] = append(inside[who], c)
			case refused:
				happened = append(happened, "refused "+who)
			}
		}
	}
	owed, all := s.demand()
	return append(happened, fmt.Sprintf("owed %d of %d", owed, all))
}

// TestShares: a source has all slots while it is alone; when others wait, the one that
// has the fewest is next.
func TestShares(t *testing.T) {
	for _, tt := range []struct {
		name   string
		shares shares
		script string
		want   string
	}{
		{"alone", newShares(4, 0, 8), "a a a a", "+a +a +a +a owed 0 of 0"},
		{"alone, and wants more", newShares(4, 0, 8), "a a a a a -a", "+a +a +a +a +a owed 0 of 0"},
		{"more than its share is owed to no source", newShares(4, 0, 8), "a a a a a", "+a +a +a +a owed 0 of 1"},
		{"another one is owed its share", newShares(4, 0, 8), "a a a a b b b", "+a +a +a +a owed 2 of 3"},
		{"another one is next", newShares(4, 0, 8), "a a a a a a b -a -a", "+a +a +a +a +b +a owed 0 of 1"},
		{"the fewest first, then the first that came", newShares(4, 0, 8), "a a a a b c b -a -a -a", "+a +a +a +a +b +c +b owed 0 of 0"},
		{"an end of another source's makes room, too", newShares(4, 0, 8), "a a b b a -b", "+a +a +b +b +a owed 0 of 0"},
		{"a limit holds while slots are free", newShares(4, 2, 8), "a a a b", "+a +a +b owed 0 of 0"},
		{"a limit counts its own alone", newShares(4, 2, 8), "a a a b -b -a", "+a +a +b +a owed 0 of 0"},
		{"exempt: has no share", newShares(4, 0, 8), "A A A A A A", "+A +A +A +A owed 2 of 2"},
		{"exempt: waits as if it had none", newShares(4, 0, 8), "A A A A A b -A -A", "+A +A +A +A +A +b owed 0 of 0"},
		{"exempt: held to a limit", newShares(4, 2, 8), "A A A", "+A +A owed 0 of 0"},
		{"a silent worker's slots are others'", newShares(4, 2, 8), "a a b b c !a", "+a +a +b +b +c owed 0 of 0"},
		{"and count against its source", newShares(4, 2, 8), "a a b b !a !a a c", "+a +a +b +b +c owed 0 of 0"},
		{"and free none when they end", newShares(2, 1, 8), "a b c !a -a d", "+a +b +c owed 1 of 1"},
		{"and are no more than there are slots", newShares(2, 1, 8), "a b !a !b c d !c e", "+a +b +c +d owed 1 of 1"},
		{"one source leaves room to wait", newShares(1, 0, 4), "a a a a b b b", "+a refused a refused b owed 1 of 4"},
		{"a full room has a place for another one", newShares(1, 0, 4), "a a a b b c c c", "+a evicted b refused c refused c owed 2 of 4"},
		{"and none when all have the same", newShares(1, 0, 2), "a b c d", "+a refused d owed 2 of 2"},
	} {
		s := tt.shares
		if got := strings.Join(playShares(&s, tt.script), " "); got != tt.want {
			t.Errorf("%s: %s", tt.name, cmp.Diff(tt.want, got))
		}
	}
}

// TestSlotsAreCounted: a slot that is freed twice is a fault of ours, and ends the parent.
func TestSlotsAreCounted(t *testing.T) {
	s := newShares(1, 0, 1)
	c := new(connection)
	_, _ = s.enter(c)
	s.leave(c)
	defer func() {
		if recover() == nil {
			t.Error("a slot was freed twice")
		}
	}()
	s.leave(c)
}
