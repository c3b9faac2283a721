package pool

import (
	"fmt"
	"time"

	"schedrestd/dispatcher/admission"
	"schedrestd/dispatcher/dial"
	"schedrestd/dispatcher/process"
	"schedrestd/ipc/work"
	"schedrestd/rate"
	"schedrestd/security"
)

// worker is one worker process as the parent sees it.
type worker struct {
	*process.Process
	*place
	requests int          // that it may answer concurrently
	dialer   *dial.Dialer // belongs to the goroutine that reads its channel

	sealed   *security.Sealed       // the kernel's view of its sandbox; nil: it has not sent Ready
	ready    bool                   // its keys are in use, too
	late     *time.Timer            // ends a worker that is not ready
	breach   error                  // how it broke the protocol elsewhere, and was killed for it
	held     map[uint64]*Connection // connections that it was given and has not sent Done for
	handed   uint64                 // connections given to it
	share    float64                // … of the last ones that its pool gave, as a part of all
	finished uint64                 // … that it finished
	liveness process.Liveness
	reports  *rate.Bucket // for reports about the state of its connections
	offences *rate.Bucket // … about the offences of their clients
	counts   *rate.Bucket // … about what it counts for the metrics

	inFlight, calls uint64 // requests in progress, and those to daemons, as it reports them
}

// The limits on the offences that a worker may report: at once, and per second.
// An honest worker reports at most half as many (worker/penalty.go).
const (
	offenceBurst = 400
	offenceRate  = 200
)

// holds returns the connection that w has taken and reports about.
func (w *worker) holds(id uint64, what string) (*Connection, error) {
	if c := w.held[id]; c != nil && c.FD < 0 {
		return c, nil
	}
	return nil, fmt.Errorf("it sent %s of connection %d, which it does not hold", what, id)
}

// load returns the connections of w minus the requests that it may answer. It
// is negative if w has capacity left.
func (w *worker) load() int { return len(w.held) - w.requests }

// owing returns 1 for a worker that has not answered its Ping for a moment.
func (w *worker) owing() int {
	if !w.liveness.Since().IsZero() && time.Since(w.liveness.Since()) > 100*time.Millisecond {
		return 1
	}
	return 0
}

// suspects returns the connections that w had taken. The client of one of them
// may have caused its crash.
func (w *worker) suspects() (list []*admission.Conn) {
	for _, c := range w.held {
		if c.FD < 0 {
			list = append(list, &c.Conn)
		}
	}
	return list
}

// Describe returns the description of a worker that services receive.
func Describe(p *process.Process, requests int) *work.Client {
	return &work.Client{Number: p.Number, PID: uint32(p.PID), UID: p.Who.UID, Requests: uint32(requests)}
}
