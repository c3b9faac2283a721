package ipc

// Ping asks whether a process still reads its channel. Any process with a
// worker's uid can stop that worker (SIGSTOP). Without Pings a stopped worker
// would get connections indefinitely.
type Ping struct{ Number uint64 }

func (p *Ping) Walk(w *Walker) { w.Fields(&p.Number) }

// Pong answers the Ping with the same number. Each Ping may be answered once.
type Pong struct{ Number uint64 }

func (p *Pong) Walk(w *Walker) { w.Fields(&p.Number) }
