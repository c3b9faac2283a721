package ipc

// Ping asks whether a process still reads its channel. A worker that was stopped
// (its own uid may do that) would otherwise be given connections for ever.
type Ping struct {
	Number uint64
}

// Kind is KindPing.
func (*Ping) Kind() Kind { return KindPing }

func (p *Ping) walk(w *walker) { w.u64(&p.Number) }

// Pong answers the Ping of the same number; each may be answered once.
type Pong struct {
	Number uint64
}

// Kind is KindPong.
func (*Pong) Kind() Kind { return KindPong }

func (p *Pong) walk(w *walker) { w.u64(&p.Number) }

// Drain tells the worker to finish what it is answering and then to exit.
type Drain struct{}

// Kind is KindDrain.
func (*Drain) Kind() Kind { return KindDrain }

func (*Drain) walk(*walker) {}
