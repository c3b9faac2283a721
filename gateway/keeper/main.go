// Package keeper implements the process that holds the gateway's secrets: the
// private key of its https:// listeners, and the key for HS256 tokens. Workers,
// which read input from the network, ask the keeper to sign their handshakes
// and to verify tokens. An attacker who compromises a worker can make the
// keeper sign handshakes while that worker runs, but never gets a key.
//
// The keeper starts like a worker, with an identity of its own. The parent
// gives it the keys and the certificates as open files. After the start, the
// dispatcher has the other end of the channel, and gives the keeper a
// channel to each worker. The keeper signs only messages that a TLS server
// signs in a handshake. A worker must send the whole message, because the
// keeper could not check a digest.
//
// The keeper opens no file by name, uses no network, and parses only PEM, the
// protocol's messages and the messages to sign. It exits when its channel to
// the dispatcher closes.
package keeper

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename sets the name of the process. It must be called from an init function.
func Rename() { self.Rename("schedrestd-keep") }

// Main runs the keeper and returns the exit status of the process: 0 if the
// dispatcher closed the channel, 1 after an error, 2 if the parent did not
// start the process.
func Main() int {
	// A terminal or a service manager sends these signals to all processes, but
	// only the parent handles them.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1)
	channel, err := ipc.Open(ipc.ServiceChannelFD, ipc.Keeper, ipc.Managers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	if err := begin(channel); err != nil {
		slog.Error("keeper not started", "error", err)
		if !errors.Is(err, io.EOF) {
			_ = channel.Send(ipc.NewRefused(err.Error()))
		}
		return 1
	}
	return newKeeper(channel).run()
}

// begin receives the setup, confines this process, checks its attributes,
// activates the sandbox, and sends Ready.
func begin(channel *ipc.Channel) error {
	if err := self.SetUpNamespaces(); err != nil {
		return err
	}
	setup, expect, err := query.ReceiveSetup[*ipc.ServiceSetup](channel)
	if err != nil {
		return err
	}
	slog.SetDefault(newLog(os.Stderr, slog.Level(setup.LogLevel)))
	if err := self.LimitTasks(uint64(setup.Tasks)); err != nil {
		return err
	}
	if err := self.Confine(uint64(setup.Files), false); err != nil {
		return err
	}
	if err := self.VerifyAttributes(expect, uint64(setup.Files), uint64(setup.Tasks)); err != nil {
		return err
	}
	options := sandbox.Options{Kind: sandbox.Keeper, Audit: setup.Sandbox&ipc.SandboxAudit != 0}
	enforced, err := sandbox.Close(options, setup.Sandbox&ipc.SandboxRequire != 0)
	if err != nil {
		return err
	}
	return channel.Send((*ipc.Ready)(&enforced))
}

// newLog returns a logger for lines that the dispatcher reads
// (gateway/dispatcher/relay). The lines begin with the level and have no time,
// because the dispatcher adds the time.
func newLog(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}
