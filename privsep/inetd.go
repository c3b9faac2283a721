package privsep

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"schedrestd/ipc"
	"schedrestd/privsep/inetd"
)

// Inetd serves one client on standard input and output, with one worker. It
// returns nil when the client's input has ended and every request has been
// answered. It returns an error if the service itself failed, or if an answer to
// a pipe, a file or a terminal was an error.
//
// The worker reads requests from standard input. If standard input is the
// client's connection, the worker sends the answers there. Otherwise it writes
// the answers to standard output. After the first signal, the worker finishes
// the request in progress and exits. A second signal kills the worker.
func Inetd(signals <-chan os.Signal, c Config, in, out *os.File) error {
	runtime.GOMAXPROCS(1)                           // this process only starts others and waits, so it needs few threads
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1) // SIGUSR1 logs counters, and with one client there are none
	client, err := inetd.NewClient(in, out)
	if err != nil {
		return err
	}
	defer client.RestoreBlocking()
	c.Setup.LongTimeouts = client.Network == ipc.Stdio
	service, refusal, err := client.ServeAs(&c.PackedPlan)
	if err != nil {
		return err
	}
	if refusal != "" { // a worker with the default identity sends the refusal to the client
		c.Log.Warn("connection refused", "listener", client.Listener, "peer", service.Name, "because", refusal)
		service.Identity = c.defaultIdentity(service)
	}
	c.hasPeerCreds = client.Network != ipc.TCP
	m := newMonitor(c, service)
	defer m.close()
	if err := m.prepare(nil); err != nil {
		return err
	}
	m.config().Secrets.Tokens.Key = "" // a daemon verifies the token faster than a keeper would start
	m.inetdClient, m.inetdFDs = client.Streams()
	m.confinementParts, m.onReady = m.confinedSpawner.Parts(), func() {}
	return m.loop(signals)
}
