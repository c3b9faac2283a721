package work

import "schedrestd/ipc"

// ConnectionTaken reports that the worker has received the connection with the
// number ID and will read from it. Until then the dispatcher keeps its copy of
// the descriptor. If the worker exits with connections still unread in its
// channel, another worker gets these connections, and the clients notice
// nothing.
type ConnectionTaken struct{ ID uint64 }

func (t *ConnectionTaken) Walk(w *ipc.Walker) { w.Fields(&t.ID) }

// ConnectionDone reports that the worker carries out no more requests on the
// connection with the number ID, so its slot is free. The connection is closed.
// If its slot was reclaimed, it may still be open for a moment, in which the
// worker only sends an error. A worker may send ConnectionDone once for each
// connection that it holds, and for no other connection. Without this rule, a
// compromised worker could free the slots of other workers.
type ConnectionDone struct{ ID uint64 }

func (d *ConnectionDone) Walk(w *ipc.Walker) { w.Fields(&d.ID) }

// ExitAfterError is the exit status of a worker in inetd mode that sent every
// answer, at least one of them an error. Go's runtime ends a program that fails
// with 2.
const ExitAfterError = 3

// Stage is the state of a connection.
type Stage uint8

// The stages.
const (
	Waiting   Stage = iota + 1 // no complete request header has arrived yet
	Answering                  // a request's header was read, and the request is not answered yet
	Idle                       // the last request was answered, and no other complete header has arrived
	Watching                   // all requests wait for a change, so the connection needs no slot
	Calling                    // all requests wait for a change or for an accounting daemon, so the connection needs no slot, but it can't be closed now
)

// String returns the stage's name in logs.
func (s Stage) String() string {
	return ipc.Word(s, "", "waiting", "answering", "idle", "watching", "calling")
}

// Progress reports the stage of the connection with the number ID. A worker may
// report late, and need not report stages that last only a moment. The
// dispatcher treats a connection without a report as Answering.
type Progress struct {
	ID    uint64
	Stage Stage
}

func (p *Progress) Walk(w *ipc.Walker) {
	w.Fields(&p.ID)
	ipc.Enum(w, &p.Stage, "stage", Waiting, Calling)
}

// ReclaimConnection asks the worker to close the connection with the number ID,
// because another client waits for a slot. If a request is being answered, the
// worker closes the connection after that answer. If the connection was
// accepted or answered only a moment ago, the worker closes it after the next
// answer. If all its requests wait for a change, they are answered now. One that
// waits for an accounting daemon is answered, too, unless it has sent a change.
// Otherwise the worker closes the connection at once. If the client has begun a
// request, the worker first sends an error.
type ReclaimConnection struct{ ID uint64 }

func (y *ReclaimConnection) Walk(w *ipc.Walker) { w.Fields(&y.ID) }

// Retire announces that the worker gets no more connections. The worker aborts
// no connection, but each answer asks the client to close the connection. The
// worker exits when all connections have ended.
type Retire struct{}

func (*Retire) Walk(*ipc.Walker) {}

// Drain tells the worker to finish the requests in progress and then to exit.
type Drain struct{}

func (*Drain) Walk(*ipc.Walker) {}
