package dispatcher

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/service"
	"schedrestd/ipc"
)

// newTestDispatcher returns a dispatcher with a running loop and no generation.
// The returned function end stops the loop, and returns the messages that the
// dispatcher has sent to the parent.
func newTestDispatcher(t *testing.T) (d *dispatcher, end func() []ipc.Message) {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Parent, ipc.Dispatcher)
	must(t, err)
	own, err := ipc.Open(fd, ipc.Dispatcher, ipc.Parent)
	must(t, err)
	for _, m := range []ipc.Message{new(ipc.ServiceSetup), new(ipc.Attributes)} {
		must(t, parent.Send(m))
		_, err := own.Receive()
		must(t, err)
	}
	must(t, own.Send(new(ipc.Ready)))
	_, err = parent.Receive()
	must(t, err)
	must(t, parent.Send(new(ipc.DispatcherSetup)))
	_, err = own.Receive()
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	d = &dispatcher{parent: process.NewParent(own), log: log, level: new(slog.LevelVar), limits: Limits{Age: 24 * time.Hour}, hosts: dial.NewHosts(log)}
	d.Set = pool.NewSet(pool.Options{Connections: 1, Log: log})
	return d, func() (list []ipc.Message) {
		d.Set.Stop()
		d.parent.Close()
		for {
			m, err := parent.Receive()
			if err != nil {
				parent.Close()
				return list
			}
			list = append(list, m.Message)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRenew checks how often the dispatcher asks for a new generation of
// workers after a service of the current generation has exited. It must ask
// again if the parent announces none within renewTimeout, or if building the
// new generation fails, but not earlier.
func TestRenew(t *testing.T) {
	announce := func(d *dispatcher) { d.stopRenewTimer() }
	failed := func(d *dispatcher) { d.reportResult(2, errors.New("no")) }
	renewed := func(d *dispatcher) { d.reportResult(2, nil) }
	renew := (*dispatcher).renew
	type step struct {
		at time.Duration
		do func(*dispatcher)
	}
	for name, tt := range map[string]struct {
		steps []step
		until time.Duration
		want  int
	}{
		"no answer yet":              {[]step{{0, renew}}, renewTimeout - time.Second, 1},
		"no answer":                  {[]step{{0, renew}}, renewTimeout + time.Second, 2},
		"asked twice":                {[]step{{0, renew}, {time.Second, renew}}, renewTimeout - time.Second, 1},
		"timer of an old request":    {[]step{{0, renew}, {time.Second, renewed}, {3 * time.Second, renew}}, renewTimeout + time.Second, 2},
		"timer of the last request":  {[]step{{0, renew}, {time.Second, renewed}, {3 * time.Second, renew}}, renewTimeout + 4*time.Second, 3},
		"timer after a failure":      {[]step{{0, renew}, {4 * time.Second, failed}}, renewTimeout + time.Second, 2},
		"announced and being built":  {[]step{{0, renew}, {time.Second, announce}}, time.Minute, 1},
		"announced, and then failed": {[]step{{0, renew}, {time.Second, announce}, {time.Minute, failed}}, time.Minute + time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, end := newTestDispatcher(t)
				exited := make(chan struct{})
				close(exited)
				d.current = d.newGeneration(announcementOf(1))
				d.current.keeper = &service.Process{Done: exited}
				start := time.Now()
				for _, s := range tt.steps {
					time.Sleep(time.Until(start.Add(s.at)))
					must(t, d.Call(func() error { s.do(d); return nil }))
				}
				time.Sleep(time.Until(start.Add(tt.until)))
				synctest.Wait()
				got := 0
				for _, m := range end() {
					if _, ok := m.(*ipc.RenewGeneration); ok {
						got++
					}
				}
				if got != tt.want {
					t.Errorf("asked %d times, want %d", got, tt.want)
				}
			})
		})
	}
}

// TestGenerationWithoutServices checks that a generation without services
// leaves no goroutine behind when it has been replaced.
func TestGenerationWithoutServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if goroutines remain
		d, end := newTestDispatcher(t)
		for id := range uint32(2) {
			must(t, d.Call(func() error { return d.activate(d.newGeneration(announcementOf(id+1)), nil) }))
		}
		d.closing.Wait()
		synctest.Wait()
		released := 0
		for _, m := range end() {
			if _, ok := m.(*ipc.GenerationReleased); ok {
				released++
			}
		}
		if released != 1 {
			t.Errorf("%d generations were released, want 1", released)
		}
	})
}

// announcementOf returns the message that announces a generation without
// services.
func announcementOf(id uint32) announced {
	return announced{BuildGeneration: ipc.BuildGeneration{ID: id}}
}

// TestRenewAfterReplacement checks that the dispatcher does not ask for a new
// generation at the end of a pause if the current generation was replaced
// during the pause. Otherwise one loss would cause two replacements.
func TestRenewAfterReplacement(t *testing.T) {
	for replaced, want := range map[bool]int{false: 1, true: 0} {
		synctest.Test(t, func(t *testing.T) {
			d, end := newTestDispatcher(t)
			must(t, d.Call(func() error {
				if err := d.activate(d.newGeneration(announcementOf(1)), nil); err != nil {
					return err
				}
				d.renewAfter(time.Second)
				if replaced {
					return d.activate(d.newGeneration(announcementOf(2)), nil)
				}
				return nil
			}))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			got := 0
			for _, m := range end() {
				if _, ok := m.(*ipc.RenewGeneration); ok {
					got++
				}
			}
			if got != want {
				t.Errorf("replaced: %v: asked %d times, want %d", replaced, got, want)
			}
		})
	}
}

// TestRenewAfterFailureAtAge checks that the dispatcher asks again for a generation
// whose turn came by age, if it could not be built. Otherwise the key of session
// tickets would never be replaced again.
func TestRenewAfterFailureAtAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, end := newTestDispatcher(t)
		must(t, d.Call(func() error { return d.activate(d.newGeneration(announcementOf(1)), nil) }))
		time.Sleep(d.limits.Age + time.Second)
		must(t, d.Call(func() error { d.reportResult(2, errors.New("no")); return nil }))
		time.Sleep(d.limits.Age)
		synctest.Wait()
		got := 0
		for _, m := range end() {
			if _, ok := m.(*ipc.RenewGeneration); ok {
				got++
			}
		}
		if got != 2 {
			t.Errorf("asked %d times, want 2", got)
		}
	})
}
