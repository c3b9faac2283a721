package privsep

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	own "schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/security/sandbox"
)

// compromised is a dispatcher that an attacker controls. It starts like an
// honest dispatcher, and breaks the protocol as soon as it has received the
// setup of the first generation of workers.
type compromised struct {
	parent *ipc.Channel
	part   string
	build  uint32
}

// violations lists messages of a compromised dispatcher. The want field is the
// reason that the parent logs when it kills the dispatcher because of the
// message.
var violations = map[string]struct {
	send func(generation uint32) []ipc.Message
	want string
}{
	"another generation's process": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Worker, Generation: g + 1, Threads: 1}}
	}, "requested process 1 of generation 2 with 1 threads"},
	"too many threads": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Worker, Generation: g, Threads: 1 << 20}}
	}, "with 1048576 threads"},
	"no threads": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Worker, Generation: g}}
	}, "with 0 threads"},
	"a number twice": {func(g uint32) []ipc.Message {
		start := &ipc.StartProcess{Number: 5, Role: ipc.Resolver, Generation: g, Threads: 1}
		return []ipc.Message{start, start}
	}, "requested process 5"},
	"an auditor without an audit log": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Auditor, Generation: g, Threads: 1}}
	}, "without an audit log"},
	"a process that reads files, although no output is read": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Output, Generation: g, Threads: 1}}
	}, "for no user whom the kernel or the keeper has named"},
	"a process that gets credentials, although none does": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Credential, Generation: g, Client: 1, Threads: 1}}
	}, "for no user whom the kernel or the keeper has named"},
	"CheckLogFile without an audit log": {func(uint32) []ipc.Message { return []ipc.Message{new(ipc.CheckLogFile)} }, "sent CheckLogFile"},
	"another generation's outcome": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.GenerationResult{ID: g + 1, Result: ipc.Result{OK: true}}}
	}, "sent GenerationResult for generation 2, which is not being built"},
	"an outcome twice": {func(g uint32) []ipc.Message {
		o := &ipc.GenerationResult{ID: g, Result: ipc.Result{OK: true}}
		return []ipc.Message{o, o}
	}, "sent GenerationResult for generation 1, which is not being built"},
	"the keys of a generation in force": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.GenerationResult{ID: g, Result: ipc.Result{OK: true}}, &ipc.StartProcess{Number: 1, Role: ipc.Keeper, Generation: g, Threads: 1}}
	}, "with the role keeper"},
	"two roles at once": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Worker | ipc.Keeper, Generation: g, Threads: 1}}
	}, "with the role roles 0b110"},
	"another dispatcher": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.StartProcess{Number: 1, Role: ipc.Dispatcher, Generation: g, Threads: 1}}
	}, "with the role dispatcher"},
	"Pong unasked": {func(uint32) []ipc.Message { return []ipc.Message{&ipc.Pong{Number: 9}} }, "sent Pong 9, which was not requested"},
	"questions without reading the answers": {func(uint32) []ipc.Message {
		return slices.Repeat([]ipc.Message{&ipc.SecretKeysResult{KeysResult: ipc.KeysResult{Reason: "no"}}}, 3000)
	}, "has not read its channel for 5s"},
	"generations without end": {func(g uint32) []ipc.Message {
		return []ipc.Message{&ipc.GenerationResult{ID: g, Result: ipc.Result{OK: true}}, &ipc.RenewGeneration{ID: g}}
	}, "sent RenewGeneration with 257 generations that it has not released"},
	"InetdResult without a client": {func(uint32) []ipc.Message { return []ipc.Message{&ipc.InetdResult{Result: ipc.Result{OK: true}}} }, "sent InetdResult"},
}

// playCompromised acts as a dispatcher that sends one of the violations.
func playCompromised(part string) int {
	if part == sendsNothing {
		time.Sleep(time.Hour)
	}
	return own.Main(ipc.Dispatcher, func(ipc.ServiceSetup) (sandbox.Layers, error) { return sandbox.Layers{}, nil },
		func(parent *ipc.Channel) own.Service { return &compromised{parent: parent, part: part} })
}

func (c *compromised) Handle(m ipc.Received) (bool, error) {
	switch msg := m.Message.(type) {
	case *ipc.BuildGeneration:
		c.build = msg.ID
	case *ipc.ArrivalChannel:
		if c.part != readsNoConnections {
			slog.Info(compromisedServes)
			go c.answerPings(m.FDs[0])
		}
	case *ipc.ProcessStarted:
		slog.Info("got a worker", "number", msg.Number)
	case *ipc.StartFailed:
		slog.Info("got no worker", "number", msg.Number, "error", msg.Err())
	case *ipc.GenerationSetup:
		if c.part == readsNoConnections || c.part == doesNotStop || c.part == startsForAbsentUser || c.part == readsForAbsentUser {
			return true, c.parent.Send(&ipc.GenerationResult{ID: c.build, Result: ipc.Result{OK: true}})
		}
		for _, m := range violations[c.part].send(c.build) {
			if err := c.parent.Send(m); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// Parts of a compromised dispatcher that breaks no rule of the protocol.
const (
	readsNoConnections  = "reads no connections"
	doesNotStop         = "does not stop"
	sendsNothing        = "sends nothing"
	startsForAbsentUser = "starts workers for a user who has disconnected"
	readsForAbsentUser  = "reads the files of a user who has disconnected"
	compromisedServes   = "the compromised dispatcher serves"
)

// answerPings answers the Pings on the channel fd, on which connections arrive.
func (c *compromised) answerPings(fd int) {
	from, err := ipc.Open(fd, ipc.Dispatcher, ipc.Acceptor)
	for err == nil {
		var m ipc.Received
		m, err = from.Receive()
		if ping, ok := m.Message.(*ipc.ArrivalPing); ok {
			err = c.parent.Send(&ipc.Pong{Number: ping.Number})
		}
		if arrival, ok := m.Message.(*ipc.Arrival); ok && err == nil {
			err = c.startTwice(arrival, m.FDs[0])
		}
	}
}

// startTwice requests a process for a connection, a worker or one that reads
// files, and another one after the client has closed the connection. It never reports that, and keeps its copy
// of the descriptor.
func (c *compromised) startTwice(a *ipc.Arrival, fd int) error {
	role := ipc.Worker
	if c.part == readsForAbsentUser {
		role = ipc.Output
	}
	start := &ipc.StartProcess{Number: 1, Role: role, Generation: c.build, Client: a.ID, Threads: 1, Requests: 1}
	if err := c.parent.Send(start); err != nil {
		return err
	}
	for p := []unix.PollFd{{Fd: int32(fd)}}; p[0].Revents&unix.POLLHUP == 0; {
		if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
			return err
		}
	}
	start.Number = 2
	return c.parent.Send(start)
}

func (c *compromised) Serve(*own.Client) {}
func (c *compromised) Counters() []any   { return nil }
func (c *compromised) Close()            {}

// TestCompromisedDispatcher checks that the parent kills a dispatcher that asks
// for more than it is allowed, and logs the reason.
func TestCompromisedDispatcher(t *testing.T) {
	var table strings.Builder
	table.WriteString("| sent to the parent | result |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(violations)) {
		fmt.Fprintf(&table, "| %s | is killed: %s |\n", name, violations[name].want)
	}
	checkTable(t, "<!-- attacks of a dispatcher: generated by go test ./integration/privsep -run TestCompromisedDispatcher -update -->\n", "<!-- end of attacks of a dispatcher -->\n", table.String())
	for name, tt := range violations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := launch(t, plainUser(t), testConfig{Silence: hangLimit, Argv: argv{ipc.Dispatcher: {"compromised", name}}})
			switch name {
			case "an outcome twice", "the keys of a generation in force", "generations without end": // the gateway serves by then
				g.awaitReason("dispatcher exited", tt.want)
				return
			}
			if text, _ := g.failure(); !strings.Contains(text, tt.want) {
				t.Errorf("%q, want %q", text, tt.want)
			}
		})
	}
}

// TestDispatcherDies checks that the parent survives the death of the
// dispatcher, and without a pause serves again on the same listeners.
func TestDispatcherDies(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]user{"without root": plainUser(t), "as root": nil} {
		t.Run(name, func(t *testing.T) {
			c := testConfig{}
			if as == nil {
				needRoot(t)
				c.Service = identityOf("nobody", "nogroup", "")
			}
			g := serve(t, as, c)
			for n := range 3 {
				starts := n + 1
				r := g.await("dispatcher ready", func(map[string]any) bool { starts--; return starts == 0 })
				pid := int(r["pid"].(float64))
				worker := g.workerPID()
				must(t, syscall.Kill(pid, syscall.SIGKILL))
				g.mustGet("/pid")
				deaths := n + 1
				if r := g.await("dispatcher exited", func(map[string]any) bool { deaths--; return deaths == 0 }); r["pause"] != 0. {
					t.Errorf("the parent made a pause of %v", r["pause"])
				}
				await(t, "its worker is gone, too", func() bool { return syscall.Kill(worker, 0) != nil })
			}
		})
	}
}

// TestStoppedDispatcher checks that the parent kills a dispatcher that does not
// read its channel, and that a new dispatcher serves clients.
func TestStoppedDispatcher(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Silence: hangLimit})
	suspend(t, g.dispatcherPID())
	g.await("dispatcher exited", func(r map[string]any) bool {
		return strings.Contains(fmt.Sprint(r["because"]), "has not read its channel for 5s")
	})
	g.mustGet("/pid")
}

// TestAcceptedBeforeTheEnd checks that the gateway, after a signal to stop,
// still answers every connection that it has accepted. This includes
// connections that the dispatcher had not yet received.
func TestAcceptedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{})
	suspend(t, g.dispatcherPID())
	var clients []net.Conn
	for range 20 {
		clients = append(clients, g.dial(t, "GET /pid HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	}
	await(t, "all are accepted", func() bool { return !hasBacklog(t, g.addr) })
	must(t, g.cmd.Process.Signal(syscall.SIGTERM))
	g.await("draining", nil)
	must(t, syscall.Kill(g.dispatcherPID(), syscall.SIGCONT))
	for _, c := range clients {
		if answer := readAll(t, c); !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("%q", answer)
		}
	}
	if status := g.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// hasBacklog reports whether connections wait to be accepted on an IPv4
// address. The kernel shows their number as the listener's receive queue
// (proc_net_tcp).
func hasBacklog(t *testing.T, addr string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprintf(":%04X", netip.MustParseAddrPort(addr).Port())
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); strings.HasSuffix(f[1], port) && f[3] == "0A" {
			return !strings.HasSuffix(f[4], ":00000000")
		}
	}
	t.Fatalf("there is no listener on %s", addr)
	return false
}
