package pool

import (
	"fmt"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/admission"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// worker is one worker process as the parent sees it.
type worker struct {
	*spawn.Process
	*place
	requests int          // that it may answer at one time
	dialer   *dial.Dialer // belongs to the goroutine that reads its channel

	sealed   *security.Sealed       // what the kernel has of its sandbox; nil: it has not said Ready
	ready    bool                   // its keys are in use, too
	late     *time.Timer            // ends a worker that is not ready
	breach   error                  // how it broke the protocol elsewhere, and was killed for it
	held     map[uint64]*Connection // what it was given and has not said Done of
	handed   uint64                 // connections given to it
	share    float64                // … of the last ones that its pool gave, as a part of all
	finished uint64                 // … that it finished
	liveness spawn.Liveness
	reports  *rate.Bucket // of what it may say about how far its connections are
	offences *rate.Bucket // … about what their clients did
}

// What a worker may report of offences: some at once, and then so many a second. An honest one reports half of that
// (worker/penalty.go).
const (
	offenceBurst = 400
	offenceRate  = 200
)

// holds returns a connection that w has taken and says something about.
func (w *worker) holds(id uint64, what string) (*Connection, error) {
	if c := w.held[id]; c != nil && c.FD < 0 {
		return c, nil
	}
	return nil, fmt.Errorf("it said %s of connection %d, which it does not hold", what, id)
}

// load returns how many connections w has beyond the requests that it may answer; below zero it has room.
func (w *worker) load() int { return len(w.held) - w.requests }

// owing returns 1 for a worker that has not answered its Ping for a moment.
func (w *worker) owing() int {
	if !w.liveness.Since().IsZero() && time.Since(w.liveness.Since()) > 100*time.Millisecond {
		return 1
	}
	return 0
}

// suspects returns the connections that w had taken. One of their clients may be why it crashed.
func (w *worker) suspects() (list []*admission.Conn) {
	for _, c := range w.held {
		if c.FD < 0 {
			list = append(list, &c.Conn)
		}
	}
	return list
}

// Describe returns what services are told of a worker.
func Describe(p *spawn.Process, requests int) *ipc.Client {
	return &ipc.Client{Number: p.Number, PID: uint32(p.PID), UID: p.Who.UID, Requests: uint32(requests)}
}
