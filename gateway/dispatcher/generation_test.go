package dispatcher

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"schedrestd/gateway/dispatcher/dispatch"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/process/fakeparent"
	"schedrestd/gateway/dispatcher/service"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestTickets checks that a generation makes one key for session tickets, and
// keeps the two newest keys of the previous generation.
func TestTickets(t *testing.T) {
	var previous *generation
	var made [][32]byte
	for n := range 5 {
		g := &generation{publicKeys: &work.Keys{PublicKeys: ipc.PublicKeys{TLS: true}}}
		g.makeTickets(previous)
		list := g.publicKeys.Tickets
		if len(list) != min(3, n+1) || list[0] == [32]byte{} {
			t.Fatalf("generation %d has %d keys", n, len(list))
		}
		made = append([][32]byte{list[0]}, made...)
		for i, key := range list {
			if key != made[i] || i > 0 && key == list[0] {
				t.Errorf("generation %d: key %d has changed", n, i)
			}
		}
		previous = g
	}
	g := &generation{publicKeys: new(work.Keys)}
	if g.makeTickets(previous); g.publicKeys.Tickets != nil {
		t.Error("there are keys without TLS")
	}
}

// TestReplacedGenerationIsFreed checks that a generation that has been replaced
// does not stay in memory until its age would have ended.
func TestReplacedGenerationIsFreed(t *testing.T) {
	d, end := newTestDispatcher(t)
	defer end()
	var first weak.Pointer[generation]
	for id := range uint32(2) {
		must(t, d.Call(func() error {
			g := d.newGeneration(announcementOf(id + 1))
			if id == 0 {
				first = weak.Make(g)
			}
			return d.activate(g, nil)
		}))
	}
	for deadline := time.Now().Add(time.Minute); first.Value() != nil; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatal("the first generation is still in memory")
		}
	}
}

// TestFinishDuringBuild stops the dispatcher while a generation is being built, which
// then fails. The dispatcher must wait for the services of the current one only:
// sync.WaitGroup panics if it is used again before Wait has returned.
func TestFinishDuringBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, end := newTestDispatcher(t)
		d.router = dispatch.New(dispatch.Options{}, d.Set, d.renew)
		withKeeper := func(id uint32) *generation {
			g := d.newGeneration(announcementOf(id))
			_, own := fakeparent.Channel(t, ipc.Keeper, ipc.Managers, ipc.Serving)
			g.keeper = &service.Process{Process: &process.Process{Channel: own}, Done: make(chan struct{})}
			return g
		}
		current, failed := withKeeper(1), withKeeper(2)
		must(t, d.Call(func() error { return d.activate(current, nil) }))
		finished := make(chan struct{})
		go func() { d.finish(); close(finished) }()
		synctest.Wait() // until it waits for the keeper of the current generation
		d.Do(failed.Release)
		synctest.Wait()
		close(current.keeper.Done)
		synctest.Wait()
		select {
		case <-finished:
		default:
			t.Error("waits for a service of a generation that could not be built")
		}
		close(failed.keeper.Done)
		synctest.Wait()
		end()
	})
}
