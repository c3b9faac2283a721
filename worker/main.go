// Package worker is the process that reads what comes from the network. It is
// never root, holds no secret key, and serves one identity.
//
// It starts with its final uid, gid and groups. The parent tells it what to
// expect; it drops what it does not need, asks the kernel whether everything is
// as expected, and refuses to serve otherwise. Then it serves HTTP on the
// connections that the parent passes to it. It exits when its channel closes,
// because only the parent counts connections.
//
// What it serves is given to Main; this package knows no route.
package worker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/security"
	"schedrestd/security/seal"
	"schedrestd/security/self"
)

// Build makes the handler that the worker serves, from its Setup, with Tokens
// to verify tokens and a Broker for what the sandbox forbids. It runs in the
// sandbox, so it can open only what the serving user may open. It logs to
// slog.Default.
type Build func(work.Setup, *Tokens, *Broker) (http.Handler, error)

// Rename gives the process a name that says what it does. Call it from an init
// function.
func Rename() {
	name := "schedrestd-work"
	if _, ok := NamespaceInitArg(os.Args); ok {
		name = "schedrestd-init"
	}
	self.Rename(name)
}

// Main runs a worker process and returns its exit status: 0 after it drained, 1
// when it refused to serve or lost its parent, 2 when the parent did not start
// it.
func Main(build Build) int {
	// Signals that a terminal or a service manager sends to all are for the
	// parent.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	asked := onRequest()
	channel, err := ipc.Open(ipc.WorkerFD, ipc.Worker, ipc.Parent)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	log := &lines{out: os.Stderr}
	defer log.flush()
	s, err := begin(channel, build, log)
	if err != nil {
		slog.Error("worker does not serve", "error", err)
		if !errors.Is(err, io.EOF) {
			_ = channel.Send(ipc.Refuse(reason(err)))
		}
		return 1
	}
	go s.showAt(asked)
	return s.run()
}

// reason returns the text that the parent gets.
func reason(err error) string {
	if hint := errs.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// begin goes from the first message to Ready, in this order: settle, receive
// the setup, confine, prove, build, close the sandbox, send Ready.
func begin(channel *ipc.Channel, build Build, log *lines) (*server, error) {
	if err := self.Settle(); err != nil {
		return nil, err
	}
	packed, expect, err := query.ReceiveSetup[*ipc.Setup](channel)
	if err != nil {
		return nil, err
	}
	slog.SetDefault(slog.New(newLog(log, slog.Level(packed.LogLevel))))
	setup, err := work.Unpack(*packed)
	if err != nil {
		return nil, err
	}
	if err := self.LimitTasks(uint64(setup.Tasks)); err != nil {
		return nil, err
	}
	if err := self.Confine(uint64(setup.Files), false); err != nil {
		return nil, err
	}
	if err := self.Prove(expect); err != nil {
		return nil, err
	}
	if setup.Metrics {
		metered.Store(newMeter(channel.Send))
	}
	tokens, broker := NewTokens(), NewBroker(channel.Send)
	handler, err := build(setup, tokens, broker)
	if err != nil {
		return nil, err
	}
	sealed, err := CloseSandbox(setup.Seal)
	if err != nil {
		return nil, err
	}
	if err := channel.Send((*ipc.Ready)(&sealed)); err != nil {
		return nil, err
	}
	return newServer(channel, &setup, handler, tokens, broker), nil
}

// The sandbox knows the channel by its number; this fails to compile when the
// number differs.
const _ = uint(seal.Channel-ipc.WorkerFD) + uint(ipc.WorkerFD-seal.Channel)

// CloseSandbox closes the sandbox as the parent asked, and returns what the
// kernel enforces.
func CloseSandbox(s ipc.Seal) (security.Sealed, error) {
	return seal.Close(seal.Options{Unix: s&ipc.SealUnix != 0, Audit: s&ipc.SealAudit != 0}, s&ipc.SealRequire != 0)
}
