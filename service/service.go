// Package service has the common parts of the gateway's unprivileged services:
// their start, their log, their channel to the dispatcher, and their channels
// to workers. A service does work for other processes of the gateway, so that
// these need neither the privileges nor the code for this work.
//
// Each service has one channel that the code calls "parent". The parent process
// holds the other end of this channel only while it starts the service. It
// sends the service's setup, and then passes that end to the dispatcher, which
// receives Ready and all later messages. (The dispatcher itself also starts as
// a service. The other end of its channel stays with the parent process.) A
// service exits when this channel closes.
//
// A service proves its process attributes before it sends Ready, like a worker.
// A worker that violates the protocol gets no answer. The service reports it to
// the dispatcher, which has the worker killed.
//
// Start with Main.
package service

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
	"schedrestd/ipc/work"
	"schedrestd/security"
	"schedrestd/security/self"
)

// Service is what one service does.
type Service interface {
	// Handle handles the messages on the channel "parent" that only some
	// services get; Run handles the others. handled is false for a message that
	// this service should not get.
	Handle(m ipc.Received) (handled bool, err error)

	// Serve answers one worker until its channel closes. Run waits until Serve
	// calls c.EachMessage or returns.
	Serve(c *Client)

	// Counters returns the counts since the start, for the log.
	Counters() []any

	// Close finishes work in progress, because the channel "parent" has closed.
	Close()
}

// Main runs a service and returns the exit status: 0 if the other end of the
// channel "parent" was closed, 1 if the process refused to serve or the channel
// failed, 2 if schedrestd did not start the process. Main calls confine as the
// last step before it sends Ready. build returns the service. The service may
// keep the channel, to send messages to the dispatcher.
func Main(role ipc.Role, confine func(ipc.ServiceSetup) (security.Sandbox, error), build func(parent *ipc.Channel) Service) int {
	// A terminal or a service manager sends these signals to all processes, but
	// only the parent process handles them.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1) // before anything else, because the signal would kill the process
	parent, err := ipc.Open(ipc.ServiceChannelFD, role, ipc.Parent)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	if err := setUp(role, parent, confine); err != nil {
		slog.Error(role.String()+" does not serve", "error", err)
		if !errors.Is(err, io.EOF) {
			_ = parent.Send(ipc.NewRefused(err.Error()))
		}
		return 1
	}
	s := build(parent)
	go func() {
		for range signals {
			slog.Info("counters", s.Counters()...)
		}
	}()
	err = Run(role, parent, s)
	s.Close()
	if err != nil {
		slog.Error(role.String()+" lost its parent", "error", err)
		return 1
	}
	return 0
}

// setUp performs the steps from the first message to Ready.
func setUp(role ipc.Role, parent *ipc.Channel, confine func(ipc.ServiceSetup) (security.Sandbox, error)) error {
	if err := self.SetUpNamespaces(); err != nil {
		return err
	}
	setup, expect, err := query.ReceiveSetup[*ipc.ServiceSetup](parent)
	if err != nil {
		return err
	}
	slog.SetDefault(newLog(os.Stderr, slog.Level(setup.LogLevel)))
	if err := self.LimitTasks(uint64(setup.Tasks)); err != nil {
		return err
	}
	if err := self.Confine(uint64(setup.Files), role == ipc.Auditor || role == ipc.Dispatcher); err != nil {
		return err
	}
	if err := self.VerifyAttributes(expect, uint64(setup.Files), uint64(setup.Tasks)); err != nil {
		return err
	}
	enforced, err := confine(*setup)
	if err != nil {
		return err
	}
	return parent.Send((*ipc.Ready)(&enforced))
}

// Run handles the messages on the channel "parent" until it closes.
func Run(role ipc.Role, parent *ipc.Channel, s Service) error {
	for {
		m, err := parent.Receive()
		switch msg := m.Message.(type) {
		case nil:
		case *ipc.Ping:
			err = parent.Send(&ipc.Pong{Number: msg.Number})
		case *work.Client:
			err = serveClient(role, m.FDs[0], msg, parent, s)
		default:
			var handled bool
			if handled, err = s.Handle(m); !handled {
				err = ipc.Unhandled(msg)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// newLog returns a logger whose lines have the form that the dispatcher
// expects: level first, without the time, which the dispatcher adds.
func newLog(out io.Writer, level slog.Level) *slog.Logger {
	withoutTime := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime}))
}
