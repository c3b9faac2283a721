package privsep

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/rate"
)

// TestOpenWay: a TCP way is a socket that connects, a UNIX way the inode of a socket and no connection to it.
func TestOpenWay(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	w, errno := open(ipc.Address{Network: "tcp", Address: tcp.Addr().String()}, nil, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer w.close()
	c, err := tcp.Accept()
	must(t, err)
	defer c.Close()
	if sa, err := unix.Getpeername(w.fd); err != nil || w.owner != ipc.NoID || w.server != uint32(os.Geteuid()) {
		t.Errorf("%v, %v, owner %d, server %d", sa, err, w.owner, w.server)
	}

	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	must(t, err)
	defer l.Close()
	u, errno := open(ipc.Address{Network: "unix", Address: path}, nil, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer u.close()
	if flags, err := unix.FcntlInt(uintptr(u.fd), unix.F_GETFL, 0); err != nil || flags&unix.O_PATH == 0 || u.owner != uint32(os.Getuid()) {
		t.Errorf("flags %#x, %v, owner %d", flags, err, u.owner)
	}
	must(t, l.SetDeadline(time.Now().Add(20*time.Millisecond)))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Error("the parent has connected to a UNIX socket")
	}

	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		network, address string
		want             unix.Errno
	}{
		{"unix", file, unix.ENOTSOCK},
		{"unix", dir + "/none", unix.ENOENT},
		{"tcp", "a.name:80", unix.EADDRNOTAVAIL},
	} {
		if w, errno := open(ipc.Address{Network: tt.network, Address: tt.address}, nil, 0); errno != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.network, tt.address, errno, tt.want)
			if errno == 0 {
				w.close()
			}
		}
	}
}

// errandMeans is what errands are done with.
func errandMeans(names *directory) means {
	return means{spawner: new(spawner), slots: newSlots(Config{Log: slog.New(slog.DiscardHandler)}), names: names}
}

// TestErrandAddresses: only what the configuration has can be asked for.
func TestErrandAddresses(t *testing.T) {
	setup := &ipc.Setup{Controllers: []ipc.Address{{Network: "tcp", Address: "c"}}, Munge: ipc.Munge{Socket: "m"}}
	e := newErrands(errandMeans(nil), Config{}, setup, nil, 0)
	for _, tt := range []struct {
		way   ipc.Way
		index uint8
		want  string // "": it is refused
	}{
		{ipc.WayController, 0, "c"}, {ipc.WayController, 1, ""}, {ipc.WayController, 255, ""}, {ipc.WayAccounting, 0, ""},
		{ipc.WaySocket, 0, ""}, {ipc.WayMunge, 0, "m"}, {ipc.WayMunge, 1, ""}, {ipc.WayAccountingMunge, 0, ""},
	} {
		a, err := e.address(tt.way, tt.index)
		if a.Address != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("way %d number %d: %q, %v", tt.way, tt.index, a.Address, err)
		}
	}
}

// machines makes two network namespaces, joined as two machines are, and returns their
// names. The first has the address 192.0.2.1, the second 192.0.2.2.
func machines(t *testing.T) (here, there string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	here, there = fmt.Sprintf("test-%d-here", os.Getpid()), fmt.Sprintf("test-%d-there", os.Getpid())
	ip := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", line, err, out)
		}
	}
	for _, name := range []string{here, there} {
		ip("netns add " + name)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
	}
	ip("-n " + here + " link add veth0 type veth peer name veth0 netns " + there)
	for i, name := range []string{here, there} {
		ip(fmt.Sprintf("-n %s address add 192.0.2.%d/24 dev veth0", name, i+1))
		ip("-n " + name + " link set veth0 up")
		ip("-n " + name + " link set lo up")
	}
	return here, there
}

// TestSpares: they know their daemon, which hears of none before it is written to; what can't be had is not handed over,
// nor much to who does not read. A daemon on this machine has none, since who serves it is looked up when it is connected to.
func TestSpares(t *testing.T) {
	here, there := machines(t)
	from, err := startOutlet(here)
	must(t, err)
	defer from.stop()
	far, err := startOutlet(there)
	must(t, err)
	defer far.stop()
	var l net.Listener
	must(t, far.do(func() error { l, err = net.Listen("tcp", "192.0.2.2:0"); return err }))
	defer l.Close()
	parent, worker := channelTo(t, ipc.Worker)
	setup := &ipc.Setup{Controllers: []ipc.Address{{Network: "tcp", Address: l.Addr().String()}, {Network: "tcp", Address: "a.name:1"}},
		Accounting: []ipc.Address{{Network: "tcp", Address: "127.0.0.1:1"}, {Network: "tcp", Address: "192.0.2.1:1"}},
		Munge:      ipc.Munge{Socket: "/nowhere"}}
	m := errandMeans(nil)
	m.outlet = from
	e := newErrands(m, Config{DialBurst: defaultDialBurst, DialRate: defaultDialRate}, setup, parent, 0)
	for _, none := range []*ipc.Stock{{Way: ipc.WayMunge}, {Way: ipc.WayController, Index: 1}, {Way: ipc.WayAccounting}, {Way: ipc.WayAccounting, Index: 1}} {
		if done, err := e.hear(none); !done || err != nil || e.counts.spares.n.Load() != 0 {
			t.Errorf("%v: %t, %v, %d spares", none, done, err, e.counts.spares.n.Load())
		}
	}
	if _, err := e.hear(&ipc.Stock{Index: 2}); err == nil {
		t.Error("spares for what is not in the configuration")
	}
	_, err = e.hear(&ipc.Stock{})
	must(t, err)
	r, err := worker.Receive()
	must(t, err)
	defer closeFDs(r.FDs)
	if m, ok := r.Message.(*ipc.Spares); !ok || m.Way != ipc.WayController || m.Index != 0 || len(r.FDs) != ipc.SpareCount {
		t.Fatalf("%#v with %d descriptors", r.Message, len(r.FDs))
	}
	must(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(20*time.Millisecond)))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Fatal("one has connected unasked")
	}
	must(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)))
	for _, fd := range r.FDs {
		if _, err := unix.Write(fd, nil); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
		c, err := l.Accept()
		must(t, err)
		c.Close()
	}

	for n := range 1000 { // nobody reads
		if _, err := e.hear(&ipc.Stock{}); err != nil {
			t.Fatal(err)
		}
		if n == 999 && e.counts.spares.n.Load() > 50*ipc.SpareCount {
			t.Errorf("%d descriptors wait for who does not read", e.counts.spares.n.Load())
		}
	}
}

// TestErrandsCost: what a worker asks for is taken from what it may ask for, and an attempt for which there is no port, which makes
// the kernel look at them all, a hundredfold.
func TestErrandsCost(t *testing.T) {
	parent, _ := channelTo(t, ipc.Worker)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	const there, portless = 0, 1
	setup := &ipc.Setup{Controllers: []ipc.Address{there: {Network: "tcp", Address: l.Addr().String()}, portless: {Network: "tcp", Address: "a.name:1"}},
		AuthSocket: "/nowhere"}
	for _, tt := range []struct {
		errand ipc.Message
		cost   float64
	}{
		{&ipc.Dial{Index: there}, 1},
		{&ipc.Dial{Way: ipc.WaySocket}, 1},
		{&ipc.Dial{Index: portless}, 101},
		{&ipc.Stock{Index: there}, ipc.SpareCount},
		{&ipc.Stock{Index: portless}, ipc.SpareCount + 100},
		{&ipc.Who{}, 0},
	} {
		const many = 1000
		e := newErrands(errandMeans(newDirectory()), Config{}, setup, parent, 0)
		e.dials = rate.New(many, math.SmallestNonzeroFloat64, time.Now())
		_, err := e.hear(tt.errand)
		must(t, err)
		if cost := many - e.dials.Left(time.Now()); cost != tt.cost {
			t.Errorf("%s %+v costs %v, want %v", tt.errand.Kind(), tt.errand, cost, tt.cost)
		}
		if _, isName := tt.errand.(*ipc.Who); isName {
			continue
		}
		e.dials.Owe(time.Now(), many)
		e.refused = rate.New(1, math.SmallestNonzeroFloat64, time.Now())
		for n, ends := range []bool{false, true} { // told to wait once, ended when it asks on
			if _, err := e.hear(tt.errand); (err != nil) != ends {
				t.Errorf("%s %+v, %d times too often: %v", tt.errand.Kind(), tt.errand, n+1, err)
			}
		}
	}
}

// TestErrandFlood: a worker that asks for names without end is ended.
func TestErrandFlood(t *testing.T) {
	parent, fd, err := ipc.Pair(ipc.Parent, ipc.Worker)
	must(t, err)
	defer parent.Close()
	defer unix.Close(fd)
	slow := make(chan struct{})
	defer close(slow)
	d := newDirectory()
	d.user = func(uint32) (string, error) { <-slow; return "", nil }
	e := newErrands(errandMeans(d), Config{}, &ipc.Setup{Munge: ipc.Munge{Socket: "/nowhere/at/all"}}, parent, 0)
	for i := range mostAsked + 1 {
		done, err := e.hear(&ipc.Who{ID: uint64(i), Number: uint32(i)})
		if !done || (err == nil) != (i < mostAsked) {
			t.Fatalf("name %d: %t, %v", i, done, err)
		}
	}
}

// TestDirectory: a name is looked up once while it is kept, and one that can't be asked for is not kept.
func TestDirectory(t *testing.T) {
	now, asked := time.Unix(1000, 0), 0
	d := newDirectory()
	d.now = func() time.Time { return now }
	d.user = func(uid uint32) (string, error) {
		asked++
		switch uid {
		case 1:
			return "alice", nil
		case 2:
			return "", errs.New(errs.NotFound, "none")
		}
		return "", errs.New(errs.Unavailable, "down")
	}
	for _, tt := range []struct {
		uid  uint32
		text string
		sure bool
		all  int // questions so far
	}{{1, "alice", true, 1}, {1, "alice", true, 1}, {2, "", true, 2}, {2, "", true, 2}, {3, "", false, 3}, {3, "", false, 4}} {
		text, err := d.name(false, tt.uid)
		if text != tt.text || (err == nil) != tt.sure || asked != tt.all {
			t.Errorf("uid %d: %q, %v after %d questions", tt.uid, text, err, asked)
		}
	}
	now = now.Add(keepNames)
	if d.name(false, 1); asked != 5 {
		t.Errorf("%d questions after a name grew old", asked)
	}
}

// TestNumbersOfNames: a name has a number, or none, or it can't be found out now.
// A name that could be anything else is nobody's.
func TestNumbersOfNames(t *testing.T) {
	d := newDirectory()
	asked := 0
	look := func(name string) (uint32, error) {
		asked++
		switch name {
		case "alice":
			return 20001, nil
		case "-i":
			return 0, errs.New(errs.Invalid, "not a name")
		case "slow":
			return 0, errs.New(errs.Unavailable, "down")
		}
		return 0, errs.New(errs.NotFound, "none")
	}
	d.userID, d.groupID = look, func(string) (uint32, error) { return 7, nil }
	for _, tt := range []struct {
		q      who
		number uint32
		sure   bool
		all    int // look-ups of users so far
	}{
		{who{name: "alice"}, 20001, true, 1}, {who{name: "alice"}, 20001, true, 1},
		{who{name: "nosuch"}, ipc.NoID, true, 2}, {who{name: "nosuch"}, ipc.NoID, true, 2},
		{who{name: "-i"}, ipc.NoID, true, 3},
		{who{name: "slow"}, 0, false, 4}, {who{name: "slow"}, 0, false, 5},
		{who{name: "alice", group: true}, 7, true, 5},
	} {
		known, err := d.inquirer().ask(tt.q)
		if known.number != tt.number || (err == nil) != tt.sure || asked != tt.all {
			t.Errorf("%+v: %d, %v after %d look-ups", tt.q, known.number, err, asked)
		}
	}
}

// TestNamesThatCantBeAsked: a worker that can't be told its user's name is complained of, where the name matters.
func TestNamesThatCantBeAsked(t *testing.T) {
	d := newDirectory()
	for _, tt := range []struct {
		name       string
		err        error
		local      bool
		user, want string
	}{
		{"it has one", nil, true, "alice", ""},
		{"it has none", errs.New(errs.NotFound, "none"), true, "", ""},
		{"nobody can say", errs.New(errs.Unavailable, "the directory is down"), true, "", "the directory is down"},
		{"nobody can say, and none is needed", errs.New(errs.Unavailable, "the directory is down"), false, "", ""},
	} {
		d.known = map[who]named{}
		d.user = func(uint32) (string, error) { return tt.user, tt.err }
		var log bytes.Buffer
		setup := ipc.Setup{Local: tt.local}
		d.introduce(&setup, 7, slog.New(slog.NewTextHandler(&log, nil)))
		if said := log.String(); setup.User != tt.user || (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
			t.Errorf("%s: %q, and the log has %q", tt.name, setup.User, said)
		}
	}
}

// TestSpread: a worker takes one port of a range, for every controller the same.
func TestSpread(t *testing.T) {
	list := []ipc.Address{{Name: "a", Network: "tcp", Address: "192.0.2.1:7000"}, {Name: "b", Network: "tcp", Address: "[2001:db8::1]:7000"}, {Name: "c", Network: "unix", Address: "/run/c"}}
	want := []ipc.Address{{Name: "a", Network: "tcp", Address: "192.0.2.1:7003"}, {Name: "b", Network: "tcp", Address: "[2001:db8::1]:7003"}, {Name: "c", Network: "unix", Address: "/run/c"}}
	if diff := cmp.Diff(want, spread(list, 4, 13)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(list, spread(list, 0, 13)); diff != "" {
		t.Errorf("without a range (-want +got):\n%s", diff)
	}
}
