package work

import "schedrestd/ipc"

// Taken reports that the worker has received the connection ID and will read it. Until
// then the parent keeps its copy of the descriptor: when a worker exits, connections
// that wait in its channel go to another worker, unnoticed by their clients.
type Taken struct{ ID uint64 }

func (t *Taken) Walk(w *ipc.Walker) { w.Fields(&t.ID) }

// Done reports that the connection ID is closed. A worker may send it once, and only
// for a connection that it holds: a compromised worker must not free the slots of
// others.
type Done struct{ ID uint64 }

func (d *Done) Walk(w *ipc.Walker) { w.Fields(&d.ID) }

// Stage is the state of a connection.
type Stage uint8

// The stages.
const (
	Waiting   Stage = iota + 1 // no complete request header has arrived yet
	Answering                  // a request was read and is not answered yet
	Resting                    // idle: the last request was answered, and no other has begun
)

// String returns the stage's name in logs.
func (s Stage) String() string { return ipc.Word(s, "", "waiting", "answering", "resting") }

// Progress reports the stage of the connection ID. A worker may report late, and need
// not report stages that last a moment. Without a report a connection is Answering.
type Progress struct {
	ID    uint64
	Stage Stage
}

func (p *Progress) Walk(w *ipc.Walker) {
	w.Fields(&p.ID)
	ipc.Enum(w, &p.Stage, "stage", Waiting, Resting)
}

// Yield asks the worker to close the connection ID, because another client waits for
// its slot. The worker closes it if no part of a request was read, and otherwise
// after the answer.
type Yield struct{ ID uint64 }

func (y *Yield) Walk(w *ipc.Walker) { w.Fields(&y.ID) }

// Retire announces that no more connections come. The worker exits when those that it
// holds have ended. It asks clients to close with each answer, and aborts none.
type Retire struct{}

func (*Retire) Walk(*ipc.Walker) {}

// Drain tells the worker to finish what it is answering and then to exit.
type Drain struct{}

func (*Drain) Walk(*ipc.Walker) {}
