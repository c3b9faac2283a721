package feed

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// many returns a controller with n records.
func many(n int) *controller {
	c := &controller{items: map[string]item{}}
	for i := range n {
		key := fmt.Sprint("k", i)
		c.items[key] = item{key: key}
	}
	return c
}

// TestPanic checks that a panic while a list is read ends the views of its feed
// with an error, and nothing else.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := many(3)
	set := newSet()
	all := c.source("all", true, everything)
	var panics atomic.Bool
	i := interest(-1)
	i.Match = func(*item) bool {
		if panics.Load() {
			panic("a bug")
		}
		return true
	}
	v, err := set.Join(t.Context(), ownerNamed("alice"), i, all)
	if err != nil {
		t.Fatal(err)
	}
	panics.Store(true)
	c.change(func(items map[string]item) { items["k1"] = item{key: "k1", shown: 1} })
	if _, err := v.Wait(t.Context(), v.Now()); errs.KindOf(err) != errs.Internal {
		t.Errorf("error %v after a panic", err)
	}
	v.Leave()
	if _, err := set.Join(t.Context(), ownerNamed("alice"), i, all); errs.KindOf(err) != errs.Internal {
		t.Errorf("error %v of a first pass that panics", err)
	}
	panics.Store(false)
	v, err = set.Join(t.Context(), ownerNamed("alice"), i, all)
	if err != nil {
		t.Fatalf("after the panic: %v", err)
	}
	v.Leave()
}

// TestGoneBeforeFirstPass checks that a view costs no pass if its clients have
// left before its first one, and that clients that leave at once can't add more
// views than there is memory for.
func TestGoneBeforeFirstPass(t *testing.T) {
	t.Parallel()
	c := many(10)
	set := newSet()
	begun, goOn := make(chan struct{}), make(chan struct{})
	source := c.source("all", true, everything)
	var once sync.Once
	read := source.Read
	source.Read = func(ctx context.Context, q model.Query, each func(*item) error) (model.ListTimes, error) {
		once.Do(func() { close(begun); <-goOn })
		return read(ctx, q, each)
	}
	b := newBudget(40 * viewSize)
	joined := make(chan *View[item])
	go func() {
		v, err := set.Join(t.Context(), ownerNamed("alice"), interest(-1), source)
		if err != nil {
			t.Error(err)
		}
		joined <- v
	}()
	<-begun // the first pass waits
	refused := 0
	var matched atomic.Int32
	for n := range 100 {
		i := interest(-1)
		i.Key, i.Reserve = fmt.Sprint("view ", n), b.reserve
		i.Match = func(*item) bool { matched.Add(1); return true }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := set.Join(ctx, ownerNamed("alice"), i, source); errs.KindOf(err) == errs.Unavailable {
			refused++
		}
	}
	close(goOn)
	v := <-joined
	c.change(func(items map[string]item) { items["k1"] = item{key: "k1", shown: 1} })
	if _, err := v.Wait(t.Context(), v.Now()); err != nil {
		t.Error(err)
	}
	if refused < 50 || matched.Load() != 0 {
		t.Errorf("%d of 100 views were refused, and %d records were given to the others", refused, matched.Load())
	}
	v.Leave()
}

// TestMemoryDuringPass checks that a view stops a pass for which it has no
// memory, and does not only find out afterwards.
func TestMemoryDuringPass(t *testing.T) {
	t.Parallel()
	c := many(20_000)
	set := newSet()
	i, matched := interest(-1), 0
	i.Reserve = newBudget(400 << 10).reserve
	i.Match = func(*item) bool { matched++; return true }
	if _, err := set.Join(t.Context(), ownerNamed("alice"), i, c.source("all", true, everything)); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("error %v", err)
	}
	if matched > 5000 {
		t.Errorf("%d records were remembered", matched)
	}
}

// TestManyChanges checks that a pass with too many changes to keep does not keep
// them until its end, and that more are kept for a longer list.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		records, change int // numbers
		kept            bool
	}{
		{"few", 1000, 100, true},
		{"many of a short list", 1000, 500, false},
		{"as many of a long list", 10_000, 500, true},
		{"most of a long list", 10_000, 5000, false},
	} {
		c := many(tt.records)
		set := newSet()
		source := c.source("all", true, everything)
		var watched atomic.Pointer[View[item]]
		var most, limit atomic.Int64
		read := source.Read
		source.Read = func(ctx context.Context, q model.Query, each func(*item) error) (model.ListTimes, error) {
			return read(ctx, q, func(i *item) error {
				err := each(i)
				if v := watched.Load(); v != nil {
					most.Store(max(most.Load(), int64(len(v.batch))))
					limit.Store(int64(v.maxLog() / 1000))
				}
				return err
			})
		}
		i := interest(-1)
		text := bytes.Repeat([]byte("x"), 1000)
		i.Render = func(to []byte, i *item) []byte { return fmt.Appendf(to, "%s=%d %s", i.key, i.shown, text) }
		joined, err := set.Join(t.Context(), ownerNamed("alice"), i, source)
		if err != nil {
			t.Fatal(err)
		}
		stream, _ := joined.Follow("")
		s, _, err := stream.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
		watched.Store(joined)
		c.change(func(items map[string]item) {
			for n := range tt.change {
				key := fmt.Sprint("k", n)
				items[key] = item{key: key, shown: 1}
			}
		})
		s, events := nextBatch(t, stream)
		if kept := s == nil && len(events) == tt.change; kept != tt.kept {
			t.Errorf("%s: kept %t, want %t", tt.name, kept, tt.kept)
		}
		stream.Close()
		joined.Leave()
		if most, limit := most.Load(), limit.Load(); most > limit {
			t.Errorf("%s: %d changes were kept during the pass, want at most %d", tt.name, most, limit)
		}
	}
}

// TestWaitForTurn checks that a client does not wait without end for the first
// state of a view, whose feed waits for its turn because another one hangs. When
// its turn comes, nothing must be read for a client that has left.
func TestWaitForTurn(t *testing.T) {
	t.Parallel()
	c := many(10)
	set := newSet()
	proceed := holdTurns(t, set) // those of others
	set.Limit = 20 * time.Millisecond
	if _, err := set.Join(t.Context(), ownerNamed("bob"), interest(-1), c.source("all", true, everything)); errs.KindOf(err) != errs.Timeout {
		t.Errorf("error %v", err)
	}
	proceed()
	feeds := func() int {
		set.mu.Lock()
		defer set.mu.Unlock()
		return len(set.feeds)
	}
	for deadline := time.Now().Add(time.Minute); feeds() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := feeds(); n > 0 || c.reads > 0 {
		t.Errorf("%d feeds, and %d requests", n, c.reads)
	}
}

// TestMemoryOfRecords checks that the records that a feed has read take memory,
// even if its views show none of them, and that a pass for which there is no
// memory stops.
func TestMemoryOfRecords(t *testing.T) {
	t.Parallel()
	c := many(20_000)
	set := newSet()
	b := newBudget(500 << 10)
	i := interest(1) // has no records
	i.Reserve = b.reserve
	read := 0
	source := c.source("all", true, everything)
	list := source.Read
	source.Read = func(ctx context.Context, q model.Query, each func(*item) error) (model.ListTimes, error) {
		return list(ctx, q, func(i *item) error { read++; return each(i) })
	}
	if _, err := set.Join(t.Context(), ownerNamed("alice"), i, source); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("error %v", err)
	}
	if read > 6000 {
		t.Errorf("%d records were read", read)
	}
}

// nextBatch returns the next changes up to the end of a batch, or a snapshot, which
// it releases.
func nextBatch[R any](t *testing.T, stream *Stream[R]) (s *Snapshot, events []Event) {
	t.Helper()
	for {
		s, changes, err := stream.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s != nil {
			s.Release()
			return s, events
		}
		for _, b := range changes {
			events = append(events, b.Events...)
		}
		if changes[len(changes)-1].State != "" {
			return nil, events
		}
	}
}

// TestSlowStream checks that a client that reads changes slowly keeps only the few
// of them in memory that it has got, and that it begins again with a snapshot if
// the view drops the others.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	const records, size = 200, 1000
	c := many(records)
	set := newSet()
	i := interest(-1)
	text := bytes.Repeat([]byte("x"), size)
	i.Render = func(to []byte, i *item) []byte { return fmt.Appendf(to, "%s=%d %s", i.key, i.shown, text) }
	v, err := set.Join(t.Context(), ownerNamed("alice"), i, c.source("all", true, everything))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Leave()
	stream, _ := v.Follow("")
	defer stream.Close()
	nextBatch(t, stream)
	changeAll := func(shown int) {
		at := v.Now()
		c.change(func(items map[string]item) {
			for key := range items {
				items[key] = item{key: key, shown: shown}
			}
		})
		if _, err := v.Wait(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	changeAll(1)
	v.feed.set.mu.Lock()
	last := weak.Make(&v.oldest.Events[records-1].Data[0])
	v.feed.set.mu.Unlock()
	_, got, err := stream.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got[0].Events); len(got) != 1 || n > maxTaken/size+1 {
		t.Errorf("got %d batches, and of the first %d changes", len(got), n)
	}
	for shown := 2; shown < 4; shown++ { // there is space for one of them
		changeAll(shown)
	}
	for deadline := time.Now().Add(time.Minute); last.Value() != nil && time.Now().Before(deadline); {
		runtime.GC()
	}
	if last.Value() != nil {
		t.Error("a change stays in memory that no client has got")
	}
	runtime.KeepAlive(got)
	if s, events := nextBatch(t, stream); s == nil || len(events) > 0 {
		t.Errorf("got %d changes, and a snapshot: %t", len(events), s != nil)
	}
}

// TestSnapshotIsCompressed checks that a snapshot takes the memory of its
// compressed pieces, and no more. A buffer for compression is longer than what
// it compresses.
func TestSnapshotIsCompressed(t *testing.T) {
	t.Parallel()
	b := newBudget(1 << 30)
	s := newSnapshot(b.reserve())
	record, n := bytes.Repeat([]byte(`{"job_id":1,"job_state":["PENDING"]},`), 100), 1000
	for range n {
		s.add(record)
	}
	s.cut()
	kept := 0
	for _, piece := range s.pieces {
		kept += cap(piece)
	}
	if whole, reserved := n*len(record), b.used(); kept > whole/10 || reserved > whole/10 || reserved < kept/2 {
		t.Errorf("%d bytes are kept and %d reserved, of %d", kept, reserved, whole)
	}
	s.Release()
	if b.used() != 0 {
		t.Errorf("%d bytes are still reserved", b.used())
	}
}
