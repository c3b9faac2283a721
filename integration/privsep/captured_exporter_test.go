package privsep

import (
	little "encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/exporter"
	own "schedrestd/gateway/service"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/metric"
	"schedrestd/security/sandbox"
)

// counts encodes a Counts message with the given number of requests in
// progress. It sets each of the given cells of the metrics to n.
func counts(requests uint32, n uint32, cells ...int) []byte {
	raw := little.LittleEndian.AppendUint32([]byte{byte(ipc.KindOf(new(query.Counts)))}, requests)
	for range 4 { // calls, waits, streams, readers
		raw = little.LittleEndian.AppendUint32(raw, 0)
	}
	raw = little.LittleEndian.AppendUint16(raw, uint16(len(cells)))
	for _, cell := range cells {
		raw = little.LittleEndian.AppendUint32(little.LittleEndian.AppendUint16(raw, uint16(cell)), n)
	}
	return raw
}

// sends returns an attack that sends one message.
func sends(name string, raw func() []byte, fds int) attack {
	return attack{name, func() string { sendFrame(raw(), fds); return wait() }}
}

// countAttacks lists messages with which a worker falsifies counters. The first
// message shows how far a worker can change a counter.
var countAttacks = []attack{
	{"the largest number for a counter of requests", func() string {
		sendFrame(counts(0, 1<<32-1, metric.FromWorkers), 0)
		return "is added"
	}},
	{"the largest number for the last cell, which no metric uses", func() string {
		sendFrame(counts(0, 1<<32-1, metric.MaxCells-1), 0)
		return "is not shown"
	}},
	{"a million requests in progress", func() string { sendFrame(counts(1<<20, 0), 0); return "are shown until the worker reports again" }},
	sends("more than a million requests in progress", func() []byte { return counts(1<<20+1, 0) }, 0),
	sends("more than a million readers of lists", func() []byte {
		return append(little.LittleEndian.AppendUint32(counts(0, 0)[:17], 1<<20+1), 0, 0)
	}, 0),
	sends("a counter that belongs to the dispatcher: workers that were killed by their sandbox", func() []byte { return counts(0, 1, metric.WorkersExited.Cell(metric.ExitForbidden)) }, 0),
	sends("a counter twice in a message", func() []byte { return counts(0, 1, metric.FromWorkers, metric.FromWorkers) }, 0),
	{"an endless stream of counts", func() string {
		for {
			sendFrame(counts(0, 1, metric.FromWorkers), 0)
		}
	}},
	sends("Counts cut short", func() []byte { return counts(0, 1, metric.FromWorkers)[:26] }, 0),
	sends("Counts with trailing bytes", func() []byte { return append(counts(0, 1, metric.FromWorkers), 0) }, 0),
	sends("the exporter's request, Scrape", func() []byte { return []byte{byte(ipc.KindOf(new(query.Scrape)))} }, 0),
	frame("the dispatcher's answer, Samples", ipc.KindOf(new(query.Samples)), 3, 0),
	frame("a socket for scrapes (MetricsFD)", ipc.KindOf(new(ipc.MetricsFD)), 0, 0),
}

// exporterAttacks lists the attacks of a compromised exporter. The first attack
// shows which text an exporter can send to the servers that scrape it.
var exporterAttacks = slices.Concat([]attack{
	{"false numbers and labels for the servers that scrape it", func() string { return "are sent" }},
	{"a request for the numbers, as an intact exporter sends it", func() string { sendFrame([]byte{byte(ipc.KindOf(new(query.Scrape)))}, 0); return "is answered" }},
}, attacksNamed(
	"read /etc/shadow", "read /proc/1/environ", "make a file in /tmp", "leave its root directory through a descriptor", "list a directory",
	"signal the parent", "kill all processes that it may signal", "open a process (pidfd_open)", "read the memory of another process", "debug another process (ptrace)",
	"fork", "execute /bin/sh", "make a program in memory", "become root", "unshare a user namespace", "enter a namespace",
	"map memory that is writable and executable", "io_uring", "bpf", "keyctl", "install another filter",
	"a socket: IPv4", "a socket: UNIX", "a socket: netlink", "make a pair of sockets",
), []attack{
	{"connect from the socket for scrapes", func() string { return onListener(unix.SYS_CONNECT, address(unix.AF_UNIX), 16) }},
	{"bind that socket to another address", func() string { return onListener(unix.SYS_BIND, address(unix.AF_UNIX), 16) }},
	{"listen on that socket with another queue length", func() string { return onListener(unix.SYS_LISTEN, 1) }},
	{"shut that socket down", func() string { return onListener(unix.SYS_SHUTDOWN, unix.SHUT_RDWR) }},
	{"shut that socket down for reading", func() string { return onListener(unix.SYS_SHUTDOWN, unix.SHUT_RD) }},
	{"shut that socket down for writing", func() string {
		return "returns " + onListener(unix.SYS_SHUTDOWN, unix.SHUT_WR) + ": another scrape is still answered"
	}},
	{"endless requests for the numbers (Scrape)", func() string {
		for {
			sendFrame([]byte{byte(ipc.KindOf(new(query.Scrape)))}, 0)
		}
	}},
	frame("a message that is not in the protocol table", 99, 0, 0),
	frame("kind 0", 0, 0, 0),
	frame("Scrape with trailing bytes", ipc.KindOf(new(query.Scrape)), 1, 0),
	frame("Scrape with a descriptor", ipc.KindOf(new(query.Scrape)), 0, 1),
	frame("Samples, as if from the dispatcher", ipc.KindOf(new(query.Samples)), 3, 0),
	frame("Counts, as if from a worker", ipc.KindOf(new(query.Counts)), 22, 0),
	frame("WorkerViolation, to have a worker killed", ipc.KindOf(new(work.WorkerViolation)), 6, 0, 0, 1),
	frame("StartProcess, to have a process started", ipc.KindOf(new(ipc.StartProcess)), 26, 0),
	frame("RenewGeneration, to have the generation replaced", ipc.KindOf(new(ipc.RenewGeneration)), 4, 0),
	frame("Dial, for a connection to a daemon", ipc.KindOf(new(work.Dial)), 12, 0),
	frame("Lookup, for a name", ipc.KindOf(new(work.Lookup)), 15, 0),
	frame("Verify, to guess a token", ipc.KindOf(new(query.Verify)), 42, 0),
	frame("Sign, for a handshake", ipc.KindOf(new(query.Sign)), 16, 0),
	frame("ConnectionDone, for a client's connection", ipc.KindOf(new(work.ConnectionDone)), 8, 0),
	frame("keys of its own (SecretKeys)", ipc.KindOf(new(ipc.SecretKeys)), 4, 0),
	frame("KeysResult, as if from the keeper", ipc.KindOf(new(ipc.KeysResult)), 4, 0, 0, 1),
	frame("Ready for the second time", ipc.KindOf(new(ipc.Ready)), 4, 0),
	frame("Pong without Ping", ipc.KindOf(new(ipc.Pong)), 8, 0),
	frame("an oversized message", ipc.KindOf(new(query.Scrape)), 60_000, 0),
	{"its side of the channel shut down", func() string { _ = unix.Shutdown(ipc.ServiceChannelFD, unix.SHUT_WR); return wait() }},
	{"an empty packet", func() string { _, _ = unix.Write(ipc.ServiceChannelFD, nil); return wait() }},
})

// attacksNamed returns the attacks of a captured worker that have the given
// names.
func attacksNamed(names ...string) (list []attack) {
	for _, name := range names {
		list = append(list, attacks[slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })])
	}
	return list
}

// onListener makes a system call on the socket that listens for scrapes.
func onListener(number uintptr, args ...uintptr) string {
	for fd := ipc.ServiceChannelFD + 1; fd < 100; fd++ {
		if is, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || is != unix.SOCK_STREAM {
			continue
		}
		if _, err := unix.Getpeername(fd); err == unix.ENOTCONN {
			return sys(number, append([]uintptr{uintptr(fd)}, args...)...)
		}
	}
	return "NO SOCKET FOUND"
}

// playExporter runs the real exporter, or a compromised one in the complete
// sandbox. An HTTP request names an attack, and the compromised exporter
// carries it out.
func playExporter(args []string) int {
	if len(args) == 0 {
		return exporter.Main()
	}
	confine := func(s ipc.ServiceSetup) (sandbox.Layers, error) {
		return sandbox.Close(sandbox.Options{Kind: sandbox.Exporter}, false)
	}
	return own.Main(ipc.Exporter, confine, func(*ipc.Channel) own.Service { return compromisedExporter{} })
}

type compromisedExporter struct{}

func (compromisedExporter) Handle(m ipc.Received) (bool, error) {
	if _, ok := m.Message.(*ipc.MetricsFD); ok {
		f := os.NewFile(uintptr(m.FDs[0]), "metrics")
		l, err := net.FileListener(f)
		if err != nil {
			return true, err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		mux := http.NewServeMux()
		mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `invented{user="alice"} 1`) })
		mux.HandleFunc("/attack", func(w http.ResponseWriter, r *http.Request) { captureOf(exporterAttacks, w, r) })
		go func() { _ = http.Serve(l, mux) }()
	}
	return true, nil
}

func (compromisedExporter) Serve(*own.Client) {}
func (compromisedExporter) Counters() []any   { return nil }
func (compromisedExporter) Close()            {}

const (
	beginCounting  = "<!-- attacks on the metrics: generated by go test ./integration/privsep -run TestCaptured -update -->\n"
	endCounting    = "<!-- end of attacks on the metrics -->\n"
	beginExporting = "<!-- attacks of an exporter: generated by go test ./integration/privsep -run TestCaptured -update -->\n"
	endExporting   = "<!-- end of attacks of an exporter -->\n"
)

// serveMetrics returns a gateway with metrics, and a client for its exporter.
func serveMetrics(t *testing.T, as user, c testConfig) (*gateway, *http.Client) {
	t.Helper()
	path := filepath.Join(socketDir(t, sockettest.Dir(t), as), "metrics")
	c.Metrics = listens("unix:" + path)
	c.Setup = packed(work.Setup{Setup: ipc.Setup{JWT: true}, Metrics: true})
	g := serve(t, as, c)
	g.await("exporter ready", nil)
	return g, client("unix", path, false)
}

// asRootAndAsUser runs a test with two gateways: one that an ordinary user
// started, and one that root started.
func asRootAndAsUser(t *testing.T, test func(*testing.T, user, testConfig)) {
	needSandbox(t)
	t.Run("without root", func(t *testing.T) {
		t.Parallel()
		test(t, plainUser(t), testConfig{})
	})
	t.Run("as root", func(t *testing.T) {
		t.Parallel()
		needRoot(t)
		test(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	})
}

// TestCapturedCounts checks that each message with which a captured worker
// falsifies metrics has the effect that docs/generated/ATTACKS*.md states. The exporter
// must answer after each message, and must not have been replaced at the end.
func TestCapturedCounts(t *testing.T) {
	t.Parallel()
	asRootAndAsUser(t, func(t *testing.T, as user, c testConfig) {
		g, scraper := serveMetrics(t, as, c)
		first := int(g.await("exporter ready", nil)["pid"].(float64))
		table := &strings.Builder{}
		fmt.Fprintf(table, "| sent by the worker | result |\n|---|---|\n")
		for _, a := range countAttacks {
			fmt.Fprintf(table, "| %s | %s |\n", a.name, g.attack(a.name))
			g.mustGet("/pid")
			if text, err := get(scraper, "/metrics"); err != nil || !strings.Contains(text, "\nschedrestd_workers 2\n") && !strings.Contains(text, "\nschedrestd_workers 1\n") {
				t.Errorf("after %q: %v: %s", a.name, err, text)
			}
		}
		if text, err := get(scraper, "/metrics"); err != nil || strings.Count(text, "} 4.29496") != 1 {
			t.Errorf("error %v; exactly one counter should have the largest number: %s", err, text)
		}
		if n := g.count("exporter ready"); n != 1 || syscall.Kill(first, 0) != nil {
			t.Errorf("there were %d exporters", n)
		}
		checkTable(t, beginCounting, endCounting, table.String())
	})
}

// TestCapturedExporter checks that each attack of a compromised exporter has
// the effect that docs/generated/ATTACKS*.md states. No attack may end a worker, and the
// gateway must serve clients of the API after each attack.
func TestCapturedExporter(t *testing.T) {
	t.Parallel()
	asRootAndAsUser(t, func(t *testing.T, as user, c testConfig) {
		c.Argv = argv{ipc.Exporter: {"compromised"}}
		g, scraper := serveMetrics(t, as, c)
		if text, err := get(scraper, "/metrics"); err != nil || !strings.HasPrefix(text, "invented") {
			t.Fatalf("%q, %v", text, err)
		}
		table := &strings.Builder{}
		fmt.Fprintf(table, "| attempt | result |\n|---|---|\n")
		for _, a := range exporterAttacks {
			fmt.Fprintf(table, "| %s | %s |\n", a.name, g.attackExporter(scraper, a.name))
			g.mustGet("/pid")
		}
		for _, msg := range []string{"worker exited unexpectedly", "worker killed", "worker terminated"} {
			if n := g.count(msg); n > 0 {
				t.Errorf("%s %d times", msg, n)
			}
		}
		checkTable(t, beginExporting, endExporting, table.String())
	})
}

// attackExporter uses the HTTP client scraper to request an attack from a
// compromised exporter, and returns the outcome.
func (g *gateway) attackExporter(scraper *http.Client, name string) string {
	g.t.Helper()
	exits := g.count("exporter exited")
	g.eventually("an exporter runs", func() bool { return g.count("exporter ready") > exits })
	time.Sleep(250 * time.Millisecond) // if an exporter exits sooner, the dispatcher pauses before it starts the next one
	answer, err := sendAttack(scraper, "/attack?name="+url.QueryEscape(name))
	if err == nil {
		if answer == "EPERM" || answer == "ENOSYS" {
			answer += " from the filter"
		}
		return answer
	}
	var reason string
	g.eventually("the exporter exits of "+name, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := 0
		for _, r := range g.records {
			if r["msg"] == "exporter exited" {
				if n++; n > exits {
					reason = fmt.Sprint(r["because"])
					return true
				}
			}
		}
		return false
	})
	switch {
	case strings.Contains(reason, "forbidden system call"):
		return "is killed by SIGSYS"
	case strings.Contains(reason, "signal 9"):
		return "loses its channel, and exits"
	}
	return "is killed: " + reason
}
