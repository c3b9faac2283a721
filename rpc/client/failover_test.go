package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// state is the state of a controller.
type state int

const (
	works    state = iota
	waits          // is on standby
	hangs          // accepts connections and never answers, like a stopped process
	refuses        // no process listens
	vanishes       // packets to it are lost
)

// A cluster has controllers whose state the test can change. It records which
// of them the client dials.
type cluster struct {
	config client.Config

	mu      sync.Mutex
	states  map[string]state
	dialled []string
}

func newCluster(t *testing.T, names ...string) *cluster {
	c := &cluster{states: map[string]state{}}
	c.config.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
		c.mu.Lock()
		c.dialled = append(c.dialled, a.Name)
		c.mu.Unlock()
		switch c.stateOf(a.Name) {
		case refuses:
			return nil, syscall.ECONNREFUSED
		case vanishes:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var d net.Dialer
		return d.DialContext(ctx, a.Network, a.Address)
	}
	for _, name := range names {
		p := script(t, name, func(nc net.Conn, r message.Header) {
			switch c.stateOf(name) {
			case works:
				rc(nc, r.Version, 0)
			case waits:
				rc(nc, r.Version, fault.Standby)
			case hangs:
				io.Copy(io.Discard, nc)
			}
		})
		c.config.Controllers = append(c.config.Controllers, p.Address)
	}
	return c
}

func (c *cluster) stateOf(name string) state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[name]
}

func (c *cluster) set(name string, s state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[name] = s
}

// dialledNames returns the controllers that were dialled since the last call.
// Consecutive dials of the same controller count as one.
func (c *cluster) dialledNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Compact(c.dialled)
	c.dialled = nil
	return list
}

// count returns the number of dials since the last call.
func (c *cluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.dialled)
	c.dialled = nil
	return n
}

// TestOrder checks that the next controller is tried if a controller does not
// answer, whatever the reason. The controller that answered must then be tried
// first, until it is time to try the primary again.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]state{"standby": waits, "hangs": hangs, "refuses": refuses, "vanishes": vanishes} {
		t.Run(name, func(t *testing.T) {
			l := newCluster(t, "a", "b", "c")
			l.config.Timeout, l.config.ConnectTimeout = 20*time.Second, 300*time.Millisecond
			if s == hangs {
				l.config.Timeout = 4 * time.Second // the primary gets half of it
			}
			c := client.New(l.config)
			now := time.Now()
			c.Clock(func() time.Time { return now })
			asked := func(step string, want ...string) {
				t.Helper()
				if err := c.Verify(context.Background(), ann); err != nil {
					t.Fatalf("%s: %v", step, err)
				}
				if diff := cmp.Diff(want, l.dialledNames()); diff != "" {
					t.Errorf("%s: want -, asked +\n%s", step, diff)
				}
			}
			asked("all work", "a")
			l.set("a", s)
			asked("the primary does not answer", "a", "b")
			asked("remembered", "b")
			l.set("b", refuses)
			if s == hangs {
				asked("the backup is gone, too", "b", "c")
			} else {
				asked("the backup is gone, too", "b", "a", "c")
			}
			l.set("a", works)
			l.set("b", works)
			asked("the last one is remembered", "c")
			now = now.Add(client.RetryPrimary + time.Second)
			asked("it is time to try the primary", "a")
			asked("the primary again", "a")
		})
	}
}

// TestHangIsRemembered checks a primary that hangs, with a backup that has not
// taken over. After the first request, the backup must be tried first, until
// one of the two answers.
func TestHangIsRemembered(t *testing.T) {
	t.Parallel()
	for _, takes := range []string{"a", "b"} {
		l := newCluster(t, "a", "b")
		l.config.Timeout = 4 * time.Second
		l.set("b", waits)
		c := client.New(l.config)
		asked := func(step string, kind errs.Kind, want ...string) {
			t.Helper()
			err := c.Verify(context.Background(), ann)
			if (err != nil) != (kind != errs.Internal) || err != nil && errs.KindOf(err) != kind {
				t.Errorf("%s: %v", step, err)
			}
			if diff := cmp.Diff(want, l.dialledNames()); diff != "" {
				t.Errorf("%s: want -, asked +\n%s", step, diff)
			}
		}
		asked("all work", errs.Internal, "a")
		l.set("a", hangs)
		asked("the primary hangs", errs.Timeout, "a", "b")
		asked("the hang is remembered", errs.Timeout, "b", "a")
		if takes == "b" {
			l.set("b", works)
			asked("the backup has taken over", errs.Internal, "b")
			continue
		}
		l.set("a", works)
		asked("the primary works again", errs.Internal, "b", "a")
		asked("the primary is first again", errs.Internal, "a")
	}
}

// TestLeavingIsNoHang checks that a client that leaves before the primary answers
// does not make others try the backup first.
func TestLeavingIsNoHang(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a", "b")
	ctx, cancel := context.WithCancel(context.Background())
	dial := l.config.Dial
	l.config.Dial = func(dctx context.Context, a client.Address) (net.Conn, error) {
		nc, err := dial(dctx, a)
		if l.stateOf("a") == hangs {
			cancel()
		}
		return nc, err
	}
	c := client.New(l.config)
	if err := c.Verify(ctx, ann); err != nil {
		t.Fatal(err)
	}
	l.set("a", hangs)
	if err := c.Verify(ctx, ann); err == nil {
		t.Error("an answer from a primary that hangs")
	}
	l.set("a", works)
	l.count()
	err := c.Verify(context.Background(), ann)
	if asked := l.dialledNames(); err != nil || !slices.Equal(asked, []string{"a"}) {
		t.Errorf("asked %v, %v", asked, err)
	}
}

// TestPrimaryIsLookedAfter checks a primary that stays down. It must be tried
// once per interval, and not by every request.
func TestPrimaryIsLookedAfter(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a", "b")
	l.set("a", refuses)
	c := client.New(l.config)
	now := time.Now()
	c.Clock(func() time.Time { return now })
	tried := 0
	for range 50 {
		if err := c.Verify(context.Background(), ann); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(l.dialledNames(), "a") {
			tried++
		}
		now = now.Add(client.RetryPrimary / 10)
	}
	if tried < 4 || tried > 6 {
		t.Errorf("tried %d times in five intervals", tried)
	}
}

// TestOneLooksAfterThePrimary checks a primary whose failure takes time to
// detect. Only one request may wait for it.
func TestOneLooksAfterThePrimary(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a", "b")
	l.set("a", refuses)
	l.config.ConnectTimeout = 2 * time.Second
	c := client.New(l.config)
	now := time.Now()
	c.Clock(func() time.Time { return now })
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Fatal(err)
	}
	l.dialledNames()
	l.set("a", vanishes)
	now = now.Add(client.RetryPrimary + time.Second)
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(slices.DeleteFunc(l.dialled, func(name string) bool { return name != "a" })); n != 1 {
		t.Errorf("%d looked after it", n)
	}
}

// TestAllDown checks that every request gets 503 within its time limit if no
// controller can be reached. When a controller can be reached again, requests
// must succeed.
func TestAllDown(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]state{"refuse": refuses, "vanish": vanishes} {
		t.Run(name, func(t *testing.T) {
			l := newCluster(t, "a", "b")
			l.config.ConnectTimeout = 100 * time.Millisecond
			c := client.New(l.config)
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Fatal(err)
			}
			l.set("a", s)
			l.set("b", s)
			_, submit := c.Submit(context.Background(), ann, &model.JobDesc{Script: "x"})
			_, list := c.Nodes(context.Background(), ann, model.Query{}, func(*model.Node) error { return nil })
			for what, err := range map[string]error{"verify": c.Verify(context.Background(), ann), "submit": submit, "list": list} {
				if errs.KindOf(err) != errs.Unavailable || code(err) == errs.OutcomeUnknown {
					t.Errorf("%s: %v", what, err)
				}
			}
			l.set("b", works)
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestPingShowsEach checks that a ping returns the mode, the state and the
// latency of every controller.
func TestPingShowsEach(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a", "b", "c", "d", "e")
	l.config.Timeout, l.config.ConnectTimeout = time.Second, 100*time.Millisecond
	for name, s := range map[string]state{"b": waits, "c": refuses, "d": hangs, "e": vanishes} {
		l.set(name, s)
	}
	pings, err := client.New(l.config).Ping(context.Background(), ann)
	for i := range pings {
		if pings[i].Responding && pings[i].Latency <= 0 {
			t.Errorf("%s: answers in no time", pings[i].Hostname)
		}
		if p := pings[i]; p.Responding != (p.Err == nil) {
			t.Errorf("%s: responds %v, error %v", p.Hostname, p.Responding, p.Err)
		}
		pings[i].Latency, pings[i].Err = 0, nil
	}
	want := []model.Ping{
		{Hostname: "a", Mode: "primary", Primary: true, Responding: true}, {Hostname: "b", Mode: "backup1", Responding: true},
		{Hostname: "c", Mode: "backup2"}, {Hostname: "d", Mode: "backup3", TimedOut: true}, {Hostname: "e", Mode: "backup4"},
	}
	if diff := cmp.Diff(want, pings); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// nowhere returns an address on which no process listens.
func nowhere(t *testing.T, name string) client.Address {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return client.Address{Name: name, Network: "tcp", Address: ln.Addr().String()}
}

func TestFailover(t *testing.T) {
	t.Parallel()
	works := func(nc net.Conn, request message.Header) {
		if request.Type == message.RequestSubmitBatchJob {
			answer(nc, request.Version, message.ResponseSubmitBatchJob, &message.SubmitResponse{})
			return
		}
		rc(nc, request.Version, 0)
	}
	dead := func(name string) func(*testing.T) client.Address {
		return func(t *testing.T) client.Address { return nowhere(t, name) }
	}
	acts := func(act func(net.Conn, message.Header)) func(*testing.T) client.Address {
		return func(t *testing.T) client.Address { return script(t, "ctl", act).Address }
	}
	tests := []struct {
		name    string
		primary func(*testing.T) client.Address
		submit  bool // a submission succeeds with the backup
	}{
		{name: "no process listens", primary: dead("ctl"), submit: true},
		{name: "on standby", submit: true, primary: acts(func(nc net.Conn, r message.Header) { rc(nc, r.Version, fault.Standby) })},
		{name: "sends nothing, even to a ping", submit: true, primary: acts(func(nc net.Conn, r message.Header) { io.Copy(io.Discard, nc) })},
		{name: "closes, also on a ping", submit: true, primary: acts(func(net.Conn, message.Header) {})},
		{name: "garbage", submit: true, primary: acts(func(nc net.Conn, r message.Header) {
			io.WriteString(nc, "\x00\x00\x00\x20"+strings.Repeat("garbage!", 4))
		})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			backup := script(t, "bak", works)
			c := client.New(client.Config{Controllers: []client.Address{tt.primary(t), backup.Address}, Timeout: 4 * time.Second})
			_, err := c.Submit(context.Background(), ann, &model.JobDesc{Script: "x"})
			if n := backup.count(message.RequestSubmitBatchJob); err != nil || n != 1 {
				t.Errorf("submit: %v, done %d times", err, n)
			}
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Errorf("ping: %v", err)
			}
		})
	}
}

func TestWhoAnsweredIsRemembered(t *testing.T) {
	t.Parallel()
	ok := func(nc net.Conn, r message.Header) { rc(nc, r.Version, 0) }
	backup := script(t, "bak", ok)
	dials := map[string]int{}
	c := client.New(client.Config{
		Controllers: []client.Address{nowhere(t, "ctl"), backup.Address},
		Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
			dials[a.Name]++
			var d net.Dialer
			return d.DialContext(ctx, a.Network, a.Address)
		},
	})
	for range 3 {
		if err := c.Verify(context.Background(), ann); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]int{"ctl": 1, "bak": 4}; !cmp.Equal(want, dials) { // the first call probes the version, too
		t.Errorf("dialled %v, want %v", dials, want)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	c := client.New(client.Config{Controllers: []client.Address{nowhere(t, "ctl"), nowhere(t, "bak")}})
	err := c.Verify(context.Background(), ann)
	if errs.KindOf(err) != errs.Unavailable || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	pings, err := c.Ping(context.Background(), ann)
	for i, p := range pings {
		if !errors.Is(p.Err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", p.Hostname, p.Err)
		}
		pings[i].Err = nil
	}
	want := []model.Ping{{Hostname: "ctl", Mode: "primary", Primary: true}, {Hostname: "bak", Mode: "backup1"}}
	if diff := cmp.Diff(want, pings); err != nil || diff != "" {
		t.Errorf("Ping: %v (-want +got):\n%s", err, diff)
	}
	if _, err := client.New(client.Config{}).Ping(context.Background(), ann); err != nil {
		t.Errorf("without any: %v", err)
	}
}

func TestStandbyAnswersPings(t *testing.T) {
	t.Parallel()
	ok := script(t, "ctl", func(nc net.Conn, r message.Header) { rc(nc, r.Version, 0) })
	standby := script(t, "bak", func(nc net.Conn, r message.Header) { rc(nc, r.Version, fault.Standby) })
	c := client.New(client.Config{Controllers: []client.Address{ok.Address, standby.Address}})
	pings, err := c.Ping(context.Background(), ann)
	if err != nil || len(pings) != 2 || !pings[0].Responding || !pings[1].Responding || pings[1].Mode != "backup1" {
		t.Errorf("%+v, %v", pings, err)
	}
}

// TestPingOfAStranger checks that a server is not reported as up if it answers
// a ping with a wrong message.
func TestPingOfAStranger(t *testing.T) {
	t.Parallel()
	p := script(t, "ctl", func(nc net.Conn, r message.Header) { answer(nc, r.Version, 4711, message.Empty{}) })
	c := client.New(client.Config{Controllers: []client.Address{p.Address}})
	pings, err := c.Ping(context.Background(), ann)
	if err != nil || len(pings) != 1 || pings[0].Responding {
		t.Errorf("got %+v, %v", pings, err)
	}
}
