package service

import (
	"strings"
	"testing"
	"time"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestReports checks that a compromised service is killed if it reports more
// workers than it may at once. Starting the service again must not permit more
// reports.
func TestReports(t *testing.T) {
	reported := 0
	hooks := Hooks{Report: func(uint32, string) { reported++ }}
	spec := &Spec{Options: Options{Role: ipc.Keeper, StartLimit: time.Hour, PingTimeout: time.Hour}, reports: rate.New(limit.ServiceReports.Of(limit.ServiceReports.Burst, 0), time.Now())}
	for life := range 2 {
		parent, compromised := serving(t)
		go func() {
			for n := 0; n < 2*int(limit.ServiceReports.Burst) && compromised.Send(&work.WorkerViolation{Number: 1, Reason: "so"}) == nil; n++ {
			}
			compromised.Close() // otherwise serve would not end without the limit
		}()
		p := &Process{Process: &process.Process{Channel: parent}, spec: spec, hooks: hooks, Done: make(chan struct{})}
		if err := p.serve(); err == nil || !strings.Contains(err.Error(), "too many workers") || reported != int(limit.ServiceReports.Burst) {
			t.Errorf("life %d: %d reported, %v", life, reported, err)
		}
		close(p.Done)
		parent.Close()
	}
}

// TestUnasked checks that a service is killed if it sends a message that has no
// handler, or an answer without a question.
func TestUnasked(t *testing.T) {
	for want, m := range map[string]ipc.Message{"was not requested": &ipc.Pong{Number: 1}, "KeysResult": &ipc.KeysResult{OK: true}} {
		parent, compromised := serving(t)
		must(t, compromised.Send(m))
		p := &Process{Process: &process.Process{Channel: parent}, spec: &Spec{Options: Options{Role: ipc.Keeper, StartLimit: time.Hour, PingTimeout: time.Hour}},
			hooks: Hooks{Handle: func(ipc.Message) (bool, error) { return false, nil }}, Done: make(chan struct{})}
		if err := p.serve(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		close(p.Done)
	}
}

// serving returns both ends of the channel to a keeper that is ready.
func serving(t *testing.T) (parent, keeper *ipc.Channel) {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Keeper)
	must(t, err)
	t.Cleanup(func() { parent.Close() })
	keeper, err = ipc.Open(fd, ipc.Keeper, ipc.Managers)
	must(t, err)
	t.Cleanup(func() { keeper.Close() })
	for _, step := range []struct {
		from, to *ipc.Channel
		m        ipc.Message
	}{{parent, keeper, &ipc.ServiceSetup{}}, {parent, keeper, &ipc.Attributes{}}, {keeper, parent, &ipc.Ready{}}, {parent, keeper, &ipc.Ping{}}} {
		must(t, step.from.Send(step.m))
		_, err := step.to.Receive()
		must(t, err)
	}
	return parent, keeper
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
