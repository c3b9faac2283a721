package dial

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc/work"
)

// fakeResolver answers the questions of a Hosts when the test says so.
type fakeResolver struct {
	*Hosts
	t         *testing.T
	clock     time.Time
	questions chan *work.HostLookup
	log       strings.Builder
}

func newFakeResolver(t *testing.T) *fakeResolver {
	f := &fakeResolver{t: t, clock: time.Now(), questions: make(chan *work.HostLookup, 100)}
	f.Hosts = NewHosts(slog.New(slog.NewTextHandler(&f.log, nil)))
	f.now = func() time.Time { return f.clock }
	f.Send = func(q *work.HostLookup) error { f.questions <- q; return nil }
	return f
}

// answers waits for the next question about name, and answers it. Questions about
// other names before it get no answer.
func (f *fakeResolver) answers(name string, addresses ...string) {
	f.t.Helper()
	q := <-f.questions
	for q.Name != name {
		q = <-f.questions
	}
	f.Handle(&work.HostAddresses{ID: q.ID, Addresses: addrs(addresses...)})
}

// asked reports how many look-ups have begun.
func (f *fakeResolver) asked() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastID
}

// wantNext compares the next address with want, which may also be an error.
func (f *fakeResolver) wantNext(want string, tried ...string) {
	f.t.Helper()
	a, err := f.next("ctl", addrs(tried...))
	got := a.String()
	if err != nil {
		got = err.Error()
	}
	if got != want {
		f.t.Errorf("after %v: %s, want %s", tried, got, want)
	}
}

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func setupOf(addresses ...string) *work.Setup {
	return &work.Setup{Controllers: []work.Address{{Name: "ctl", Network: "tcp", Address: "ctl:6817", Resolved: addrs(addresses...)}, {Name: "two", Network: "tcp", Address: "192.0.2.7:6817"}}}
}

var tryAgain, unreachable = errLookingUp.Error(), unix.EHOSTUNREACH.Error()

// TestHostMoves checks that a host is looked up again only when none of its addresses
// is left to try, or when one fails and the last answer is old. There must be one
// look-up at a time, and at most one per second.
func TestHostMoves(t *testing.T) {
	f := newFakeResolver(t)
	f.Configure(setupOf("192.0.2.1", "2001:db8::1"))
	f.wantNext("192.0.2.1")
	if f.asked() != 0 {
		t.Error("looked up without need")
	}
	f.wantNext("2001:db8::1", "192.0.2.1")
	f.answers("ctl", "192.0.2.1", "2001:db8::1") // the first answer's age is not known
	f.clock = f.clock.Add(freshFor)
	f.wantNext("2001:db8::1", "192.0.2.1")
	if f.asked() != 1 {
		t.Error("looked up although the last answer is fresh, and an address is left")
	}
	for range 3 {
		f.wantNext(tryAgain, "192.0.2.1", "2001:db8::1")
	}
	f.wantNext("192.0.2.1") // for another request
	f.answers("ctl", "192.0.2.2")
	f.wantNext("192.0.2.2", "192.0.2.1", "2001:db8::1")
	f.wantNext(unreachable, "192.0.2.2") // within the same second
	if f.asked() != 2 {
		t.Errorf("looked up %d times", f.asked())
	}
	f.clock = f.clock.Add(time.Second)
	f.wantNext(tryAgain, "192.0.2.2")
	f.answers("ctl")
	f.wantNext("192.0.2.2") // the last good one
	f.wantNext(unreachable, "192.0.2.2")
	for _, line := range []string{`host=ctl addresses=[192.0.2.2] before="[192.0.2.1 2001:db8::1]"`, "can't be resolved; using its last addresses"} {
		if strings.Count(f.log.String(), line) != 1 {
			t.Errorf("not logged once: %s\n%s", line, f.log.String())
		}
	}
	f.clock = f.clock.Add(freshFor + 1)
	f.wantNext(tryAgain, "192.0.2.2")
	f.answers("ctl", "0.0.0.0", "ff02::1", "192.0.2.2", "192.0.2.3")
	f.wantNext("192.0.2.3", "192.0.2.2")
}

// TestUnknownHost checks that a host that could not be resolved when the
// configuration was read is looked up at once, and when a request needs it.
func TestUnknownHost(t *testing.T) {
	f := newFakeResolver(t)
	f.Configure(setupOf())
	f.wantNext(tryAgain)
	f.answers("ctl")
	f.wantNext(errUnresolved.Error())
	f.clock = f.clock.Add(time.Second)
	f.wantNext(tryAgain)
	f.answers("ctl", "192.0.2.1")
	f.wantNext("192.0.2.1")
	if _, err := f.next("other", nil); err != errUnresolved {
		t.Errorf("a host that is not configured: %v", err)
	}
}

// TestLostAnswer checks that a question is asked again if there is no answer in time,
// if it can't be sent, or if the resolver has exited. An answer that nobody waits for
// must have no effect.
func TestLostAnswer(t *testing.T) {
	f := newFakeResolver(t)
	f.Configure(setupOf())
	late := <-f.questions
	f.clock = f.clock.Add(answerLimit - 1)
	f.wantNext(tryAgain)
	f.clock = f.clock.Add(1)
	f.wantNext(tryAgain)
	<-f.questions
	for _, id := range []uint64{0, late.ID, 99} {
		if !f.Handle(&work.HostAddresses{ID: id, Addresses: addrs("192.0.2.66")}) {
			t.Error("a late answer is not handled")
		}
	}
	f.wantNext(tryAgain)
	f.Fail()
	f.wantNext(errUnresolved.Error())
	f.Handle(&work.HostAddresses{Addresses: addrs("192.0.2.66")})
	f.wantNext(errUnresolved.Error())
	done := make(chan bool)
	f.Send = func(*work.HostLookup) error { close(done); return errors.New("no resolver") }
	f.clock = f.clock.Add(time.Second)
	f.wantNext(tryAgain)
	<-done
	for f.isWaiting() {
		time.Sleep(time.Millisecond)
	}
	f.wantNext(errUnresolved.Error())
}

func (f *fakeResolver) isWaiting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts["ctl"].question != 0
}

// TestConfigureAgain checks that new workers for the same configuration do not bring
// back an old address, and that a reload does replace it.
func TestConfigureAgain(t *testing.T) {
	f := newFakeResolver(t)
	f.Configure(setupOf("192.0.2.1"))
	f.wantNext(tryAgain, "192.0.2.1")
	f.answers("ctl", "192.0.2.2")
	for _, step := range []struct {
		resolved []string
		want     string
	}{{[]string{"192.0.2.1"}, "192.0.2.2"}, {nil, "192.0.2.2"}, {[]string{"192.0.2.3"}, "192.0.2.3"}} {
		f.Configure(setupOf(step.resolved...))
		f.wantNext(step.want)
	}
	f.Configure(&work.Setup{})
	if len(f.hosts) != 0 {
		t.Errorf("%v are still known", f.hosts)
	}
}

// TestDialNamed checks what a worker gets for a daemon whose host has several
// addresses, of which the first refuses.
func TestDialNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	parent, worker := channelTo(t)
	f := newFakeResolver(t)
	setup := &work.Setup{Controllers: []work.Address{{Network: "tcp", Address: "ctl:" + port, Resolved: addrs("127.0.0.1", "127.0.0.2")}},
		Accounting: []work.Address{{Network: "tcp", Address: "dbd:1"}}}
	f.Configure(setup)
	d := New(Options{Setup: setup, Hosts: f.Hosts, Counts: new(Counters), Burst: 4000, Rate: 5000}, parent)
	ask := func(m *work.Dial) (dialed *work.Dialed, failed *work.DialFailed) {
		t.Helper()
		for {
			_, err := d.Handle(m)
			must(t, err)
			r, err := worker.Receive()
			must(t, err)
			closeFDs(r.FDs)
			dialed, _ := r.Message.(*work.Dialed)
			failed, _ := r.Message.(*work.DialFailed)
			if failed == nil || unix.Errno(failed.Errno) != unix.EAGAIN || failed.At == nil { // a busy kernel has not refused yet
				return dialed, failed
			}
		}
	}
	if _, failed := ask(&work.Dial{}); failed == nil || unix.Errno(failed.Errno) != unix.ECONNREFUSED || !slices.Equal(failed.At, addrs("127.0.0.1")) {
		t.Errorf("the first address: %+v", failed)
	}
	if dialed, failed := ask(&work.Dial{Tried: addrs("127.0.0.1")}); dialed == nil || !slices.Equal(dialed.At, addrs("127.0.0.2")) {
		t.Errorf("the second address: %+v, %+v", dialed, failed)
	}
	failures := d.o.Counts.Failed.Load()
	if _, failed := ask(&work.Dial{Upstream: work.UpstreamAccounting}); failed == nil || unix.Errno(failed.Errno) != unix.EAGAIN || d.o.Counts.Failed.Load() != failures || failures == 0 {
		t.Errorf("before the answer: %+v, %d failures", failed, d.o.Counts.Failed.Load()-failures)
	}
	f.answers("dbd")
	if _, failed := ask(&work.Dial{Upstream: work.UpstreamAccounting}); failed == nil || !failed.Unresolved || failed.At != nil {
		t.Errorf("a host without an address: %+v", failed)
	}
	if _, err := d.Handle(&work.DialBatch{Upstream: work.UpstreamAccounting}); err != nil || d.o.Counts.Prepared.Load() != 0 {
		t.Errorf("spare sockets for a host without an address: %v", err)
	}
}

// TestSpread checks the ports of named hosts and of others.
func TestSpread(t *testing.T) {
	s := &work.Setup{MorePorts: 3, Front: []work.Address{{Network: "tcp", Address: "ctl:7001"}},
		Controllers: []work.Address{{Network: "tcp", Address: "[2001:db8::1]:7001"}, {Network: "tcp", Address: "ctl:65535"}, {Network: "unix", Address: "/s:1"}}}
	Spread(s, 6)
	var got []string
	for _, a := range slices.Concat(s.Front, s.Controllers) {
		got = append(got, a.Address)
	}
	if want := []string{"ctl:7003", "[2001:db8::1]:7003", "ctl:65535", "/s:1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
