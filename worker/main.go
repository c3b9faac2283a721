// Package worker is the process that reads what comes from the network. It is never
// root, holds no key, and serves one identity.
//
// It is born with its uid, gid and groups, hears from the parent what to expect, takes
// from itself what it can do without, asks the kernel whether all is as expected, and
// refuses to serve otherwise. Then it serves HTTP on the connections that the
// parent hands over. When its channel closes it exits: without the parent nobody
// keeps count of it.
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
	"schedrestd/security"
	"schedrestd/security/seal"
	"schedrestd/security/self"
)

// Build makes what the worker serves out of its Setup, with a way to verify tokens and one to have errands done. It runs in the
// cage, so it can open nothing that needs more than the serving user has. Its log is slog.Default.
type Build func(ipc.Setup, *Tokens, *Errands) (http.Handler, error)

// Rename gives the process the name of what it is to do. Call it from an init function.
func Rename() {
	name := "schedrestd-work"
	if _, ok := AnchorArg(os.Args); ok {
		name = "schedrestd-anch"
	}
	self.Rename(name)
}

// Main is the whole life of a worker process and gives its exit status: 0 after it
// drained, 1 when it refused or lost its parent, 2 when nobody speaks to it.
func Main(build Build) int {
	// Signals that a terminal or a service manager sends to all are for the parent.
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

// reason is what the parent is told.
func reason(err error) string {
	if hint := errs.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// begin goes from the first message to Ready, in this order: settle, hear, confine, prove,
// build, close the cage, say ready.
func begin(channel *ipc.Channel, build Build, log *lines) (*server, error) {
	if err := self.Settle(); err != nil {
		return nil, err
	}
	setup, expect, err := query.HearBirth[*ipc.Setup](channel)
	if err != nil {
		return nil, err
	}
	slog.SetDefault(slog.New(newLog(log, slog.Level(setup.LogLevel))))
	if err := setup.Limits.Check(); err != nil {
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
	tokens, errands := NewTokens(), NewErrands(channel.Send)
	handler, err := build(*setup, tokens, errands)
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
	return newServer(channel, setup, handler, tokens, errands), nil
}

// The cage knows the channel by its number; a build in which that is another one fails here.
const _ = uint(seal.Channel-ipc.WorkerFD) + uint(ipc.WorkerFD-seal.Channel)

// CloseSandbox closes the sandbox as the parent wants it, and returns what the kernel has of it.
func CloseSandbox(s ipc.Seal) (security.Sealed, error) {
	return seal.Close(seal.Options{Unix: s&ipc.SealUnix != 0, Audit: s&ipc.SealAudit != 0}, s&ipc.SealRequire != 0)
}
