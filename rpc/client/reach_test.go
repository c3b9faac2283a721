package client_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"schedrestd/rpc/client"
)

// TestReachable checks that Reachable reports an outage once it has lasted for
// UnreachableAfter. The end of the outage must be reported immediately.
func TestReachable(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]state{"refuses": refuses, "vanishes": vanishes} {
		t.Run(name, func(t *testing.T) {
			l := newCluster(t, "a", "b")
			// Only attempts to reach a lost controller end soon. On a busy machine,
			// a connection to the other one takes longer.
			l.config.ConnectTimeout = time.Minute
			dial := l.config.Dial
			l.config.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
				if l.stateOf(a.Name) == vanishes {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
				}
				return dial(ctx, a)
			}
			c := client.New(l.config)
			now := time.Now()
			c.Clock(func() time.Time { return now })
			check := func(step string, want bool, dialled int) {
				t.Helper()
				if got := c.Reachable(context.Background()) == nil; got != want {
					t.Errorf("%s: reachable is %v", step, got)
				}
				if got := l.count(); got != dialled {
					t.Errorf("%s: %d controllers were dialled, want %d", step, got, dialled)
				}
			}
			l.set("a", outage)
			l.set("b", outage)
			check("a new client", false, 2)
			l.set("a", works)
			l.set("b", works)
			now = now.Add(time.Second)
			check("time to look", true, 2)
			check("just seen", true, 0)
			l.set("a", outage)
			now = now.Add(client.UnreachableAfter)
			check("the backup works", true, 2)
			l.set("b", outage)
			now = now.Add(client.UnreachableAfter - time.Second)
			check("not for long", true, 2)
			now = now.Add(time.Second)
			check("for long enough", false, 2)
			check("no attempt so soon", false, 0)
			l.set("b", works)
			now = now.Add(time.Second)
			check("back", true, 2)
			now = now.Add(client.UnreachableAfter - time.Second)
			if err := c.Verify(context.Background(), ann); outage == refuses && err != nil {
				t.Error(err)
			}
			l.dialledNames()
			check("a request was answered", true, 0)
		})
	}
}

// TestReachableIsShared checks that concurrent callers share one attempt. If a
// caller stops waiting, the attempt must continue.
func TestReachableIsShared(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a")
	l.set("a", vanishes)
	l.config.ConnectTimeout = 200 * time.Millisecond
	c := client.New(l.config)
	now := time.Now().Add(client.UnreachableAfter)
	c.Clock(func() time.Time { return now })
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	c.Reachable(cancelled)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if c.Reachable(context.Background()) == nil {
				t.Error("reachable")
			}
		})
	}
	wg.Wait()
	if n := l.count(); n != 1 {
		t.Errorf("%d attempts", n)
	}
}
