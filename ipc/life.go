package ipc

// Ping asks whether a process still reads its channel. A worker that was stopped
// (its own uid may do that) would otherwise be given connections for ever.
type Ping struct{ Number uint64 }

func (p *Ping) Walk(w *Walker) { w.Fields(&p.Number) }

// Pong answers the Ping of the same number; each may be answered once.
type Pong struct{ Number uint64 }

func (p *Pong) Walk(w *Walker) { w.Fields(&p.Number) }

// Drain tells the worker to finish what it is answering and then to exit.
type Drain struct{}

func (*Drain) Walk(*Walker) {}
