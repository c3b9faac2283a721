package ipc

// Stage is how far a connection has come.
type Stage uint8

// The stages.
const (
	Waiting   Stage = iota + 1 // for a request's header, of which nothing or a part has come
	Answering                  // a request was read and is not answered yet
	Resting                    // one was answered, and no other has begun
)

// String returns the stage's name in logs.
func (s Stage) String() string { return word(s, "", "waiting", "answering", "resting") }

// Progress says how far the connection ID has come. A worker need not say so at once, nor of
// what lasts a moment only; a connection that it has not mentioned is Answering.
type Progress struct {
	ID    uint64
	Stage Stage
}

func (p *Progress) Walk(w *Walker) {
	w.Fields(&p.ID)
	Enum(w, &p.Stage, "stage", Waiting, Resting)
}

// Yield asks the worker to end the connection ID, because somebody waits for its slot. A
// worker does so when nobody is wronged by it: nothing of a request was read, or that much is
// answered first. One that is being answered by then stays.
type Yield struct{ ID uint64 }

func (y *Yield) Walk(w *Walker) { w.Fields(&y.ID) }

// Retire says that no more connections come. The worker exits when those it holds have ended by
// themselves; it asks for that with each answer, and breaks none off.
type Retire struct{}

func (*Retire) Walk(*Walker) {}
