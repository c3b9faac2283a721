package work

import "schedrestd/ipc"

// Facts tells the auditor about a connection, before the dispatcher passes this
// connection to a worker. The Worker field is the number of that worker.
type Facts struct {
	Worker uint32
	ipc.Connection
}

func (f *Facts) Walk(w *ipc.Walker) { w.Fields(&f.Worker, &f.Connection) }

// Gone tells the auditor that no worker holds the connection with the number ID
// any longer. It implies that all numbers up to ID have been assigned.
type Gone struct{ ID uint64 }

func (g *Gone) Walk(w *ipc.Walker) { w.Fields(&g.ID) }

// Exited tells the auditor that a worker has exited and therefore no longer
// holds any connections.
type Exited struct {
	Worker uint32
	Status string // how it ended
}

func (e *Exited) Walk(w *ipc.Walker) {
	w.Fields(&e.Worker)
	w.Text(ipc.MaxReason, &e.Status)
}
