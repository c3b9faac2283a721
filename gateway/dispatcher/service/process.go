package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
)

// Process is one process of a service.
type Process struct {
	*process.Process
	spec     *Spec
	Done     chan struct{} // closed when it has exited
	err      error         // why it exited; valid when Done is closed, like status
	status   string
	hooks    Hooks
	ready    chan error // gets nil when the process is ready, or the reason why it never will be
	liveness process.Liveness
}

// Hooks holds functions that a Process calls in one of its own goroutines. The
// functions must not wait for the Process.
type Hooks struct {
	Report func(worker uint32, reason string)          // kills a worker that, according to the service, broke the protocol
	Handle func(ipc.Message) (handled bool, err error) // handles messages that only some services send; may be nil
}

// Start starts a process for a generation, and waits until the process is
// ready. If this fails, Start returns the reason.
func (s *Spec) Start(starter *process.Starter, generation uint32, hooks Hooks) (*Process, error) {
	return s.StartFor(starter, generation, 0, hooks)
}

// StartFor starts a process like Start. The process runs as the user of the
// connection with the number client, as the parent knows it.
func (s *Spec) StartFor(starter *process.Starter, generation uint32, client uint64, hooks Hooks) (*Process, error) {
	child, err := s.spawn(starter, generation, client)
	if err != nil {
		return nil, err
	}
	p := &Process{Process: child, spec: s, hooks: hooks, ready: make(chan error, 1), Done: make(chan struct{})}
	go p.run()
	if err := <-p.ready; err != nil {
		return nil, err
	}
	return p, nil
}

// Role returns the role of the service.
func (p *Process) Role() ipc.Role { return p.spec.Role }

// Err returns the reason why the process exited. It must be called only after
// Done is closed.
func (p *Process) Err() error { return p.err }

// ExitStatus returns the exit status as text. It must be called only after Done
// is closed.
func (p *Process) ExitStatus() string { return p.status }

// run handles the messages of the process, and reaps it.
func (p *Process) run() {
	err := p.serve()
	timeout := cmp.Or(p.spec.ExitLimit, process.ExitGrace)
	closed := errors.Is(err, io.EOF)
	if !closed {
		timeout = 0
	}
	status := p.Reap(timeout)
	p.status = status
	switch {
	case p.ForbiddenCall:
		err = errs.New(errs.Internal, "the %s was killed by its sandbox: it made a forbidden system call (%s)", p.spec.Role, status).
			WithHint("%s", process.CaptureHint)
	case p.EndReason != "":
		err = errs.New(errs.Unavailable, "the %s was terminated: %s", p.spec.Role, p.EndReason)
	case closed:
		err = errs.New(errs.Internal, "the %s exited unexpectedly: %s", p.spec.Role, status).WithHint("its last messages are in the log above")
	}
	p.err = err
	if p.isUsers() && (!closed || p.Crashed || p.EndReason != "") { // the exit of other services ends their generation, and is logged there
		p.spec.Log.Error(p.spec.Role.String()+" exited", errs.LogAttrs(errs.HintOf(err), "pid", p.PID, "uid", p.Identity.UID, "because", err)...)
	}
	select {
	case p.ready <- err:
	default: // the process was ready before
	}
	close(p.Done)
}

// serve handles the messages of the process, and regularly checks that the
// process reads its channel. It returns when the channel is closed or the
// process breaks the protocol.
func (p *Process) serve() error {
	messages, failed := make(chan ipc.Message), make(chan error, 1)
	go func() {
		for {
			m, err := p.Channel.Receive()
			if err != nil {
				failed <- err
				return
			}
			select {
			case messages <- m.Message:
			case <-p.Done:
				return
			}
		}
	}()
	startTimer, tick := time.NewTimer(p.spec.StartLimit), time.NewTicker(p.spec.PingTimeout/4)
	defer startTimer.Stop()
	defer tick.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case m := <-messages:
			if _, ok := m.(*ipc.Ready); ok {
				startTimer.Stop()
			}
			if err := p.handle(m); err != nil {
				return err
			}
		case <-startTimer.C:
			p.Terminate(fmt.Sprintf("was not ready within %s", p.spec.StartLimit))
		case <-tick.C:
			if p.Channel.Phase() == ipc.Serving {
				p.liveness.Check(p.Process, p.spec.PingTimeout)
			}
		}
	}
}

func (p *Process) handle(m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		name := p.spec.Role.String()
		level := slog.LevelInfo
		if p.isUsers() {
			level = slog.LevelDebug
		}
		p.spec.Log.Log(context.Background(), level, name+" ready", name, p.Number, "pid", p.PID, "sandbox", sandbox.Layers(*m).String(),
			"took", time.Since(p.Started).Round(10*time.Microsecond))
		p.liveness.Check(p.Process, p.spec.PingTimeout) // the first message ends the handover: the process accepts no more files from the parent
		p.ready <- nil
	case *ipc.Refused:
		return errs.New(errs.Denied, "the %s cannot serve: %s", p.spec.Role, printable.Text(m.Reason))
	case *work.WorkerViolation:
		if !p.spec.reports.Take(time.Now(), 1) { // a compromised service could otherwise have all workers killed
			return errors.New("reported too many workers")
		}
		p.hooks.Report(m.Number, fmt.Sprintf("to the %s: %s", p.spec.Role, printable.Text(m.Reason)))
	case *ipc.Pong:
		return p.liveness.HandlePong(m.Number)
	default:
		if p.hooks.Handle != nil {
			if handled, err := p.hooks.Handle(m); handled {
				return err
			}
		}
		return ipc.Unhandled(m)
	}
	return nil
}

// isUsers reports whether users start the process, and it runs as one of them.
func (p *Process) isUsers() bool { return p.spec.Role == ipc.Output || p.spec.Role == ipc.Credential }

// Stop lets the process finish its work, and waits until the process has
// exited.
func (p *Process) Stop() {
	if p != nil {
		_ = p.Channel.Shutdown() // Close would not suffice, because the parent may have a copy of this end
		<-p.Done
	}
}

// Wait waits until the process has exited.
func (p *Process) Wait() { <-p.Done }

// User returns the uid of the process.
func (p *Process) User() uint32 { return p.Identity.UID }

// Exited reports whether the process has exited.
func (p *Process) Exited() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// ErrExiting is the error of Introduce for a service that is exiting.
var ErrExiting = errs.New(errs.Unavailable, "the service is exiting")

// Introduce connects the service and a ready worker: it creates a channel, and sends
// each of the two processes one end. The argument client is the message with the
// service's end, and to is the channel to the worker.
func (p *Process) Introduce(client ipc.Message, to *ipc.Channel) error {
	return p.IntroduceFor(0, client, to)
}

// IntroduceFor is like Introduce. It tells the client for which user of a token the
// service works (work.AskOutput).
func (p *Process) IntroduceFor(token uint64, client ipc.Message, to *ipc.Channel) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a channel between the %s and a client", p.spec.Role)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if p.Channel.Send(client, fds[0]) != nil {
		return ErrExiting
	}
	return ipc.IgnoreClosed(to.Send(&work.ServiceChannel{Service: p.spec.Role, Client: token}, fds[1]))
}
