package semaphore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestQueue checks in which order waiting items get places. A script lists the
// keys of the items that are added; "-a" takes back a place of key a. Key x may
// have no place. The order is the same by a function and by the row. Each item that gets a place is added to the result.
func TestQueue(t *testing.T) {
	type test struct{ name, script, want string }
	for _, tt := range slices.Repeat([]test{
		{"while places are free", "a a b", "a1 a2 b1"},
		{"the fewest places first", "a a a a a b b -a -a", "a1 a2 a3 b1 a4"},
		{"keys with the same number take turns", "a b c a a a b b b -a -b -a -b -c", "a1 b1 c1 a2 b2 a3 b3 a4"},
		{"not more than there are", "a a a a -a -a -a", "a1 a2 a3 a4"},
		{"one key gets no place", "x x a x", "a1"},
	}, 20) { // so that no order of a map is right by chance
		rank := func(key string, held int, _ string) int {
			if key == "x" {
				return -1
			}
			return held
		}
		for order, q := range map[string]*Queue[string, string]{"a function": NewQueue(Row{Total: 3}, rank), "the row": NewQueue[string, string](Row{Total: 3}, nil)} {
			if order == "the row" && strings.Contains(tt.script, "x") {
				continue
			}
			var got []string
			number := map[string]int{}
			for word := range strings.FieldsSeq(tt.script) {
				if key, ok := strings.CutPrefix(word, "-"); ok {
					q.Hold(key, -1)
				} else {
					number[word]++
					q.Push(word, fmt.Sprint(word, number[word]))
				}
				for item, ok := q.Next(); ok; item, ok = q.Next() {
					got = append(got, item)
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%s, by %s: %s, want %s", tt.name, order, got, tt.want)
			}
		}
	}
}

// TestQueueIsEmptied checks that a Queue forgets keys that hold no place and
// have no waiting item.
func TestQueueIsEmptied(t *testing.T) {
	q := NewQueue(Row{Total: 1}, func(_ string, held int, _ string) int { return held })
	for _, item := range []string{"a1", "a2", "b1"} {
		q.Push(item[:1], item)
	}
	q.Next()
	if q.Len() != 2 || q.Keys() != 2 || q.Waiting("a") != 1 || q.Last("a") != "a2" || q.Held("a") != 1 {
		t.Errorf("%+v", q)
	}
	for item := range q.Items {
		if !q.Remove(item[:1], item) || q.Remove(item[:1], item) {
			t.Errorf("%s is not removed once", item)
		}
	}
	q.Hold("a", -1)
	if q.Len() != 0 || q.Keys() != 0 || len(q.waiting) != 0 || q.Free() != 1 {
		t.Errorf("left behind: %+v", q)
	}
}

// TestMost checks which item is removed when places are needed. A step is the
// key of a new item and its number of places.
func TestMost(t *testing.T) {
	for _, tt := range []struct{ name, steps, want string }{
		{"none", "", ""},
		{"the first of one key", "a1 10, a2 20, a3 30", "a1 a2 a3"},
		{"of the key that holds most", "a1 10, b1 10, b2 10, b3 10, c1 25", "b1 c1 b2 a1 b3"},
		{"of those that hold as much, the key that has had items longest", "a1 10, b1 10", "a1 b1"},
	} {
		q := NewQueue[string, string](Row{Total: 100}, nil)
		size := map[string]int{}
		for step := range strings.SplitSeq(tt.steps, ", ") {
			var item string
			var n int
			if fmt.Sscan(step, &item, &n); n > 0 {
				size[item] = n
				q.Hold(item[:1], n)
				q.Push(item[:1], item)
			}
		}
		var got []string
		for item, ok := q.Most(); ok; item, ok = q.Most() {
			got = append(got, item)
			q.Remove(item[:1], item)
			q.Hold(item[:1], -size[item])
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
