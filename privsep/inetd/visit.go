// Package inetd serves the one client at standard input and output through one
// worker, like a program that inetd starts. One goroutine owns the state of the
// run; others only send it events.
package inetd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Options describes a run.
type Options struct {
	Client     *Client
	Spawner    *spawn.Spawner
	Worker     spawn.Birth
	Quota      *relay.Quota               // for what the worker logs
	Setup      ipc.Setup                  // of the worker
	Dial       dial.Options               // … without its Setup
	Services   func() error               // starts the worker's services, while the worker starts
	Hello      func(*spawn.Process) error // gives the ready worker its channels and keys; the worker answers Kept
	Tell       func(ipc.Message)          // tells the auditor about the connection and its worker
	Accused    <-chan string              // gets how the worker broke the protocol of a service
	Lost       <-chan string              // gets why a service exited
	StartLimit time.Duration              // for a process to send Ready
	Silence    time.Duration              // a worker that answers no Ping for so long is killed
	Ready      func(security.Sealed)
}

const (
	// halfClosed is how long a client that sends no more may take for its answers. Nothing tells that the client
	// of a TCP connection is gone while nothing is written to it. A compromised worker would stay as long as it
	// likes otherwise, and an inetd starts only so many instances.
	halfClosed = 10 * time.Minute

	// sameSignal is how close together two signals of a kind count as one.
	sameSignal = 500 * time.Millisecond

	// unhurried replaces the limits of time at a pipe or a terminal, where a slow client occupies nothing
	// that others need.
	unhurried = 24 * time.Hour
)

// Limit returns s for one client.
func (c *Client) Limit(s ipc.Setup) ipc.Setup {
	s.Inetd = true
	s.Admission = ipc.Admission{} // the next process would remember nothing of it
	if c.Network == ipc.Stdio {
		l := &s.Limits
		l.ReadHeader, l.ReadBody, l.Idle, l.Stall = unhurried, unhurried, unhurried, unhurried
	}
	return s
}

// visit is a run.
type visit struct {
	Options
	worker *spawn.Process
	dialer *dial.Dialer
	late   *time.Timer // for the worker's next step

	handed  bool      // the worker was given the client
	served  bool      // … and has sent Done
	told    string    // why it has to finish; "" when it need not
	ended   time.Time // when the client was first seen to send no more
	alive   spawn.Liveness
	relay   int        // the worker's end of the pipe to a regular file; -1: none
	copied  chan error // receives the result of the relay; nil: there is none
	stopped bool       // by a signal
}

// Serve serves the client. It returns nil when the client's input has ended and
// every request is answered, whatever the answers were. The first signal makes
// the worker finish the request in progress, a second one ends it.
func Serve(signals <-chan os.Signal, o Options) error {
	v := &visit{Options: o, relay: -1, late: time.NewTimer(o.StartLimit)}
	var err error
	v.worker, err = o.Spawner.Start(o.Worker, o.Quota, func(_ *spawn.Process, tasks uint64) ipc.Message {
		v.Setup.Requests, v.Setup.Tasks = 1, uint32(tasks)
		return &v.Setup
	})
	if err != nil {
		return err
	}
	v.Dial.Setup = &v.Setup
	v.dialer = dial.New(v.Dial, v.worker.Channel)
	if err := o.Services(); err != nil {
		v.worker.Reap(0)
		return err
	}
	second, why := v.run(signals)
	err = v.end(why)
	if second != nil {
		return errs.New(errs.Unavailable, "stopped by a second signal (%s) before all was answered", second)
	}
	return err
}

// received is a message of the worker, or the error that ended its channel.
type received struct {
	ipc.Received
	err error
}

// run handles events until the worker's channel ends, and returns why it did. A
// second signal kills the worker, and is returned.
func (v *visit) run(signals <-chan os.Signal) (second os.Signal, why error) {
	messages := make(chan received)
	go func() {
		for err := error(nil); err == nil; {
			var m ipc.Received
			m, err = v.worker.Channel.Receive()
			messages <- received{m, err}
		}
	}()
	var first os.Signal
	var same time.Time
	tick := time.NewTicker(v.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case m := <-messages:
			err := m.err
			if err == nil {
				err = v.hear(m.Message)
			}
			if err != nil {
				return nil, err
			}
		case why := <-v.Accused:
			v.worker.Condemn(why)
		case why := <-v.Lost:
			v.finish(why)
		case now := <-tick.C:
			v.watch(now)
		case <-v.late.C:
			v.worker.Condemn(cmp.Or(v.told, "it was not ready") + ", and it did not end in time")
		case s := <-signals:
			switch {
			case first == nil:
				first, same = s, time.Now().Add(sameSignal)
				v.stopped = true
				v.finish("the gateway ends")
			case s != first || time.Now().After(same):
				v.worker.Kill()
				return s, io.EOF
			}
		}
	}
}

// hear handles a message of the worker.
func (v *visit) hear(m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		v.Ready(security.Sealed(*m))
		return v.Hello(v.worker)
	case *ipc.Kept:
		if !m.OK {
			return errs.New(errs.Denied, "the worker can't use the key set of RS256 tokens: %s", relay.Printable(m.Reason))
		}
		if v.handed {
			return errors.New("it said Kept of keys that it was not given")
		}
		if v.told == "" {
			v.late.Stop()
		}
		return v.hand()
	case *ipc.Refused:
		return errs.New(errs.Denied, "the worker refuses to serve: %s", relay.Printable(m.Reason))
	case *ipc.Taken:
		v.closeRelay()
	case *ipc.Done:
		v.served = true
		v.Tell(&ipc.Gone{ID: v.Client.ID})
	case *ipc.Pong:
		return v.alive.Answered(m.Number)
	case *ipc.Progress: // no other client waits
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
	v.Tell(&ipc.Facts{Worker: v.worker.Number, Connection: v.Client.Connection})
	v.handed = true
	if v.Client.Network != ipc.Stdio {
		err := v.worker.Channel.TrySend(&v.Client.Connection, v.Client.in)
		if v.Client.Refuse != 0 { // the worker reports nothing of it
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
	return v.worker.Channel.TrySend(&ipc.Streams{Connection: v.Client.Connection}, v.Client.in, out)
}

// closeRelay closes the parent's copy of the worker's descriptor. Otherwise the
// pipe would never end.
func (v *visit) closeRelay() {
	if v.relay >= 0 {
		unix.Close(v.relay)
		v.relay = -1
	}
}

// watch checks that the worker reads its channel, and makes it finish when
// there is nothing left to do.
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
		v.finish("it has said that its client is served")
	case gone:
		v.finish("its client has gone")
	case ended && now.Sub(v.ended) > halfClosed:
		v.finish(fmt.Sprintf("its client has sent no more for %s", halfClosed))
	}
}

// finish asks the worker to finish, and has it killed when it does not.
func (v *visit) finish(why string) {
	if v.told != "" {
		return
	}
	v.told = why
	if v.worker.Channel.TrySend(new(ipc.Drain)) != nil { // it is not ready yet, or does not read
		v.worker.Condemn(why)
	}
	v.late.Reset(v.Setup.Limits.Drain + spawn.LastWords)
}

// end takes the worker's status, waits until its output has reached the file,
// and judges the run. why is what ended its channel.
func (v *visit) end(why error) error {
	patience := spawn.LastWords
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := v.worker.Reap(patience)
	v.Tell(&ipc.Exited{Worker: v.worker.Number, Status: ipc.Refuse(status).Reason})
	v.closeRelay()
	if v.copied != nil {
		if err := <-v.copied; err != nil {
			return errs.Wrap(err, errs.Unavailable, "can't write the answers to standard output")
		}
	}
	switch {
	case v.worker.Caged:
		return errs.New(errs.Internal, "%s (%s)", spawn.WorkerCaged, status).WithHint("%s", spawn.CaptureHint)
	case patience == 0:
		return why
	case v.stopped, v.served && status == spawn.AllWell:
		return nil
	case v.worker.Ending != "":
		return errs.New(errs.Unavailable, "the worker was ended: %s", v.worker.Ending)
	case v.served:
		return errs.New(errs.Unavailable, "the worker could not write the answers (%s): the request may have been carried out", status)
	}
	return errs.New(errs.Internal, "the worker ended before all was answered: %s", status)
}
