package dispatcher

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"schedrestd/gateway/dispatcher/dispatch"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/process/fakeparent"
	"schedrestd/gateway/dispatcher/relay"
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

// TestMovedRegisters checks that one report about the register, which the keeper may
// repeat, causes one new generation, as soon as that of the keeper is in use.
func TestMovedRegisters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, end := newTestDispatcher(t)
		g := d.newGeneration(announcementOf(1))
		p := &service.Process{Done: make(chan struct{})}
		for range 3 {
			d.Do(func() { d.renewKeeper(g, p) })
			time.Sleep(100 * time.Millisecond)
		}
		must(t, d.Call(func() error { d.current = g; return nil }))
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			d.Do(func() {
				if d.renewPending {
					d.reportResult(2, nil)
				}
			})
		}
		synctest.Wait()
		got := 0
		for _, m := range end() {
			if _, ok := m.(*ipc.RenewGeneration); ok {
				got++
			}
		}
		if got != 1 {
			t.Errorf("asked %d times, want 1", got)
		}
	})
}

// TestReportOfReplacedKeeper checks that a compromised keeper can't make the dispatcher
// crash by reporting another register when it has refused its keys, and is replaced.
func TestReportOfReplacedKeeper(t *testing.T) {
	d, _ := newTestDispatcher(t)
	defer d.Set.Stop()
	parent := fakeparent.New(t, relay.Text(io.Discard))
	d.parent, d.starter, d.replies = parent.Sender, parent.Starter, make(chan ipc.Received, 1)
	d.violations = make(chan string, 1)
	d.config.StartLimit, d.config.PingTimeout = time.Minute, time.Minute
	d.keeper = d.spec(ipc.Keeper)
	g := d.newGeneration(announced{BuildGeneration: ipc.BuildGeneration{ID: 1, Keeper: true}})
	built := make(chan error)
	go func() { built <- d.getKeys(g) }()
	first := parent.Next()
	first.Ready()
	must(t, first.Channel.Send(&ipc.KeysResult{Reason: "no"}))
	<-parent.Messages // SecretKeysResult
	must(t, first.Channel.Send(new(work.RegisterMoved)))
	must(t, first.Channel.Send(&work.WorkerViolation{Number: 1}))
	<-d.violations // it has handled both
	d.replies <- ipc.Received{Message: &ipc.CheckResult{Result: ipc.ResultOf(nil)}}
	for err := error(nil); err == nil; _, err = first.Receive() {
	}
	first.Exit(0)
	second := parent.Next()
	time.Sleep(1100 * time.Millisecond) // until the dispatcher looks at the keeper
	must(t, d.Call(func() error { return nil }))
	second.Ready()
	must(t, second.Channel.Send(&ipc.KeysResult{OK: true}))
	d.replies <- ipc.Received{Message: new(ipc.PublicKeys)}
	must(t, <-built)
	second.Exit(0)
}
