package ipc_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/internal/setting"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// pair returns both ends of a channel in this process, in the given phase. The
// first end is that of the parent and the dispatcher.
func pair(t *testing.T, phase ipc.Phase) (parent, worker *ipc.Channel) {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Worker)
	if err != nil {
		t.Fatal(err)
	}
	worker, err = ipc.Open(fd, ipc.Worker, ipc.Managers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Close(); worker.Close() })
	parent.SetPhase(phase)
	worker.SetPhase(phase)
	return parent, worker
}

func fullSetup() work.Setup {
	return work.Setup{
		Setup: ipc.Setup{Files: 436, JWT: true, Local: true, Reach: ipc.ReachTCP | ipc.ReachUnix | ipc.ReachMunge, SchedUID: 990, Privileged: []string{"root", "toor"},
			Requests: 62, Sockets: true, Sandbox: ipc.SandboxAudit | ipc.SandboxUnix, Audit: true, LogLevel: -4},
		Cluster:     "tiny",
		Controllers: []work.Address{{Name: "a", Network: "tcp", Address: "a:6817", Resolved: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, {Name: "b", Network: "unix", Address: "/run/b"}},
		Front:       []work.Address{{Name: "f", Network: "tcp", Address: "192.0.2.9:6817"}}, MorePorts: 3,
		Accounting: []work.Address{{Name: "dbd", Network: "tcp", Address: "[2001:db8::1]:6819"}},
		AuthSocket: "/run/sched/ctld.sock", TLS: work.TLS{CA: []byte{0x30, 0}, CheckNames: true}, Munge: work.Munge{Socket: "/run/munge.socket", Accounting: "/run/other", TTL: time.Minute},
		RequireUserName: true, REST: setting.REST{Strict: true, MaxAge: 2 * time.Second},
		UserClaim: "preferred_username", ClientIDs: true, Zone: []byte("TZif"), Names: work.NamesSched | work.NamesSlurm,
		Parsers: []work.Parser{{Version: 40, Flags: 1}, {Version: 43}}, Content: work.ContentController | work.ContentAccounting | work.ContentUtil, Pages: setting.Pages{Statuses: []string{"200", "default"}},
		JSON: work.Pretty, YAML: work.Pretty | work.NoTag,
		Limits: work.Limits{ReadHeader: 10 * time.Second, ReadBody: 20 * time.Second, Idle: time.Minute, Stall: 30 * time.Second,
			Call: 1500 * time.Millisecond, Accounting: 900 * time.Second, Connect: 2500 * time.Millisecond, Drain: time.Second, Header: 32 << 10, Body: 50 << 20, Answers: 256 << 20},
		Admission: work.Admission{Auth: time.Second, Malformed: 2 * time.Second, Crash: time.Minute, Threshold: 30 * time.Second,
			Exempt: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, ProxyUIDs: []uint32{990, 13},
			Rate: 50, Burst: 100},
	}
}

// TestConversation sends the messages in the life of a worker over a real
// channel, and checks both ends.
func TestConversation(t *testing.T) {
	parent, worker := pair(t, ipc.Initial)
	want := fullSetup()
	setup, err := want.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	conn := &ipc.Connection{ID: 1, Network: ipc.Unix, Listener: "unix:/run/s", UID: 1000, GID: 100, PID: 42, Verified: true}
	steps := []struct {
		from *ipc.Channel
		m    ipc.Message
		fds  []int
		then ipc.Phase
	}{
		{parent, &setup, nil, ipc.Configured},
		{parent, &ipc.Attributes{UID: 65534, Groups: []uint32{7}, Namespaces: []ipc.Namespace{{Type: "ipc", ID: "ipc:[1]", MustDiffer: true}}}, nil, ipc.Proving},
		{worker, &ipc.Ready{}, nil, ipc.Handover},
		{parent, &ipc.Ping{Number: 2}, nil, ipc.Serving},
		{parent, conn, []int{int(w.Fd())}, ipc.Serving},
		{worker, &work.ConnectionTaken{ID: 1}, nil, ipc.Serving},
		{parent, &ipc.Ping{Number: 3}, nil, ipc.Serving},
		{worker, &ipc.Pong{Number: 3}, nil, ipc.Serving},
		{parent, &work.Drain{}, nil, ipc.Draining},
		{worker, &work.ConnectionDone{ID: 1}, nil, ipc.Draining},
	}
	for _, s := range steps {
		to := worker
		if s.from == worker {
			to = parent
		}
		if err := s.from.Send(s.m, s.fds...); err != nil {
			t.Fatalf("send %s: %v", ipc.KindOf(s.m), err)
		}
		got, err := to.Receive()
		if err != nil {
			t.Fatalf("receive %s: %v", ipc.KindOf(s.m), err)
		}
		if diff := cmp.Diff(s.m, got.Message, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-sent +received):\n%s", ipc.KindOf(s.m), diff)
		}
		if len(got.FDs) != len(s.fds) {
			t.Fatalf("%s: %d descriptors arrived", ipc.KindOf(s.m), len(got.FDs))
		}
		for _, fd := range got.FDs { // it must be the pipe
			w.Close()
			if _, err := unix.Write(fd, []byte("x")); err != nil {
				t.Error(err)
			}
			if flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
				t.Error("a received descriptor would be inherited")
			}
			unix.Close(fd)
			if b, _ := io.ReadAll(r); string(b) != "x" {
				t.Errorf("read %q through the passed descriptor", b)
			}
		}
		if parent.Phase() != s.then || worker.Phase() != s.then {
			t.Errorf("after %s: parent %s, worker %s, want %s", ipc.KindOf(s.m), parent.Phase(), worker.Phase(), s.then)
		}
	}
	want.Setup = setup
	unpacked, err := work.Unpack(setup)
	if diff := cmp.Diff(want, unpacked, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("%v (-packed +unpacked):\n%s", err, diff)
	}
	worker.Close()
	if _, err := parent.Receive(); err != io.EOF {
		t.Errorf("after the worker's end: %v, want EOF", err)
	}
}

// TestHandover checks that a keeper accepts the parent's keys after it has sent
// Ready, but not after the dispatcher's first message.
func TestHandover(t *testing.T) {
	parent, fd, err := ipc.Pair(ipc.Parent, ipc.Keeper)
	must(t, err)
	defer parent.Close()
	keeper, err := ipc.Open(fd, ipc.Keeper, ipc.Managers)
	must(t, err)
	defer keeper.Close()
	parent.SetPhase(ipc.Proving)
	keeper.SetPhase(ipc.Proving)
	dispatcherFD, err := unix.Dup(int(parent.Fd()))
	must(t, err)
	dispatcher, err := ipc.Open(dispatcherFD, ipc.Dispatcher, ipc.Keeper)
	must(t, err)
	dispatcher.Resume(ipc.Proving)
	defer dispatcher.Close()

	receive := func(c *ipc.Channel) error {
		r, err := c.Receive()
		for _, fd := range r.FDs {
			unix.Close(fd)
		}
		return err
	}
	must(t, parent.Send(new(ipc.SecretKeys), 0, 0, 0, 0, 0, 0, 0))
	must(t, keeper.Send(new(ipc.Ready)))
	must(t, receive(keeper))
	must(t, receive(dispatcher))
	must(t, dispatcher.Send(new(ipc.Ping)))
	must(t, receive(keeper))
	must(t, parent.Send(new(ipc.SecretKeys), 0, 0, 0, 0, 0, 0, 0)) // the parent can't know that the handover is over
	if err := receive(keeper); err == nil || !strings.Contains(err.Error(), "not permitted while serving") {
		t.Errorf("keys after the handover: %v", err)
	}
	if err := dispatcher.Send(new(ipc.SecretKeys), 0, 0, 0, 0, 0, 0, 0); err == nil || !strings.Contains(err.Error(), "may not be sent by the dispatcher") {
		t.Errorf("keys from the dispatcher: %v", err)
	}
	if err := parent.Send(new(ipc.Ping)); err == nil || !strings.Contains(err.Error(), "may not be sent by the parent") {
		t.Errorf("Ping from the parent: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReceiveIsStrict checks that Receive refuses the packets of a hostile
// worker. The test sends them without Send, which would refuse them.
func TestReceiveIsStrict(t *testing.T) {
	done := append([]byte{byte(ipc.KindOf(new(work.ConnectionDone)))}, make([]byte, 8)...)
	tests := []struct {
		name  string
		frame []byte
		fds   int
		want  string
	}{
		{"unknown kind", []byte{250, 1, 2}, 0, "not in the protocol table"},
		{"unknown upstream", append(append([]byte{byte(ipc.KindOf(new(work.Dial)))}, make([]byte, 8)...), byte(work.UpstreamSack+1), 0, 0, 0), 0, "has a kind of upstream that is"},
		{"parent's words", []byte{byte(ipc.KindOf(new(work.Drain)))}, 0, "may not be sent by the worker"},
		{"leftover", append(done, 0), 0, "9 bytes"},
		{"descriptor where none belongs", done, 1, "came with 1 descriptors"},
		{"as many descriptors as the buffer takes", done, ipc.MaxFDs, fmt.Sprintf("came with %d descriptors", ipc.MaxFDs)},
		{"more descriptors than the buffer takes", done, ipc.MaxFDs + 9, "cut off"},
		{"longer than a message may be", make([]byte, ipc.MaxMessage+1), 0, "longer than"},
		{"far longer", make([]byte, 4*ipc.MaxMessage), 0, "longer than"},
		{"descriptor with a zero byte", []byte{0}, 1, "not in the protocol table"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent, worker := pair(t, ipc.Serving)
			before := descriptors(t)
			var oob []byte
			if tt.fds > 0 {
				fds := make([]int, tt.fds)
				for i := range fds {
					fds[i] = 2
				}
				oob = unix.UnixRights(fds...)
			}
			if err := unix.Sendmsg(int(worker.Fd()), tt.frame, oob, nil, 0); err != nil {
				t.Fatal(err)
			}
			_, err := parent.Receive()
			var v *ipc.Violation
			if !errors.As(err, &v) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a violation with %q", err, tt.want)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
}

// TestOtherBuild checks a process that receives its first message from a
// process of another build. The error must say that the programs are from
// different builds, whatever the message contains.
func TestOtherBuild(t *testing.T) {
	for _, frame := range [][]byte{
		append([]byte{byte(ipc.KindOf(new(ipc.Setup))), 13, 0, 0, 0}, make([]byte, 300)...),
		{byte(ipc.KindOf(new(ipc.Setup))), 13, 0, 0, 0}, // too short for a Setup of this build
		{250, 13, 0, 0, 0},
	} {
		parent, worker := pair(t, ipc.Initial)
		if err := unix.Sendmsg(int(parent.Fd()), frame, nil, nil, 0); err != nil {
			t.Fatal(err)
		}
		_, err := worker.Receive()
		if err == nil || !strings.Contains(err.Error(), "from the same build") {
			t.Fatalf("%s of %d bytes: %v", ipc.Kind(frame[0]), len(frame), err)
		}
		if err := worker.Send(&ipc.Refused{Reason: ipc.TruncateReason(err.Error())}); err != nil {
			t.Fatal(err)
		}
		if m, err := parent.Receive(); err != nil || ipc.KindOf(m.Message) != ipc.KindOf(new(ipc.Refused)) {
			t.Errorf("the parent received %v, %v", m.Message, err)
		}
	}
}

// TestNoNetwork checks that an invalid network is not encoded. The receiver
// would read it as a network that contains every address.
func TestNoNetwork(t *testing.T) {
	if _, err := (work.Setup{Admission: work.Admission{Exempt: make([]netip.Prefix, 1)}}).Pack(); err == nil {
		t.Error("the message was sent")
	}
}

// descriptors counts this process's open descriptors.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestSendKeepsToTheTable(t *testing.T) {
	parent, _ := pair(t, ipc.Initial)
	for _, m := range []ipc.Message{&work.Drain{}, &work.ConnectionDone{}, &ipc.Ready{}, &ipc.Ping{}} {
		if err := parent.Send(m); err == nil {
			t.Errorf("%s was sent in the first phase", ipc.KindOf(m))
		}
	}
	if err := parent.Send(&ipc.Setup{Privileged: []string{strings.Repeat("x", 300)}}); err == nil {
		t.Error("a text beyond its limit was sent")
	}
}

// TestPeerGone sends several messages to a peer that has exited. Each must fail
// because the peer is gone, not because the message is out of order.
func TestPeerGone(t *testing.T) {
	parent, fd, err := ipc.Pair(ipc.Parent, ipc.Keeper)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	unix.Close(fd)
	for _, tt := range []struct {
		m   ipc.Message
		fds []int
	}{{&ipc.ServiceSetup{}, nil}, {&ipc.Attributes{}, nil}, {&ipc.SecretKeys{}, []int{0, 0, 0, 0, 0, 0, 0}}} {
		if err := parent.TrySend(tt.m, tt.fds...); err == nil || ipc.IgnoreClosed(err) != nil {
			t.Errorf("%s: %v", ipc.KindOf(tt.m), err)
		}
	}
}

// TestFullChannel checks that TrySend returns ErrFull when the channel is full
// because the peer does not read.
func TestFullChannel(t *testing.T) {
	parent, worker := pair(t, ipc.Serving)
	sent := 0
	for ; sent < 100_000; sent++ {
		if err := parent.TrySend(&ipc.Ping{}); err == ipc.ErrFull {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if sent == 100_000 {
		t.Fatal("the channel never became full")
	}
	if err := parent.TrySend(&work.Drain{}); err != ipc.ErrFull {
		t.Errorf("Drain into a full channel: %v, want ErrFull", err)
	}
	if parent.Phase() != ipc.Serving {
		t.Errorf("a message that was not sent changed the phase to %s", parent.Phase())
	}
	for range sent {
		if _, err := worker.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if err := parent.TrySend(&work.Drain{}); err != nil {
		t.Errorf("after the channel was emptied: %v", err)
	}
}

// TestTrySendBesideSend checks that TrySend returns at once while a Send waits
// for room. Pings are sent with TrySend. If TrySend waited, a stopped peer
// would not be noticed.
func TestTrySendBesideSend(t *testing.T) {
	parent, _ := pair(t, ipc.Serving)
	for parent.TrySend(&ipc.Ping{}) == nil {
	}
	sendResult := make(chan error, 1)
	go func() { sendResult <- parent.Send(&ipc.Ping{}) }()
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		result := make(chan error, 1)
		go func() { result <- parent.TrySend(&ipc.Ping{}) }()
		select {
		case err := <-result:
			if err != ipc.ErrFull {
				t.Fatalf("%v, want ErrFull", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("TrySend waits for the Send that waits for room")
		}
	}
	parent.Close()
	if err := <-sendResult; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Send into a channel that was closed: %v", err)
	}
}

func TestOpenRefusesOtherDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := ipc.Open(int(r.Fd()), ipc.Worker, ipc.Parent); err == nil {
		t.Error("a pipe was accepted as a channel")
	}
}

// TestLastWords checks that the last message of a peer is received, even if the
// peer exits without reading all messages that were sent to it, and that another
// message to it fails because the peer is gone.
func TestLastWords(t *testing.T) {
	parent, worker := pair(t, ipc.Serving)
	if err := parent.Send(new(work.Drain)); err != nil {
		t.Fatal(err)
	}
	if err := worker.Send(&work.ConnectionTaken{ID: 7}); err != nil {
		t.Fatal(err)
	}
	worker.Close()
	if err := parent.Send(new(work.Drain)); err == nil || ipc.IgnoreClosed(err) != nil {
		t.Errorf("sending to the peer that is gone: %v", err)
	}
	r, err := parent.Receive()
	if m, ok := r.Message.(*work.ConnectionTaken); !ok || m.ID != 7 {
		t.Errorf("%+v, %v", r.Message, err)
	}
	if r, err := parent.Receive(); err != io.EOF {
		t.Errorf("then %+v, %v", r.Message, err)
	}
}
