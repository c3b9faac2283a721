// Package service contains the code that the gateway's unprivileged services
// share: their start, their log, their channel to the dispatcher, and their
// channels to workers. A service does work for other processes of the gateway.
// So those processes need neither the privileges nor the code for this work.
//
// While a service starts, the parent holds the other end of the service's
// channel, and sends the service's setup. The parent then passes that end to
// the dispatcher, which receives Ready and all later messages. (The dispatcher
// also starts as a service. The parent keeps the other end of the dispatcher's
// channel.) A service exits when this channel is closed.
//
// Like a worker, a service proves its process attributes before it sends Ready.
// If a worker violates the protocol, the service sends no answer to the worker,
// and asks the dispatcher to kill it.
//
// A program runs a service with Main.
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
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Service is what one service does.
type Service interface {
	// Handle handles a message of the parent or the dispatcher. Run itself
	// handles the messages that all services get, and calls Handle for all
	// other messages. Handle returns false if the service should not get
	// messages of this type.
	Handle(m ipc.Received) (handled bool, err error)

	// Serve answers one worker until the worker's channel is closed. Run waits
	// until Serve calls c.EachMessage or returns.
	Serve(c *Client)

	// Counters returns counts since the start of the service. They are for the
	// log.
	Counters() []any

	// Close finishes work in progress. It is called when the channel to
	// the dispatcher has been closed.
	Close()
}

// Main runs a service and returns the exit status:
//
//   - 0 if the other end of the channel was closed
//   - 1 if the process refused to serve or the channel failed
//   - 2 if schedrestd did not start the process
//
// Main calls confine as the last step before it sends Ready. It then calls
// build, which returns the service. The service may keep the channel, to send
// messages to the dispatcher.
func Main(role ipc.Role, confine func(ipc.ServiceSetup) (sandbox.Layers, error), build func(channel *ipc.Channel) Service) int {
	// A terminal or a service manager sends SIGINT, SIGTERM and SIGHUP to all
	// processes, but only the parent handles them.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1) // before anything else, because until then the signal kills the process
	peer := ipc.Managers
	if role == ipc.Dispatcher {
		peer = ipc.Parent
	}
	channel, err := ipc.Open(ipc.ServiceChannelFD, role, peer)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	if err := setUp(role, channel, confine); err != nil {
		slog.Error(role.String()+" does not serve", "error", err)
		if !errors.Is(err, io.EOF) {
			_ = channel.Send(&ipc.Refused{Reason: ipc.TruncateReason(err.Error())})
		}
		return 1
	}
	s := build(channel)
	go func() {
		for range signals {
			slog.Info("counters", s.Counters()...)
		}
	}()
	err = Run(role, channel, s)
	s.Close()
	if err != nil {
		slog.Error("channel to the "+peer.String()+" failed", "error", err)
		return 1
	}
	return 0
}

// setUp sets up the namespaces, receives the setup, confines the process,
// verifies its attributes, and sends Ready.
func setUp(role ipc.Role, channel *ipc.Channel, confine func(ipc.ServiceSetup) (sandbox.Layers, error)) error {
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
	if err := self.Confine(uint64(setup.Files), role == ipc.Auditor || role == ipc.Dispatcher || setup.Sandbox&ipc.SandboxFile != 0); err != nil {
		return err
	}
	if err := self.VerifyAttributes(expect, uint64(setup.Files), uint64(setup.Tasks)); err != nil {
		return err
	}
	enforced, err := confine(*setup)
	if err != nil {
		return err
	}
	return channel.Send((*ipc.Ready)(&enforced))
}

// Run handles the messages of the dispatcher until the channel is closed.
func Run(role ipc.Role, channel *ipc.Channel, s Service) error {
	for {
		m, err := channel.Receive()
		switch msg := m.Message.(type) {
		case nil:
		case *ipc.Ping:
			err = ipc.IgnoreClosed(channel.Send(&ipc.Pong{Number: msg.Number}))
		case *work.WorkerChannel:
			err = serveClient(role, m.FDs[0], msg, channel, s)
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

// newLog returns a logger whose lines have the format that the dispatcher
// expects. The lines begin with the level. They contain no time, because the
// dispatcher adds the time.
func newLog(out io.Writer, level slog.Level) *slog.Logger {
	withoutTime := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime}))
}
