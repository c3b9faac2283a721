package semaphore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestQueue checks in which order waiting items get places. A script lists the
// keys of the items that are added; "-a" takes back a place of key a. Key x may
// have no place. Each item that gets a place is added to the result.
func TestQueue(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"while places are free", "a a b", "a1 a2 b1"},
		{"the fewest places first", "a a a a a b b -a -a", "a1 a2 a3 b1 a4"},
		{"keys with the same number take turns", "a b c a a a b b b -a -b -a -b -c", "a1 b1 c1 a2 b2 a3 b3 a4"},
		{"not more than there are", "a a a a -a -a -a", "a1 a2 a3 a4"},
		{"one key gets no place", "x x a x", "a1"},
	} {
		q := NewQueue(3, func(key string, held int, _ string) int {
			if key == "x" {
				return -1
			}
			return held
		})
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
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestQueueIsEmptied checks that a Queue forgets keys that hold no place and
// have no waiting item.
func TestQueueIsEmptied(t *testing.T) {
	q := NewQueue(1, func(_ string, held int, _ string) int { return held })
	for _, item := range []string{"a1", "a2", "b1"} {
		q.Push(item[:1], item)
	}
	q.Next()
	if q.Len() != 2 || q.Keys() != 2 || !slices.Equal(q.Waiting("a"), []string{"a2"}) || q.Held("a") != 1 {
		t.Errorf("%+v", q)
	}
	for key, items := range q.All {
		for _, item := range slices.Clone(items) {
			q.Remove(key, item)
		}
	}
	q.Hold("a", -1)
	if q.Len() != 0 || q.Keys() != 0 || len(q.waiting) != 0 || q.Free() != 1 {
		t.Errorf("left behind: %+v", q)
	}
}
