package admission

import (
	"time"

	"schedrestd/internal/penalty"
)

// Decision is one action that the caller must take. The caller must take the
// actions in order.
type Decision struct {
	Action Action
	Conn   *Conn

	Reason  Reason        // reason of a Refuse
	Wait    time.Duration // for Pause, Report, and Refuse with reason Blocked: how long the source is blocked
	Offence penalty.Kind  // for Report: the offence for which the source is blocked
}

// Action is the kind of a Decision.
type Action uint8

const (
	Admit   Action = iota // give the connection, which has a slot, to a worker
	Refuse                // close the connection; it has no slot, and this package has forgotten it
	Reclaim               // ask its worker to close the connection as soon as no request on it is being answered
	Pause                 // tell its worker to answer with 429 for the duration Wait
	Report                // log that its source is blocked
)

// Reason is the reason why a connection is refused.
type Reason uint8

const (
	Blocked        Reason = iota // its source is blocked for offences
	TooManyWaiting               // too many connections of its source are already waiting
	TimedOut                     // it has waited too long for other connections of its source to end
	ShutDown                     // the gateway is stopping
	numReasons
)

// String returns the reason as the log shows it.
func (r Reason) String() string {
	return [numReasons]string{
		"its source is blocked for repeated offences",
		"too many connections of its source are waiting",
		"its source is at its connection limit, and none of its connections ended in time",
		"the gateway is stopping",
	}[r]
}

// decisions holds the decisions that the caller has not fetched yet.
type decisions []Decision

func (d *decisions) decide(decision Decision) { *d = append(*d, decision) }

// Decisions returns the decisions that were made since it was last called. The
// caller must carry them out.
func (d *decisions) Decisions() []Decision {
	list := *d
	*d = nil
	return list
}
