// Package inetd serves the client at standard input and output through one
// worker, like a program that inetd starts. One goroutine owns the state of the
// run; other goroutines only send events to it.
package inetd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/dispatcher/dial"
	"schedrestd/dispatcher/process"
	"schedrestd/dispatcher/relay"
	"schedrestd/errs"
	"schedrestd/exitstatus"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/printable"
)

// Options describes a run.
type Options struct {
	Client     *Client
	Starter    *process.Starter
	Worker     ipc.Start
	Quota      *relay.Quota                 // limits the lines that the worker may log
	Setup      work.Setup                   // of the worker
	Dial       dial.Options                 // without Setup and Foreign, which Serve sets
	Services   func() error                 // starts the worker's services while the worker starts
	Hello      func(*process.Process) error // gives the ready worker its channels and keys; the worker answers Kept
	Tell       func(ipc.Message)            // tells the auditor about the connection and its worker
	Violations <-chan string                // receives the reason if the worker broke the protocol of a service
	Lost       <-chan string                // receives the reason if a service exited
	Finish     <-chan struct{}              // closed when the worker must finish
	StartLimit time.Duration                // until a process sends Ready
	Silence    time.Duration                // a worker that does not answer a Ping for this time is killed
	Ready      func(ipc.Ready)              // called when the worker is ready
}

const (
	// halfClosed is how long a worker may take for its answers after the client
	// has stopped sending. As long as nothing is written to a TCP connection,
	// the kernel does not notice that its client is gone. Without this limit, a
	// compromised worker could run indefinitely, and occupy one of the
	// instances that inetd may run at the same time.
	halfClosed = 10 * time.Minute
)

// visit is one inetd run.
type visit struct {
	Options
	worker *process.Process
	dialer *dial.Dialer
	late   *time.Timer // limits the time of the worker's next step

	handed  bool      // the worker was given the client
	served  bool      // the worker has sent Done
	told    string    // why the worker must finish; "" if it was not asked to finish
	ended   time.Time // when this process first noticed that the client sends no more
	alive   process.Liveness
	relay   int        // the worker's end of the pipe to a regular file; -1: no pipe
	copied  chan error // receives the result of copying from the pipe; nil: no pipe
	stopped bool       // the gateway was stopped by a signal
}

// Serve serves the client. It returns nil when the client's input has ended and
// every request is answered, whatever the answers were. When Finish is closed,
// the worker only finishes its current request.
func Serve(o Options) error {
	v := &visit{Options: o, relay: -1, late: time.NewTimer(o.StartLimit)}
	var err error
	if v.worker, err = o.Starter.Start(o.Worker, o.Quota); err != nil {
		return err
	}
	v.Dial.Setup, v.Dial.Foreign = &v.Setup, v.worker.Foreign
	v.dialer = dial.New(v.Dial, v.worker.Channel)
	if err := o.Services(); err != nil {
		v.worker.Reap(0)
		return err
	}
	return v.end(v.run())
}

// received is a message of the worker, or the error that ended its channel.
type received struct {
	ipc.Received
	err error
}

// run handles events until the worker's channel ends or a message breaks the
// protocol. It returns which of these happened, as an error.
func (v *visit) run() error {
	messages := make(chan received)
	go func() {
		for err := error(nil); err == nil; {
			var m ipc.Received
			m, err = v.worker.Channel.Receive()
			messages <- received{m, err}
		}
	}()
	tick := time.NewTicker(v.Silence / 4)
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
		case why := <-v.Violations:
			v.worker.Condemn(why)
		case why := <-v.Lost:
			v.finish(why)
		case now := <-tick.C:
			v.watch(now)
		case <-v.late.C:
			v.worker.Condemn(cmp.Or(v.told, "was not ready") + ", and did not exit in time")
		case <-finish:
			finish = nil
			v.stopped = true
			v.finish("the gateway ends")
		}
	}
}

// handle handles a message of the worker.
func (v *visit) handle(m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		v.Ready(*m)
		return v.Hello(v.worker)
	case *ipc.Kept:
		if !m.OK {
			return errs.New(errs.Denied, "the worker cannot use the key set of RS256 tokens: %s", printable.Text(m.Reason))
		}
		if v.handed {
			return errors.New("sent Kept for keys that it was not given")
		}
		if v.told == "" {
			v.late.Stop()
		}
		return v.hand()
	case *ipc.Refused:
		return errs.New(errs.Denied, "the worker cannot serve: %s", printable.Text(m.Reason))
	case *work.Taken:
		v.closeRelay()
	case *work.Done:
		v.served = true
		v.Tell(&work.Gone{ID: v.Client.ID})
	case *ipc.Pong:
		return v.alive.Answered(m.Number)
	case *work.Progress: // there is only one client, so the stage does not matter
	default:
		done, err := v.dialer.Handle(m)
		if !done {
			err = ipc.Unheard(m)
		}
		return err
	}
	return nil
}

// hand gives the worker the client.
func (v *visit) hand() error {
	v.Tell(&work.Facts{Worker: v.worker.Number, Connection: v.Client.Connection})
	v.handed = true
	if v.Client.Network != ipc.Stdio {
		err := v.worker.Channel.TrySend(&v.Client.Connection, v.Client.In)
		if v.Client.Refuse != 0 { // the worker sends no Done for a refused client
			v.served = true
			v.finish("its client is refused")
		}
		return err
	}
	out, relay, copied, err := v.Client.output()
	if err != nil {
		return err
	}
	v.relay, v.copied = relay, copied
	return v.worker.Channel.TrySend(&ipc.Streams{Connection: v.Client.Connection}, v.Client.In, out)
}

// closeRelay closes this process's copy of the worker's output descriptor.
// Otherwise the reader of the pipe would wait forever.
func (v *visit) closeRelay() {
	if v.relay >= 0 {
		unix.Close(v.relay)
		v.relay = -1
	}
}

// watch checks that the worker reads its channel. It makes the worker finish
// when the client is served, when the client is gone, or when halfClosed has
// passed since the client stopped sending.
func (v *visit) watch(now time.Time) {
	if !v.handed {
		return
	}
	v.alive.Ask(v.worker, v.Silence)
	ended, gone := v.Client.left()
	if !ended {
		v.ended = time.Time{}
	} else if v.ended.IsZero() {
		v.ended = now
	}
	switch {
	case v.served:
		v.finish("reported that its client is served")
	case gone:
		v.finish("its client has gone")
	case ended && now.Sub(v.ended) > halfClosed:
		v.finish(fmt.Sprintf("its client has sent no more for %s", halfClosed))
	}
}

// finish asks the worker to finish. A worker that does not finish is killed.
func (v *visit) finish(why string) {
	if v.told != "" {
		return
	}
	v.told = why
	if v.worker.Channel.TrySend(new(work.Drain)) != nil { // the worker is not ready yet, or does not read
		v.worker.Condemn(why)
	}
	v.late.Reset(v.Setup.Limits.Drain + process.LastWords)
}

// end gets the worker's status, waits until its output has reached the file,
// and returns the result of the run. The argument why is the error that ended
// the worker's channel.
func (v *visit) end(why error) error {
	patience := process.LastWords
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := v.worker.Reap(patience)
	v.Tell(&work.Exited{Worker: v.worker.Number, Status: ipc.Refuse(status).Reason})
	v.closeRelay()
	if v.copied != nil {
		if err := <-v.copied; err != nil {
			return errs.Wrap(err, errs.Unavailable, "write the answers to standard output")
		}
	}
	switch {
	case v.worker.ForbiddenCall:
		return errs.New(errs.Internal, "%s (%s)", process.WorkerViolation, status).WithHint("%s", process.CaptureHint)
	case patience == 0:
		return why
	case v.stopped, v.served && status == exitstatus.OK:
		return nil
	case v.worker.EndReason != "":
		return errs.New(errs.Unavailable, "the worker was terminated: %s", v.worker.EndReason)
	case v.served:
		return errs.New(errs.Unavailable, "the worker could not write the answers (%s): the request may have been carried out", status)
	}
	return errs.New(errs.Internal, "the worker exited before it had answered every request: %s", status)
}
