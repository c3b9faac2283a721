package privsep

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"schedrestd/ipc"
	"schedrestd/privsep/inetd"
)

// Inetd serves one client, at standard input and output, through one worker. It
// returns nil when the client's input has ended and every request is answered,
// even if some answers were errors. It returns an error if the service itself
// failed.
//
// If in is a connected socket, the worker reads from it and writes to it.
// Otherwise the worker writes the answers to out. After a first signal, the
// worker finishes the request in progress and exits. A second signal kills it.
func Inetd(signals <-chan os.Signal, c Config, in, out *os.File) error {
	runtime.GOMAXPROCS(1)                           // this process only starts others and waits; a low limit saves the start of threads
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1) // with one client there are no counters to log
	client, err := inetd.NewClient(in, out)
	if err != nil {
		return err
	}
	defer client.RestoreBlocking()
	c.Setup.LongTimeouts = client.Network == ipc.Stdio
	if err := c.checkNumbers(); err != nil {
		return err
	}
	service, refusal, err := client.ServeAs(&c.PackedPlan)
	if err != nil {
		return err
	}
	if refusal != nil { // a worker with the default identity tells the client
		c.Log.Warn("client refused", "uid", client.UID, "gid", client.GID, "because", refusal)
		service.Identity = c.defaultIdentity(service)
	}
	c.hasPeerCreds = client.Network != ipc.TCP
	m := newMonitor(c, service)
	defer m.close()
	if err := m.prepare(nil); err != nil {
		return err
	}
	m.config.Secrets.Tokens.Key = "" // the start of a keeper would take longer than a daemon takes to verify the token
	m.inetdClient, m.inetdFDs = client.Streams()
	m.peers[m.inetdClient.ID] = service.Identity
	m.confinementParts, m.onReady = m.confinedSpawner.Parts(), func() {}
	return m.loop(signals)
}
