package pool

import (
	"fmt"
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/rate"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
)

// A worker is one worker process as the dispatcher sees it.
type worker struct {
	*process.Process
	*place
	requests int          // number of requests that it may answer concurrently
	dialer   *dial.Dialer // used only by the goroutine that reads the worker's channel

	sandbox    *sandbox.Layers        // attributes of its sandbox according to the kernel; nil: it has not sent Ready
	ready      bool                   // it has loaded its keys and can serve
	startTimer *time.Timer            // kills a worker that is not ready in time
	replaced   bool                   // it was asked to finish, and another worker has its place
	violation  error                  // protocol violation that a service reported, for which the worker was killed; nil: none
	held       map[uint64]*Connection // connections that it was given and for which it has not sent ConnectionDone
	assigned   uint64                 // number of connections given to it
	share      float64                // its share of the recent connections of its pool
	finished   uint64                 // number of connections that it finished
	liveness   process.Liveness
	reports    *rate.Bucket // limits its reports on the state of connections
	offences   *rate.Bucket // limits its reports on offences
	counts     *rate.Bucket // limits its reports on metrics

	gauges      query.Gauges           // what it has at present, as it reports it
	outputs     map[uint64]*output     // its processes that read output, by the keeper's number for the user; 0 for the worker's user
	credentials map[uint64]*credential // processes that get credentials, by the same number
}

// heldConn returns the connection that a message from w is about. It returns an
// error if w has not taken this connection.
func (w *worker) heldConn(id uint64, message string) (*Connection, error) {
	if c := w.held[id]; c != nil && c.FD < 0 {
		return c, nil
	}
	return nil, fmt.Errorf("sent %s for connection %d, which it does not hold", message, id)
}

// usable reports whether w gets new connections.
func (w *worker) usable() bool { return w.ready && !w.replaced && w.EndReason == "" }

// load returns the number of connections that w has, minus the number of
// requests that w may answer concurrently. A negative result means that w has
// capacity left.
func (w *worker) load() int { return len(w.held) - w.requests }

// pingOverdue returns 1 if w has left a Ping unanswered for a moment, and 0
// otherwise.
func (w *worker) pingOverdue() int {
	if !w.liveness.PendingSince().IsZero() && time.Since(w.liveness.PendingSince()) > 100*time.Millisecond {
		return 1
	}
	return 0
}

// suspects returns the connections that w has taken. If w has crashed, one of
// their clients may be the cause.
func (w *worker) suspects() (list []*admission.Conn) {
	for _, c := range w.held {
		if c.FD < 0 {
			list = append(list, &c.Conn)
		}
	}
	return list
}

// Describe returns the message that describes a worker to a service.
func Describe(p *process.Process, requests int) *work.WorkerChannel {
	return &work.WorkerChannel{Number: p.Number, PID: uint32(p.PID), UID: p.Identity.UID, Requests: uint32(requests)}
}
