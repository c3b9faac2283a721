package dispatch

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// resolved returns a Names whose resolver answers with f. If f returns nil, the
// resolver does not answer.
func resolved(t *testing.T, f func(*work.Lookup) *work.LookupResult) *Names {
	var n *Names
	n = newNamesBy(t, func(m ipc.Message, _ ...int) error {
		if a := f(m.(*work.Lookup)); a != nil {
			go n.Handle(a)
		}
		return nil
	})
	return n
}

// answer is the answer to a question.
type answer struct{ named, sure bool }

// TestNamed checks that a uid is not looked up again while its answer is
// cached, and that a failed look-up is not cached.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		questions := 0
		n := resolved(t, func(q *work.Lookup) *work.LookupResult {
			questions++
			return map[uint32]*work.LookupResult{1: {ID: q.ID, Available: true, Name: "alice"}, 2: {ID: q.ID, Available: true}, 3: {ID: q.ID}}[q.Number]
		})
		for _, tt := range []struct {
			uid    uint32
			want   answer
			cached bool
		}{{1, answer{true, true}, true}, {2, answer{false, true}, true}, {3, answer{}, false}, {4, answer{}, false}} { // uid 4 is not answered
			var got []answer
			for range 2 {
				n.sync(func() { n.lookup(tt.uid, func(named, sure bool) { got = append(got, answer{named, sure}) }) })
			}
			before := questions
			synctest.Wait()
			if tt.uid == 4 && len(got) != 0 {
				t.Errorf("uid 4: %v", got)
			}
			n.awaitAll()
			if len(got) != 2 || got[0] != tt.want || got[1] != tt.want || questions != before {
				t.Errorf("uid %d: %v after %d questions, want %v after %d", tt.uid, got, questions, tt.want, before)
			}
			n.sync(func() {
				if named, ok := n.cached(tt.uid); ok != tt.cached || named != tt.want.named {
					t.Errorf("uid %d is kept: %t, %t", tt.uid, named, ok)
				}
			})
		}
	})
}

// awaitAll waits until no question is pending.
func (n *Names) awaitAll() {
	var wg sync.WaitGroup
	n.sync(func() {
		for _, i := range n.byID {
			wg.Add(1)
			i.callbacks = append(i.callbacks, func(bool, bool) { wg.Done() })
		}
	})
	wg.Wait()
}

// TestNamedWithoutResolver checks that callbacks get sure = false if there is
// no resolver, or if the resolver exits before it answers.
func TestNamedWithoutResolver(t *testing.T) {
	var got []answer
	callback := func(named, sure bool) { got = append(got, answer{named, sure}) }
	n := newNamesBy(t, func(ipc.Message, ...int) error { return errors.New("none") })
	n.sync(func() { n.lookup(1, callback) })
	n = resolved(t, func(*work.Lookup) *work.LookupResult { return nil })
	n.sync(func() { n.lookup(2, callback); n.lookup(3, callback); n.Fail() })
	if len(got) != 3 || got[0] != (answer{}) || got[1] != (answer{}) || got[2] != (answer{}) {
		t.Errorf("got %v", got)
	}
	n.Handle(&work.LookupResult{ID: 1, Available: true, Name: "late"})
	n.sync(func() {
		if _, ok := n.cached(2); ok {
			t.Error("an answer without a question is believed")
		}
	})
}

// newNamesBy returns a Names that calls send to send its questions.
func newNamesBy(t *testing.T, send func(ipc.Message, ...int) error) *Names {
	l := pool.NewLoop()
	go l.Run()
	t.Cleanup(l.Stop)
	n := NewNames(l)
	n.Send = send
	return n
}

// sync calls f in the loop, and waits until f returns.
func (n *Names) sync(f func()) { _ = n.Call(func() error { f(); return nil }) }
