package dispatcher

import (
	"runtime"
	"testing"
	"time"
	"weak"

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
