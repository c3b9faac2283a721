package work

import "schedrestd/ipc"

// ConnectionFacts tells the auditor about a connection, before the dispatcher
// passes this connection to a worker. The Worker field is the number of that
// worker.
type ConnectionFacts struct {
	Worker uint32
	ipc.Connection
}

func (f *ConnectionFacts) Walk(w *ipc.Walker) { w.Fields(&f.Worker, &f.Connection) }

// ConnectionReleased tells the auditor that no worker holds the connection with
// the number ID any longer. It implies that all numbers up to ID have been
// assigned.
type ConnectionReleased struct{ ID uint64 }

func (g *ConnectionReleased) Walk(w *ipc.Walker) { w.Fields(&g.ID) }

// WorkerExited tells the auditor that a worker has exited and therefore no
// longer holds any connections.
type WorkerExited struct {
	Worker uint32
	Status string // how it ended
}

func (e *WorkerExited) Walk(w *ipc.Walker) {
	w.Fields(&e.Worker)
	w.Text(ipc.MaxReason, &e.Status)
}
