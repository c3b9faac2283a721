// Package inetd serves the single client of a gateway that inetd started. The
// client is connected to standard input and output, and one worker serves it.
// One goroutine owns the state. Other goroutines only send events to that
// goroutine.
package inetd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/errs"
	"schedrestd/internal/exitstatus"
	"schedrestd/internal/printable"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

type Options struct {
	Client       *Client
	Starter      *process.Starter
	Worker       ipc.StartProcess
	Quota        *relay.Quota                 // limits the lines that the worker may log
	Setup        work.Setup                   // of the worker
	Dial         dial.Options                 // Serve sets Setup and OwnUserns
	Services     func() error                 // starts the worker's services while the worker starts
	Provision    func(*process.Process) error // sends channels and keys to the worker when it is ready; the worker answers with KeysResult
	Audit        func(ipc.Message)            // sends facts about the connection and its worker to the auditor
	Violations   <-chan string                // gets a reason if the worker breaks the protocol of a service
	ServiceExits <-chan string                // gets a reason if a service exits
	Finish       <-chan struct{}              // closed when the worker must finish
	StartLimit   time.Duration                // a worker that is not ready after this time is killed
	PingTimeout  time.Duration                // a worker that does not answer a Ping within this time is killed
	Ready        func(ipc.Ready)              // called when the worker is ready
}

const (
	// halfCloseLimit is how long a worker may continue to answer after the
	// client has stopped sending. The kernel notices that a TCP client is gone
	// only when data is written to it. Without this limit, a compromised worker
	// that writes nothing could run forever, and occupy one of the instances
	// that inetd may run concurrently.
	halfCloseLimit = 10 * time.Minute
)

// answeredWithError is how a worker ends that exits with work.ExitAfterError.
var answeredWithError = fmt.Sprintf("exit status %d", work.ExitAfterError)

type session struct {
	Options
	worker *process.Process
	dialer *dial.Dialer
	timer  *time.Timer // kills a worker that does not become ready, or does not finish, in time

	clientSent   bool      // the worker was given the client
	served       bool      // the worker has sent ConnectionDone
	finishReason string    // why the worker must finish; "" if it was not asked to finish
	inputEndedAt time.Time // when this process first noticed that the client had stopped sending
	liveness     process.Liveness
	relayFD      int        // the worker's end of the pipe, if output goes to a regular file; -1: no pipe
	copyResult   chan error // gets the result of copying from the pipe; nil: no pipe
	stopped      bool       // the gateway was stopped by a signal
}

// Serve serves the client. It returns nil when the client's input has ended and
// every request has been answered. On pipes and files it returns an error if one
// of the answers was an error: a script needs the status, but inetd would count
// the client's mistakes as failures of the service. When Finish is closed, the
// worker finishes only its current request.
func Serve(o Options) error {
	v := &session{Options: o, relayFD: -1, timer: time.NewTimer(o.StartLimit)}
	var err error
	if v.worker, err = o.Starter.Start(o.Worker, o.Quota); err != nil {
		return err
	}
	v.Dial.Setup, v.Dial.OwnUserns = &v.Setup, v.worker.OwnUserns
	v.dialer = dial.New(v.Dial, v.worker.Channel)
	if err := o.Services(); err != nil {
		v.worker.Reap(0)
		return err
	}
	return v.collectResult(v.run())
}

// received is a message from the worker, or the error with which its channel
// ended.
type received struct {
	ipc.Received
	err error
}

// run handles events until the worker's channel ends or the worker breaks the
// protocol. The returned error says which.
func (v *session) run() error {
	messages := make(chan received)
	go func() {
		for err := error(nil); err == nil; {
			var m ipc.Received
			m, err = v.worker.Channel.Receive()
			messages <- received{m, err}
		}
	}()
	tick := time.NewTicker(v.PingTimeout / 4)
	defer tick.Stop()
	finish := v.Finish
	for {
		select {
		case m := <-messages:
			err := m.err
			if err == nil {
				err = v.handle(m.Message)
			}
			if err != nil {
				return err
			}
		case reason := <-v.Violations:
			v.worker.Terminate(reason)
		case reason := <-v.ServiceExits:
			v.finish(reason)
		case now := <-tick.C:
			v.check(now)
		case <-v.timer.C:
			v.worker.Terminate(cmp.Or(v.finishReason, "was not ready") + ", and did not exit in time")
		case <-finish:
			finish = nil
			v.stopped = true
			v.finish("the gateway is stopping")
		}
	}
}

// handle handles a message of the worker.
func (v *session) handle(m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		v.Ready(*m)
		return v.Provision(v.worker)
	case *ipc.KeysResult:
		if !m.OK {
			return errs.New(errs.Denied, "the worker cannot use the key set of RS256 tokens: %s", printable.Text(m.Reason))
		}
		if v.clientSent {
			return errors.New("sent KeysResult for keys that it was not given")
		}
		if v.finishReason == "" {
			v.timer.Stop()
		}
		return v.sendClient()
	case *ipc.Refused:
		return errs.New(errs.Denied, "the worker cannot serve: %s", printable.Text(m.Reason))
	case *work.ConnectionTaken:
		v.closeRelay()
	case *work.ConnectionDone:
		v.served = true
		v.Audit(&work.ConnectionReleased{ID: v.Client.ID})
	case *ipc.Pong:
		return v.liveness.HandlePong(m.Number)
	case *work.Progress: // there is only one client, so the stage does not matter
	default:
		handled, err := v.dialer.Handle(m)
		if !handled {
			err = ipc.Unhandled(m)
		}
		return err
	}
	return nil
}

// sendClient gives the worker the client.
func (v *session) sendClient() error {
	v.Audit(&work.ConnectionFacts{Worker: v.worker.Number, Connection: v.Client.Connection})
	v.clientSent = true
	if v.Client.Network != ipc.Stdio {
		err := v.worker.Channel.TrySend(&v.Client.Connection, v.Client.In)
		if v.Client.RefuseStatus != 0 { // the worker sends no ConnectionDone for a refused client
			v.served = true
			v.finish("its client is refused")
		}
		return err
	}
	out, relayFD, copyResult, err := v.Client.output()
	if err != nil {
		return err
	}
	v.relayFD, v.copyResult = relayFD, copyResult
	return v.worker.Channel.TrySend(&ipc.StdioConnection{Connection: v.Client.Connection}, v.Client.In, out)
}

// closeRelay closes this process's copy of the worker's output descriptor.
// Otherwise the reader of the pipe would wait forever.
func (v *session) closeRelay() {
	if v.relayFD >= 0 {
		unix.Close(v.relayFD)
		v.relayFD = -1
	}
}

// check checks that the worker still reads its channel. It asks the worker to
// finish in three cases: the client is served, the client has closed the
// connection, or the client stopped sending halfCloseLimit ago.
func (v *session) check(now time.Time) {
	if !v.clientSent {
		return
	}
	v.liveness.Check(v.worker, v.PingTimeout)
	inputEnded, closed := v.Client.pollState()
	if !inputEnded {
		v.inputEndedAt = time.Time{}
	} else if v.inputEndedAt.IsZero() {
		v.inputEndedAt = now
	}
	switch {
	case v.served:
		v.finish("reported that its client is served")
	case closed:
		v.finish("its client has gone")
	case inputEnded && now.Sub(v.inputEndedAt) > halfCloseLimit:
		v.finish(fmt.Sprintf("its client stopped sending more than %s ago", halfCloseLimit))
	}
}

// finish asks the worker to finish, and kills it if it does not finish in time.
func (v *session) finish(reason string) {
	if v.finishReason != "" {
		return
	}
	v.finishReason = reason
	if v.worker.Channel.TrySend(new(work.Drain)) != nil { // the worker is not ready yet, or does not read
		v.worker.Terminate(reason)
	}
	v.timer.Reset(v.Setup.Limits.Drain + process.ExitGrace)
}

// collectResult waits until the worker has exited. If there is a pipe, it also
// waits until all output has been copied from the pipe. It returns the result
// of Serve. channelErr is the error that run returned.
func (v *session) collectResult(channelErr error) error {
	timeout := process.ExitGrace
	if !errors.Is(channelErr, io.EOF) {
		timeout = 0
	}
	status := v.worker.Reap(timeout)
	v.Audit(&work.WorkerExited{Worker: v.worker.Number, Status: ipc.TruncateReason(status)})
	v.closeRelay()
	if v.copyResult != nil {
		if err := <-v.copyResult; err != nil {
			return errs.Wrap(err, errs.Unavailable, "write the answers to standard output")
		}
	}
	switch {
	case v.worker.ForbiddenCall:
		return errs.New(errs.Internal, "%s (%s)", process.WorkerViolation, status).WithHint("%s", process.CaptureHint)
	case timeout == 0:
		return channelErr
	case v.stopped, v.served && status == exitstatus.OK:
		return nil
	case v.served && v.Client.Network == ipc.Stdio && status == answeredWithError:
		return errs.New(errs.Invalid, "a request was answered with an error: see standard output")
	case v.worker.EndReason != "":
		return errs.New(errs.Unavailable, "the worker was terminated: %s", v.worker.EndReason)
	case v.served:
		return errs.New(errs.Unavailable, "the worker could not write the answers (%s): the request may have been carried out", status)
	}
	return errs.New(errs.Internal, "the worker exited before it had answered every request: %s", status)
}
