package work

import "schedrestd/ipc"

// Facts tells the auditor about a connection that is passed to the worker with
// the number Worker. It is sent before the worker gets the Connection.
type Facts struct {
	Worker uint32
	ipc.Connection
}

func (f *Facts) Walk(w *ipc.Walker) { w.Fields(&f.Worker, &f.Connection) }

// Gone tells the auditor that no worker holds the connection with the number ID
// any longer. All numbers up to ID have already been assigned.
type Gone struct{ ID uint64 }

func (g *Gone) Walk(w *ipc.Walker) { w.Fields(&g.ID) }

// Exited tells the auditor that a worker has exited, and so holds no connections.
type Exited struct {
	Worker uint32
	Status string // how it ended
}

func (e *Exited) Walk(w *ipc.Walker) {
	w.Fields(&e.Worker)
	w.Text(ipc.MaxReason, &e.Status)
}
