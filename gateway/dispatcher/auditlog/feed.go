package auditlog

import (
	"errors"
	"sync/atomic"
	"time"

	"schedrestd/gateway/dispatcher/service"
	"schedrestd/internal/exitstatus"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A Feed reports facts to the auditor of one generation: which worker gets each
// connection, who the client is, and when connections and workers end. These
// facts come from the dispatcher and the kernel, never from workers. The
// methods of a nil Feed do nothing.
type Feed struct {
	*service.Process
	log          *Log
	checkQuota   *rate.Bucket     // limits how often the auditor may ask about the log's file
	checkPending atomic.Bool      // the auditor has asked about the log's file and has no answer yet
	started      chan struct{}    // closed when Process is set
	messages     chan ipc.Message // messages for the auditor; nil marks the end
	ended        chan struct{}    // closed when all messages were sent or lost
	lost         atomic.Uint64    // messages that could not be sent
}

// ExitLimit is how long an auditor may take to receive its remaining messages,
// and again how long it may take to write its remaining lines and exit. An
// auditor that does not read its channel is killed earlier (service.Spec).
const ExitLimit = 12 * time.Second

// flushPause is how long the Feed waits before it tries again to send to an
// auditor whose channel is full.
const flushPause = time.Millisecond

// Start starts an auditor for a generation. If the auditor reports that a
// worker broke the protocol, the Feed calls report(worker, why), which must
// kill the worker.
func (l *Log) Start(generation uint32, report func(uint32, string)) (*Feed, error) {
	f := &Feed{log: l, checkQuota: rate.New(limit.AuditLogChecks, time.Now()),
		started: make(chan struct{}), messages: make(chan ipc.Message), ended: make(chan struct{})}
	var err error
	if f.Process, err = l.spec.Start(l.starter, generation, service.Hooks{Report: report, Handle: f.handle}); err != nil {
		return nil, err
	}
	close(f.started)
	go f.run()
	return f, nil
}

// handle handles an ipc.CheckLogFile message, in which the auditor asks whether
// the log's path still leads to the same file. handle passes this question on
// to the parent. For any other message, handled is false.
func (f *Feed) handle(m ipc.Message) (handled bool, err error) {
	switch m.(type) {
	case *ipc.CheckLogFile:
	default:
		return false, nil
	}
	if f.checkPending.Swap(true) || !f.checkQuota.Take(time.Now(), 1) {
		return true, errors.New("sent CheckLogFile too often")
	}
	<-f.started // an auditor may ask as soon as it is ready; the answer needs its channel
	f.log.askParent(f)
	return true, nil
}

// answer passes the parent's answer on to the auditor.
func (f *Feed) answer(m *ipc.LogFileResult) {
	f.checkPending.Store(false)
	_ = f.Channel.TrySend(m)
}

// run sends the queued messages in order, whenever the auditor's channel has
// space.
func (f *Feed) run() {
	defer close(f.ended)
	var queue []ipc.Message
	for last := false; !last || len(queue) > 0; {
		var ready <-chan time.Time
		if len(queue) > 0 {
			ready = time.After(flushPause)
		}
		select {
		case m := <-f.messages:
			if last = m == nil; !last {
				queue = append(queue, m)
			}
		case <-ready:
		case <-f.Done: // without the auditor, the workers of this generation can make no changes
			f.lost.Add(uint64(len(queue)))
			return
		}
		for len(queue) > 0 {
			err := f.Channel.TrySend(queue[0])
			if errors.Is(err, ipc.ErrFull) {
				break
			}
			if err != nil {
				f.lost.Add(1)
			}
			queue = queue[1:]
		}
	}
}

// Send queues m for the auditor. It does not wait until the auditor receives m.
func (f *Feed) Send(m ipc.Message) {
	if f == nil {
		return
	}
	select {
	case f.messages <- m:
	case <-f.Done:
		if m != nil {
			f.lost.Add(1)
		}
	}
}

// ConnAssigned informs the auditor that a worker is about to get c.
func (f *Feed) ConnAssigned(worker uint32, c *ipc.Connection) {
	f.Send(&work.ConnectionFacts{Worker: worker, Connection: *c})
}

// ConnClosed informs the auditor that the connection with the given id no
// longer belongs to any worker.
func (f *Feed) ConnClosed(id uint64) { f.Send(&work.ConnectionReleased{ID: id}) }

// WorkerExited informs the auditor how a worker exited.
func (f *Feed) WorkerExited(worker uint32, status string) {
	f.Send(&work.WorkerExited{Worker: worker, Status: ipc.TruncateReason(status)})
}

// Stop makes the auditor write all remaining lines, and waits until the auditor
// has exited. It logs what is lost. Send must not be called after Stop.
func (f *Feed) Stop() {
	if f == nil {
		return
	}
	running := true
	select {
	case <-f.Done:
		running = false // the generation has logged why
	default:
	}
	spec := f.log.spec
	f.Send(nil)
	select {
	case <-f.ended:
	case <-time.After(spec.ExitLimit):
	}
	f.Process.Stop()
	<-f.ended
	if n := f.lost.Load(); n > 0 {
		spec.Log.Error("facts for the audit log lost: the auditor did not receive them", "auditor", f.Number, "facts", n)
	}
	if status := f.Process.ExitStatus(); running && status != exitstatus.OK {
		spec.Log.Error("auditor did not finish; lines of the audit log may be lost", "auditor", f.Number, "limit", spec.ExitLimit, "status", status)
	}
}
