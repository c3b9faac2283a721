package ipc

// Stage is the state of a connection.
type Stage uint8

// The stages.
const (
	Waiting   Stage = iota + 1 // no complete request header has arrived yet
	Answering                  // a request was read and is not answered yet
	Resting                    // idle: the last request was answered, and no other has begun
)

// String returns the stage's name in logs.
func (s Stage) String() string { return word(s, "", "waiting", "answering", "resting") }

// Progress reports the stage of the connection ID. A worker may report late, and need
// not report stages that last a moment. Without a report a connection is Answering.
type Progress struct {
	ID    uint64
	Stage Stage
}

func (p *Progress) Walk(w *Walker) {
	w.Fields(&p.ID)
	Enum(w, &p.Stage, "stage", Waiting, Resting)
}

// Yield asks the worker to close the connection ID, because another client waits for
// its slot. The worker closes it if no part of a request was read, and otherwise
// after the answer.
type Yield struct{ ID uint64 }

func (y *Yield) Walk(w *Walker) { w.Fields(&y.ID) }

// Retire announces that no more connections come. The worker exits when those that it
// holds have ended. It asks clients to close with each answer, and aborts none.
type Retire struct{}

func (*Retire) Walk(*Walker) {}
