package client_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// A deadlineConn is a connection that stores its deadline.
type deadlineConn struct {
	net.Conn
	mu    sync.Mutex
	until time.Time
}

func (c *deadlineConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.until = t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

func (c *deadlineConn) limit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.until)
}

// TestLongCall checks that opening a session has the time limit of short calls,
// and a request that of long ones, in a new session and in an idle one.
func TestLongCall(t *testing.T) {
	t.Parallel()
	const short, long = time.Hour, 100 * time.Hour
	k := newKeeper(t)
	var conn *deadlineConn
	greeting := time.Duration(0)
	a := client.NewAccounting(client.Config{Accounting: []client.Address{k.Address}, Timeout: short, LongTimeout: long,
		Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			greeting = time.Until(deadline)
			nc, err := net.Dial(a.Network, a.Address)
			conn = &deadlineConn{Conn: nc}
			return conn, err
		}})
	var requests []time.Duration
	k.act = func(net.Conn, int) bool { requests = append(requests, conn.limit()); return true }
	for range 2 {
		mustAsk(t, a, model.Credential{Token: "good"})
	}
	if greeting > short || len(requests) != 2 {
		t.Fatalf("%v for the connection, requests %v", greeting, requests)
	}
	for i, limit := range requests {
		if limit < long-short || limit > long {
			t.Errorf("request %d: time limit %v, want %v", i, limit, long)
		}
	}
}

// TestClientLeaves checks what happens to the call of a client that has left. A
// query ends, but counts until the daemon has finished it. A transaction that has
// sent a change goes on.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *client.Accounting) error{
		"query": func(ctx context.Context, a *client.Accounting) error {
			return client.Records(ctx, a, model.Credential{Token: "good"}, model.TRESFilter{}, func(*model.TRES) error { return nil })
		},
		"statistics": func(ctx context.Context, a *client.Accounting) error {
			_, _, err := a.Stats(ctx, model.Credential{Token: "good"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, proceed, asked := newKeeper(t), make(chan struct{}), make(chan struct{})
			k.act = func(net.Conn, int) bool { close(asked); <-proceed; return true }
			a := accountingOf(k.Address)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-asked; cancel() }()
			if err := call(ctx, a); err == nil {
				t.Error("answered")
			}
			if n := a.Calls(); n != 1 {
				t.Errorf("%d calls while the daemon works, want 1", n)
			}
			close(proceed)
			for end := time.Now().Add(time.Minute); a.Calls() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the query counts although the daemon has finished it")
				}
			}
			k.wait(t, 0)
		})
	}
	for _, tt := range []struct {
		name, leaves string // the request during which the client leaves
		kept         int    // number of committed accounts
	}{
		{"before a change", "list", 0},
		{"during a change", "add a", 1},
		{"during the commit", "keep", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			l := newLedger(t, func(asked string) string {
				if asked == tt.leaves {
					cancel()
				}
				return ""
			})
			a := accountingOf(l.Address)
			err := a.Edit(ctx, ann, func(e model.Editor) error {
				if err := e.List(model.List(model.TRESFilter{}, func(*model.TRES) error { return nil })); err != nil {
					return err
				}
				if tt.leaves == "list" {
					<-ctx.Done()
				}
				_, err := e.Change(model.Add[model.Account]{Records: []model.Account{{Name: "a"}}})
				return err
			})
			l.mu.Lock()
			defer l.mu.Unlock()
			if (err == nil) != (tt.kept > 0) || len(l.committed) != tt.kept {
				t.Errorf("got %v, committed %q", err, l.committed)
			}
		})
	}
}

// TestSilentDaemons checks two daemons that do not answer a request for
// statistics. Their sessions share the turn of the call, so this test is for the
// race detector.
func TestSilentDaemons(t *testing.T) {
	t.Parallel()
	first, second := newLedger(t, func(string) string { return stalls }), newLedger(t, func(string) string { return stalls })
	second.Name = "backup"
	a := client.NewAccounting(client.Config{Accounting: []client.Address{first.Address, second.Address}, LongTimeout: time.Second})
	if _, _, err := a.Stats(t.Context(), ann); errs.KindOf(err) != errs.Timeout {
		t.Errorf("got %v", err)
	}
}

// TestPark checks that a call that waits for a daemon, or for its turn, gives up
// what others need, and what happens if it is asked to end.
func TestPark(t *testing.T) {
	t.Parallel()
	refused := errs.New(errs.TooMany, "no")
	for _, tt := range []struct {
		name   string
		change bool
		stop   bool  // the call is asked to end
		err    error // of Park
		kind   errs.Kind
	}{
		{name: "waits"},
		{name: "is asked to end", stop: true, kind: errs.Unavailable},
		{name: "can't wait", err: refused, kind: errs.TooMany},
		{name: "changes", change: true},
		{name: "changes, and is asked to end", change: true, stop: true},
		{name: "changes, and can't wait", change: true, err: refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			parked, resumed := make(chan struct{}), 0
			l := newLedger(t, func(asked string) string {
				if asked == "list" && !tt.change || asked == "add a" {
					<-parked
				}
				return ""
			})
			a := client.NewAccounting(client.Config{Accounting: []client.Address{l.Address}, Park: func(_ context.Context, changing bool, stop func()) (func(), error) {
				if changing != tt.change {
					t.Errorf("parked with changing %v", changing)
				}
				if tt.stop {
					stop()
				}
				time.AfterFunc(10*time.Millisecond, func() { close(parked) }) // the daemon answers after the call has ended, if it does
				return func() { resumed++ }, tt.err
			}})
			err := a.Edit(context.Background(), ann, func(e model.Editor) error {
				if !tt.change {
					return e.List(model.List(model.TRESFilter{}, func(*model.TRES) error { return nil }))
				}
				_, err := e.Change(model.Add[model.Account]{Records: []model.Account{{Name: "a"}}})
				return err
			})
			if tt.kind == 0 && err != nil || tt.kind != 0 && errs.KindOf(err) != tt.kind || tt.err != nil && tt.kind != 0 && !errors.Is(err, tt.err) {
				t.Errorf("got %v", err)
			}
			if want := map[bool]int{true: 1}[tt.err == nil]; resumed != want {
				t.Errorf("resumed %d times, want %d", resumed, want)
			}
		})
	}
}

// TestChangeAfterFailure checks a caller that makes a change although an earlier
// request has failed: the change is not sent, its outcome is known, and the call
// does not stay parked.
func TestChangeAfterFailure(t *testing.T) {
	t.Parallel()
	add := func(e model.Editor) error {
		_, err := e.Change(model.Add[model.Account]{Records: []model.Account{{Name: "a"}}})
		return err
	}
	t.Run("client left", func(t *testing.T) {
		t.Parallel()
		l := newLedger(t, func(string) string { return "" })
		parked, resumed := make(chan struct{}), 0
		a := client.NewAccounting(client.Config{Accounting: []client.Address{l.Address}, Park: func(context.Context, bool, func()) (func(), error) {
			close(parked)
			return func() { resumed++ }, nil
		}})
		ctx, cancel := context.WithCancel(context.Background())
		err := a.Edit(ctx, ann, func(e model.Editor) error {
			cancel()
			first := add(e)
			<-parked
			return errors.Join(first, add(e))
		})
		if asked, _, _ := l.recorded(); err == nil || asked != "" || resumed != 1 {
			t.Errorf("got %v, asked %q, resumed %d times", err, asked, resumed)
		}
	})
	t.Run("list not answered", func(t *testing.T) {
		t.Parallel()
		l := newLedger(t, func(string) string { return stalls })
		a := client.NewAccounting(client.Config{Accounting: []client.Address{l.Address}, LongTimeout: 100 * time.Millisecond})
		err := a.Edit(context.Background(), ann, func(e model.Editor) error {
			list := e.List(model.List(model.TRESFilter{}, func(*model.TRES) error { return nil }))
			return errors.Join(list, add(e))
		})
		e, _ := errors.AsType[*errs.Error](err)
		if asked, _, _ := l.recorded(); asked != "list" || e == nil || e.Kind != errs.Timeout || e.Code != "" {
			t.Errorf("got %v, asked %q", err, asked)
		}
	})
}
