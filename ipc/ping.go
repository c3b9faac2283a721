package ipc

// Ping asks whether a process still reads its channel. Any process with a
// worker's uid can stop that worker (SIGSTOP). Without Pings a stopped worker
// would get connections indefinitely.
type Ping struct{ Number uint64 }

func (p *Ping) Walk(w *Walker) { w.Fields(&p.Number) }

// Pong answers the Ping with the same number. Each Ping may be answered once.
type Pong struct{ Number uint64 }

func (p *Pong) Walk(w *Walker) { w.Fields(&p.Number) }

// ArrivalPing is a Ping on the channel for accepted connections. Its answer is
// a Pong on the dispatcher's channel to the parent. So a dispatcher can't serve
// one of its channels and leave the other one unread.
type ArrivalPing struct{ Number uint64 }

func (p *ArrivalPing) Walk(w *Walker) { w.Fields(&p.Number) }
