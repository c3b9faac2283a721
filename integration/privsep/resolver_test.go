package privsep

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	resolving "schedrestd/gateway/resolver"
	serving "schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
)

// playResolver runs the resolver that part names: the real one, one that has a
// name for every uid, or one that fails or breaks the protocol.
func playResolver(part string) int {
	switch part {
	case "good":
		return resolving.Main()
	case "resolves any name": // tests have no accounts
		return serving.Main(ipc.Resolver, func(ipc.ServiceSetup) (sandbox.Layers, error) { return sandbox.Layers{}, nil }, func(parent *ipc.Channel) serving.Service { return anyNameResolver{parent} })
	case "crash":
		panic("no resolver here")
	case "sends nothing":
		time.Sleep(time.Hour)
	}
	c, err := ipc.Open(ipc.ServiceChannelFD, ipc.Resolver, ipc.Managers)
	if err != nil {
		return 9
	}
	for range 2 {
		if _, err := c.Receive(); err != nil {
			return 9
		}
	}
	if part == "refuses" {
		c.Send(&ipc.Refused{Reason: ipc.TruncateReason("no\x1bresolver")})
		return 1
	}
	c.Send(new(ipc.Ready))
	switch part {
	case "unrequested pong":
		sendRaw(ipc.KindOf(new(ipc.Pong)), 8, 0)
	case "a worker's message":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 8, 0)
	case "a keeper's message":
		sendRaw(ipc.KindOf(new(ipc.KeysResult)), 7, 0)
	case "a host's addresses that were not requested": // this has no effect
		for id := range uint64(3) {
			c.Send(&work.HostAddresses{ID: id, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.66")}})
		}
		return 3
	case "an address that is none": // its length is 0
		sendRaw(ipc.KindOf(new(work.HostAddresses)), 12, 0)
	case "descriptor":
		sendRaw(ipc.KindOf(new(ipc.Pong)), 8, 1)
	case "reports every worker":
		for range 101 {
			c.Send(&work.WorkerViolation{Number: 1 << 20, Reason: "x"})
		}
	case "exits":
		return 3
	}
	time.Sleep(time.Hour)
	return 0
}

// TestHostileResolvers checks that the gateway does not start if the resolver
// can't serve. If the resolver breaks the protocol later, it must be killed,
// the log must contain the reason, and the gateway must continue to serve.
func TestHostileResolvers(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"crash":         "the resolver exited unexpectedly: exit status 2",
		"refuses":       `the resolver cannot serve: no\x1bresolver`,
		"sends nothing": "the resolver was terminated: was not ready within 5s",
	} {
		t.Run(part, func(t *testing.T) {
			c := testConfig{Argv: argv{ipc.Resolver: {part}}}
			if part == "sends nothing" {
				c.StartLimit = hangLimit
			}
			g := launch(t, plainUser(t), c)
			if text, _ := g.failure(); text != want {
				t.Errorf("%q, want %q", text, want)
			}
		})
	}
	for part, want := range map[string]string{
		"unrequested pong":                           "sent Pong 0, which was not requested",
		"a worker's message":                         "ConnectionDone of the resolver may not be sent by the resolver to the dispatcher",
		"a keeper's message":                         "KeysResult of the resolver may not be sent by the resolver to the dispatcher",
		"a host's addresses that were not requested": "the resolver exited unexpectedly: exit status 3",
		"an address that is none":                    "HostAddresses",
		"descriptor":                                 "Pong of the resolver came with 1 descriptors, not 0",
		"reports every worker":                       "reported too many workers",
		"exits":                                      "the resolver exited unexpectedly: exit status 3",
	} {
		t.Run(part, func(t *testing.T) {
			g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Resolver: {part}}})
			g.awaitReason("resolver exited", want)
			g.mustGet("/pid")
		})
	}
}

// TestResolverDies checks that workers get names from the next resolver after
// the first one was killed or stopped.
func TestResolverDies(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Workers: 1, Silence: hangLimit})
	for n, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		g.eventually("a resolver is ready", func() bool { return g.count("resolver ready") == n+1 })
		pid := g.lastPID("resolver ready")
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		g.awaitMany("resolver exited", n+1)
		// Until a new generation takes over, the workers of the old one report
		// that the resolver is gone.
		g.eventually("uid 0 has a name again", func() bool { return g.mustGet("/name?uid=0") == "root" })
	}
}

// anyNameResolver is a resolver that has a name for every uid.
type anyNameResolver struct{ parent *ipc.Channel }

func (e anyNameResolver) Handle(m ipc.Received) (done bool, err error) {
	q, ok := m.Message.(*work.Lookup)
	if ok {
		err = e.parent.Send(nameOf(q))
	}
	return ok, err
}

func (anyNameResolver) Serve(c *serving.Client) {
	c.EachMessage(func(m ipc.Message) (done bool, err error) {
		q, ok := m.(*work.Lookup)
		if ok {
			c.Answer(nameOf(q))
		}
		return ok, nil
	})
}

func (anyNameResolver) Counters() []any { return nil }

func (anyNameResolver) Close() {}

func nameOf(q *work.Lookup) *work.LookupResult {
	return &work.LookupResult{ID: q.ID, Available: true, Name: fmt.Sprint("user", q.Number)}
}

// TestVisitNames checks that an inetd run has a resolver.
func TestVisitNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/pid": "", "/name?uid=0": "root"} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		client, server := os.NewFile(uintptr(pair[0]), "client"), os.NewFile(uintptr(pair[1]), "ours")
		defer client.Close()
		g := launchAt(t, plainUser(t), testConfig{}, server)
		server.Close()
		fmt.Fprintf(client, "GET %s HTTP/1.0\r\n\r\n", path)
		text, err := io.ReadAll(client)
		must(t, err)
		if status := g.wait(); status != 0 || !strings.HasPrefix(string(text), "HTTP/1.0 200 ") || !strings.HasSuffix(string(text), want) {
			t.Errorf("%s: exit status %d, %q", path, status, text)
		}
	}
}

// TestVisitLosesAService checks that a gateway in inetd mode whose resolver is
// killed still answers the request in progress, and then exits.
func TestVisitLosesAService(t *testing.T) {
	t.Parallel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	client, server := os.NewFile(uintptr(pair[0]), "client"), os.NewFile(uintptr(pair[1]), "ours")
	defer client.Close()
	g := launchAt(t, plainUser(t), testConfig{}, server)
	server.Close()
	fmt.Fprint(client, "GET /pid HTTP/1.1\r\nHost: x\r\n\r\n")
	head := make([]byte, len("HTTP/1.1 200 "))
	_, err = io.ReadFull(client, head)
	must(t, err)
	must(t, unix.Kill(int(g.await("resolver ready", nil)["pid"].(float64)), unix.SIGKILL))
	if _, err := io.ReadAll(client); err != nil {
		t.Error(err)
	}
	if status := g.wait(); status != 0 || string(head) != "HTTP/1.1 200 " || g.count("resolver exited") != 1 {
		t.Errorf("exit status %d, %q", status, head)
	}
}
