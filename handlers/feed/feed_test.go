package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/origin"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// item is a record of a simulated controller.
type item struct {
	key   string
	group int
	shown int // what the views show
	other int // what no view shows
}

// controller is a simulated controller. It remembers all its states.
type controller struct {
	mu    sync.Mutex
	items map[string]item
	reads int
	fail  error // of the next reads, after half of the records
}

func (c *controller) change(f func(map[string]item)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.items)
}

func (c *controller) state() map[string]item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.items)
}

// source returns the list as a Source, which asks the controller each time.
func (c *controller) source(name string, whole bool, visible func(item) bool) Source[item] {
	return Source[item]{Name: name, Whole: whole, Read: func(ctx context.Context, q model.Query, each func(*item) error) (model.ListTimes, error) {
		c.mu.Lock()
		c.reads++
		err := c.fail
		list := slices.SortedFunc(maps.Values(c.items), func(a, b item) int { return strings.Compare(a.key, b.key) })
		c.mu.Unlock()
		list = slices.DeleteFunc(list, func(i item) bool { return !visible(i) })
		if err != nil {
			list = list[:len(list)/2]
		}
		origin.From(ctx).Add(0, func() ([sha256.Size]byte, bool) { return sha256.Sum256(fmt.Append(nil, list)), err == nil })
		for i := range list {
			*q.Digest = uint64(list[i].group)<<32 | uint64(list[i].shown)<<16 | uint64(list[i].other)
			if err := each(&list[i]); err != nil {
				return model.ListTimes{}, err
			}
		}
		return model.ListTimes{}, err
	}}
}

func everything(item) bool { return true }

func newSet() *Set[item] {
	return &Set[item]{Key: func(i *item) string { return i.key }, Interval: 2 * time.Millisecond, Shares: NewShares()}
}

func ownerNamed(user string) Owner { return Owner{"token of " + user, user} }

// holdTurns waits until no feed makes a pass, and keeps all feeds from making one
// until the function proceed is called.
func holdTurns(t *testing.T, set *Set[item]) (proceed func()) {
	t.Helper()
	var places []*semaphore.Place[string]
	for n := range limit.Passes.Total {
		p, err := set.Shares.turns.Acquire(t.Context(), fmt.Sprint("test ", n))
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, p)
	}
	return func() {
		for _, p := range places {
			p.Release()
		}
	}
}

// interest shows the items of a group; -1 stands for all.
func interest(group int) Interest[item] {
	return Interest[item]{
		Key:     fmt.Sprint(group),
		Match:   func(i *item) bool { return group < 0 || i.group == group },
		Render:  func(to []byte, i *item) []byte { return fmt.Appendf(to, "%s=%d", i.key, i.shown) },
		Gone:    func(key string) []byte { return []byte(key) },
		Reserve: newBudget(1 << 40).reserve,
	}
}

// view returns what an interest shows of a state.
func view(state map[string]item, i Interest[item]) map[string]string {
	seen := map[string]string{}
	for key, one := range state {
		if i.Match(&one) {
			seen[key] = string(i.Render(nil, &one))
		}
	}
	return seen
}

// follower is a client that applies what a stream sends.
type follower struct {
	mu    sync.Mutex // guards seen
	seen  map[string]string
	state string // the id of the last complete state
}

// apply applies a snapshot or changes. It returns an error for a change that
// contradicts what the client knows.
func (f *follower) apply(s *Snapshot, batches []Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil {
		f.seen = map[string]string{}
		err := s.Pieces(func(records []byte, more bool) error {
			for record := range bytes.SplitSeq(records, []byte(",")) {
				if key, _, ok := strings.Cut(string(record), "="); ok {
					f.seen[key] = string(record)
				}
			}
			return nil
		})
		f.state = s.State()
		return err
	}
	for _, b := range batches {
		for _, e := range b.Events {
			key, _, _ := strings.Cut(string(e.Data), "=")
			old, known := f.seen[key]
			switch {
			case e.Kind == Added && known, e.Kind != Added && !known, e.Kind == Changed && old == string(e.Data):
				return fmt.Errorf("event %s %q, but the client has %q", e.Kind, e.Data, old)
			case e.Kind == Removed:
				delete(f.seen, key)
			default:
				f.seen[key] = string(e.Data)
			}
		}
		f.state = b.State
	}
	return nil
}

func (f *follower) sees() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.seen)
}

// TestStreams changes records at random while clients follow several views,
// leave, and come back with the id of their last event. No change may be missed,
// doubled, or contradict an earlier one, and in the end each client must have what
// the controller has.
func TestStreams(t *testing.T) {
	t.Parallel()
	c := &controller{items: map[string]item{}}
	set := newSet()
	ctx, cancel := context.WithCancel(t.Context())
	var clients, changer sync.WaitGroup
	followers := make([]*follower, 24)
	for n := range followers {
		followers[n] = new(follower)
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for ctx.Err() == nil {
				i := interest(n%4 - 1)
				v, err := set.Join(ctx, ownerNamed("alice"), i, c.source("all", true, everything))
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				stream, _ := v.Follow(followers[n].state)
				for left := random.IntN(30); left > 0 || n < 8; left-- {
					s, batches, err := stream.Next(ctx)
					if err != nil {
						break
					}
					if err := followers[n].apply(s, batches); err != nil {
						t.Error(err)
					}
					if s != nil {
						s.Release()
					}
				}
				stream.Close()
				v.Leave()
			}
		})
	}
	random := rand.New(rand.NewPCG(2, 3))
	changer.Go(func() {
		for range 400 {
			c.change(func(items map[string]item) {
				for range random.IntN(4) {
					key := fmt.Sprint("k", random.IntN(60))
					one, exists := items[key]
					switch {
					case !exists:
						items[key] = item{key: key, group: random.IntN(3)}
					case random.IntN(5) == 0:
						delete(items, key)
					default:
						one.shown += random.IntN(2)
						one.other += random.IntN(2)
						if random.IntN(8) == 0 {
							one.group = random.IntN(3)
						}
						items[key] = one
					}
				}
				c.fail = nil
				if random.IntN(10) == 0 {
					c.fail = errs.New(errs.Unavailable, "the controller is restarting")
				}
			})
			time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
		}
		c.change(func(map[string]item) { c.fail = nil })
	})
	changer.Wait()
	final := c.state()
	for n, f := range followers[:8] { // these never leave
		want := view(final, interest(n%4-1))
		for deadline := time.Now().Add(time.Minute); !maps.Equal(f.sees(), want); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("client %d has %v, want %v", n, f.sees(), want)
				break
			}
		}
	}
	cancel()
	clients.Wait()
}

// TestWait checks that a client that waits for a change of its view is woken by
// every such change, that data that is requested after the time that Wait returns
// contains it, and that nothing else wakes it.
func TestWait(t *testing.T) {
	t.Parallel()
	c := &controller{items: map[string]item{"a": {key: "a"}, "b": {key: "b", group: 1}}}
	set := newSet()
	v, err := set.Join(t.Context(), ownerNamed("alice"), interest(1), c.source("all", true, everything))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Leave()
	at := v.Now()
	for _, tt := range []struct {
		name   string
		change func(map[string]item)
		wakes  bool
	}{
		{"another group", func(items map[string]item) { items["a"] = item{key: "a", shown: 7} }, false},
		{"what is not shown", func(items map[string]item) { items["b"] = item{key: "b", group: 1, other: 3} }, false},
		{"what is shown", func(items map[string]item) { items["b"] = item{key: "b", group: 1, shown: 3} }, true},
		{"a record enters the view", func(items map[string]item) { items["a"] = item{key: "a", group: 1} }, true},
		{"a record leaves the view", func(items map[string]item) { items["a"] = item{key: "a"} }, true},
		{"a record is deleted", func(items map[string]item) { delete(items, "b") }, true},
	} {
		changed := time.Now()
		c.change(tt.change)
		limit := 100 * time.Millisecond
		if tt.wakes {
			limit = 30 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		now, err := v.Wait(ctx, at)
		cancel()
		if woken := err == nil; woken != tt.wakes {
			t.Errorf("%s: woken %t, want %t (%v)", tt.name, woken, tt.wakes, err)
		}
		if tt.wakes && (now.Found.Before(changed) || now.Asked.After(now.Found)) {
			t.Errorf("%s: asked %v, found %v, changed %v", tt.name, now.Asked, now.Found, changed)
		}
		at = now
	}
}

// TestOwners checks that clients with different credentials never share a feed,
// and that the narrow sources of one credential become one wide source when they
// are many.
func TestOwners(t *testing.T) {
	t.Parallel()
	c := &controller{items: map[string]item{"a": {key: "a"}, "b": {key: "b", group: 1}}}
	set := newSet()
	all := c.source("all", true, everything)
	var views []*View[item]
	join := func(owner string, i Interest[item], sources ...Source[item]) *View[item] {
		v, err := set.Join(t.Context(), ownerNamed(owner), i, sources...)
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
		return v
	}
	if join("alice", interest(-1), all).feed == join("bob", interest(-1), all).feed {
		t.Error("two owners share a feed")
	}
	if v := join("alice", interest(1), c.source("group 1", false, everything), all); v.feed.source.Name != "all" {
		t.Errorf("a narrow source is read beside a wide one: %s", v.feed.source.Name)
	}
	for n := range 2 * maxNarrow {
		v := join("carol", interest(n), c.source(fmt.Sprint("group ", n), false, everything), all)
		if got, want := v.feed.source.Whole, n >= maxNarrow; got != want {
			t.Errorf("view %d reads the whole list: %t, want %t", n, got, want)
		}
	}
	for _, v := range views {
		v.Leave()
	}
}

// TestRefused checks that a refused credential ends a view, and that the error of
// a first pass reaches the client.
func TestRefused(t *testing.T) {
	t.Parallel()
	refused := errs.New(errs.Unauthenticated, "refused")
	c := &controller{items: map[string]item{"a": {key: "a"}}}
	set := newSet()
	v, err := set.Join(t.Context(), ownerNamed("alice"), interest(-1), c.source("all", true, everything))
	if err != nil {
		t.Fatal(err)
	}
	c.change(func(map[string]item) { c.fail = refused })
	if _, err := v.Wait(t.Context(), v.Now()); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("error %v, want that of the controller", err)
	}
	v.Leave()
	if _, err := set.Join(t.Context(), ownerNamed("alice"), interest(-1), c.source("all", true, everything)); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("error %v of a first pass, want that of the controller", err)
	}
}

// A budget is a limit on memory, in bytes.
type budget struct{ *semaphore.Semaphore[string] }

func newBudget(n int) budget { return budget{semaphore.New[string](semaphore.Row{Total: n})} }

func (b budget) reserve() Reservation { return b.Empty("alice") }

// used returns the number of reserved bytes.
func (b budget) used() int {
	n, _ := b.Counts()
	return n
}

// TestMemory checks that a view takes its memory from the budget, gives all of
// it back, and ends if there is none.
func TestMemory(t *testing.T) {
	t.Parallel()
	c := &controller{items: map[string]item{}}
	for n := range 1000 {
		key := fmt.Sprint("k", n)
		c.items[key] = item{key: key}
	}
	for _, tt := range []struct {
		name string
		free int
		kind errs.Kind
	}{
		{"enough", 2 << 20, 0},
		{"not for the view", 100 << 10, errs.Unavailable},
	} {
		b := newBudget(tt.free)
		set := newSet()
		i := interest(-1)
		i.Reserve = b.reserve
		v, err := set.Join(t.Context(), ownerNamed("alice"), i, c.source("all", true, everything))
		if errs.KindOf(err) != tt.kind {
			t.Errorf("%s: error %v, want the kind %v", tt.name, err, tt.kind)
		}
		if err == nil {
			stream, _ := v.Follow("")
			s, _, err := stream.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if b.used() < 768*recordSize+1000*entrySize+s.memory.Size() {
				t.Errorf("%s: %d bytes are reserved", tt.name, b.used())
			}
			stream.Close()
			v.Leave()
			proceed := holdTurns(t, set) // between two passes, where the feed ends its views
			v.feed.set.mu.Lock()
			v.endLocked(errAbandoned)
			v.feed.set.mu.Unlock()
			proceed()
			s.Release()
		}
		for deadline := time.Now().Add(time.Minute); b.used() != 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // until the feed ends
		}
		if b.used() != 0 {
			t.Errorf("%s: %d bytes were not given back", tt.name, b.used())
		}
	}
}

// TestRefresh checks that a refreshed view has the state that the view of another
// worker had before, so that a client can go on.
func TestRefresh(t *testing.T) {
	c := &controller{items: map[string]item{"a": {key: "a"}}}
	set := newSet()
	set.Interval = 20 * time.Millisecond
	v, err := set.Join(t.Context(), ownerNamed("owner"), interest(-1), c.source("all", true, everything))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Leave()
	elsewhere, err := newSet().Join(t.Context(), ownerNamed("owner"), interest(-1), c.source("all", true, everything))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Leave()
	for n := 1; n <= 50; n++ {
		at := elsewhere.Now()
		c.change(func(items map[string]item) { items["a"] = item{key: "a", shown: n} })
		if _, err := elsewhere.Wait(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		elsewhere.feed.set.mu.Lock()
		known := elsewhere.current.String()
		elsewhere.feed.set.mu.Unlock()
		if err := v.Refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		s, resumed := v.Follow(known)
		if s.Close(); !resumed {
			t.Fatalf("after change %d the view does not have the state that the client knows", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Refresh(ctx, time.Now().Add(time.Hour)); err != context.Canceled {
		t.Errorf("a client that has left: %v", err)
	}
	c.mu.Lock()
	c.fail = errs.New(errs.Unauthenticated, "expired")
	c.mu.Unlock()
	if err := v.Refresh(t.Context(), time.Now().Add(time.Hour)); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("a view that has failed: %v", err)
	}
}

// TestJoinExisting checks that a view is joined only while others use it, and only
// by a client with the same credential, interest and source.
func TestJoinExisting(t *testing.T) {
	t.Parallel()
	c := &controller{items: map[string]item{"a": {key: "a"}}}
	set := newSet()
	all, other := c.source("all", true, everything), c.source("other", true, everything)
	v, err := set.Join(t.Context(), ownerNamed("alice"), interest(1), all)
	if err != nil {
		t.Fatal(err)
	}
	joins := func(owner, key string, source *Source[item], want *View[item]) {
		t.Helper()
		got := set.JoinExisting(ownerNamed(owner), key, source)
		if got != want {
			t.Errorf("%s joins %q in %s: got %p, want %p", owner, key, source.Name, got, want)
		}
		if got != nil {
			got.Leave()
		}
	}
	joins("alice", interest(1).Key, &all, v)
	joins("alice", interest(2).Key, &all, nil)
	joins("alice", interest(1).Key, &other, nil)
	joins("bob", interest(1).Key, &all, nil)
	v.Leave()
	joins("alice", interest(1).Key, &all, nil)
}
