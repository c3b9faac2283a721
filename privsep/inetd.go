package privsep

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"schedrestd/ipc"
	"schedrestd/privsep/inetd"
)

// Inetd serves the one client at standard input and output through one worker.
// It returns nil when the client's input has ended and every request is
// answered, whatever the answers were. An error means that the service itself
// failed.
//
// If in is a connected socket, the worker reads from it and writes to it.
// Otherwise the worker writes the answers to out. The first signal makes the
// worker finish the request in progress. A second signal ends the worker.
func Inetd(signals <-chan os.Signal, c Config, in, out *os.File) error {
	runtime.GOMAXPROCS(1)                           // this process starts others and waits: fewer threads need to be started
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1) // with one client there is nothing to count
	client, err := inetd.Meet(in, out)
	if err != nil {
		return err
	}
	defer client.Leave()
	c.Setup.Unhurried = client.Network == ipc.Stdio
	if err := c.check(); err != nil {
		return err
	}
	who, refused, err := client.ServeAs(&c.WholePlan)
	if err != nil {
		return err
	}
	if refused != nil { // a worker answers
		c.Log.Warn("client refused", "uid", client.UID, "gid", client.GID, "because", refused)
		who.Identity = c.anyWorker(who)
	}
	c.kernelTells = client.Network != ipc.TCP
	m := newMonitor(c, who)
	defer m.close()
	if err := m.begin(nil); err != nil {
		return err
	}
	m.config.Secrets.Tokens.Key = "" // a keeper takes longer to start than a daemon to verify the token
	m.client, m.clientFD = client.Streams()
	m.peers[m.client.ID] = who.Identity
	m.parts, m.ready = m.spawner.Parts(), func() {}
	return m.loop(signals)
}
