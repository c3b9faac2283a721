// Package worker implements the process that reads input from the network. This
// process never runs as root and serves one identity. Its only secret keys are
// those for session tickets.
//
// The parent starts the worker with its final uid, gid and groups. It tells the
// worker over a channel which process attributes the worker should have. It
// then passes its end of the channel to the dispatcher. The worker
// drops all privileges that it does not need, and reads its actual attributes
// from the kernel. If they differ from the expected ones, the worker refuses to
// serve. Otherwise it serves HTTP on the connections that the dispatcher passes
// to it. It exits when the channel closes, because without the dispatcher no
// process would count its connections.
//
// The caller of Main provides the function that builds the handlers, so this
// package contains no routes.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/keys"
	"schedrestd/gateway/worker/logger"
	"schedrestd/gateway/worker/meter"
	"schedrestd/internal/errs"
	"schedrestd/internal/zone"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// A Handler answers the requests that the worker serves, and those that it
// refuses. It is a rest.Server, or a test's part before one.
type Handler interface {
	http.Handler
	ServeError(http.ResponseWriter, *http.Request, error)
	RefuseUnread(ctx context.Context, err error) (id string, body []byte)
	StopWaiting(reason string)
}

// Build returns the worker's Handler. Its arguments are the
// worker's Setup, the Keys of its generation, and a Broker for operations
// that the sandbox forbids. The worker calls Build after it has dropped its
// privileges, and before it enters its sandbox. So Build can open files, but
// only those that the worker's user may open. Build logs to slog.Default.
type Build func(work.Setup, *keys.Keys, *broker.Broker) (Handler, error)

// Rename sets the name of the process to its role. It must be called from an
// init function.
func Rename() {
	name := "schedrestd-work"
	if _, ok := NamespaceInitArg(os.Args); ok {
		name = "schedrestd-init"
	}
	self.Rename(name)
}

// Main runs a worker and returns its exit status. The status is 0 after the
// worker has drained, 1 if it refused to serve or its channel was closed, and 2
// if schedrestd did not start it. In inetd mode, the status is 0 after the
// connection has ended, or 1 if an answer was lost.
func Main(build Build) int {
	// A terminal or a service manager sends these signals to all processes of
	// the gateway. Only the parent handles them.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	signals := counterSignals()
	channel, err := ipc.Open(ipc.WorkerFD, ipc.Worker, ipc.Managers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	log := logger.NewLines(os.Stderr)
	defer log.Flush()
	s, err := begin(channel, build, log)
	if err != nil {
		slog.Error("worker not started", "error", err)
		if !errors.Is(err, io.EOF) {
			_ = channel.Send(&ipc.Refused{Reason: ipc.TruncateReason(reason(err))})
		}
		return 1
	}
	go s.logCountersOn(signals)
	return s.run()
}

// reason returns the text for the message Refused.
func reason(err error) string {
	if hint := errs.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// begin performs all steps from the start of the process to the message Ready.
// The process sets up its namespaces, receives the setup, drops privileges,
// verifies its attributes, builds the handlers, and enters its sandbox.
func begin(channel *ipc.Channel, build Build, log *logger.Lines) (*server, error) {
	if err := self.SetUpNamespaces(); err != nil {
		return nil, err
	}
	packed, expect, err := query.ReceiveSetup[*ipc.Setup](channel)
	if err != nil {
		return nil, err
	}
	slog.SetDefault(slog.New(logger.New(log, slog.Level(packed.LogLevel))))
	setup, err := work.Unpack(*packed)
	if err != nil {
		return nil, err
	}
	// The variable TZ and the files of time zones are out of the worker's reach.
	if time.Local, err = zone.Load(setup.Zone); err != nil {
		return nil, fmt.Errorf("time zone: %w", err)
	}
	if err := self.LimitTasks(uint64(setup.Tasks)); err != nil {
		return nil, err
	}
	if err := self.Confine(uint64(setup.Files), false); err != nil {
		return nil, err
	}
	if err := self.VerifyAttributes(expect, uint64(setup.Files), uint64(setup.Tasks)); err != nil {
		return nil, err
	}
	if setup.Metrics {
		meter.Start(channel.Send)
	}
	k, b := keys.New(), broker.New(channel.Send)
	handler, err := build(setup, k, b)
	if err != nil {
		return nil, err
	}
	enforced, err := CloseSandbox(setup.Sandbox)
	if err != nil {
		return nil, err
	}
	if err := channel.Send((*ipc.Ready)(&enforced)); err != nil {
		return nil, err
	}
	return newServer(channel, &setup, handler, k, b), nil
}

// The sandbox identifies the channel by its descriptor. This line compiles only
// if sandbox.Channel and ipc.WorkerFD are equal.
const _ = uint(sandbox.Channel-ipc.WorkerFD) + uint(ipc.WorkerFD-sandbox.Channel)

// CloseSandbox puts the process into the sandbox that the parent requested, and
// returns what the kernel enforces.
func CloseSandbox(s ipc.SandboxOptions) (sandbox.Layers, error) {
	return sandbox.Close(sandbox.Options{Unix: s&ipc.SandboxUnix != 0, Audit: s&ipc.SandboxAudit != 0}, s&ipc.SandboxRequire != 0)
}
