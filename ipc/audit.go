package ipc

// LogFD gives the auditor the audit log, open for appending.
type LogFD struct {
	FailOpen bool // changes are granted while the log can't be written
	Sync     bool // a line counts as written when it is on the disk
	Torn     bool // the file ends within a line
	Named    bool // it is a file with a name, which may be moved or removed: Follow asks
}

func (l *LogFD) Walk(w *Walker) { w.Fields(&l.FailOpen, &l.Sync, &l.Torn, &l.Named) }

// ClaimsFD gives the auditor the file of Idempotency-Keys, open for reading and
// writing.
type ClaimsFD struct {
	PerWorker bool // each uid of a worker is a user: what a worker sends concerns only that user
}

func (c *ClaimsFD) Walk(w *Walker) { w.Fields(&c.PerWorker) }

// Facts tells the auditor about a connection that is handed to the worker Worker.
// It is sent before the Connection.
type Facts struct {
	Worker uint32
	Connection
}

func (f *Facts) Walk(w *Walker) { w.Fields(&f.Worker, &f.Connection) }

// Gone tells the auditor that no worker holds the connection ID any longer. Every
// number up to ID has been used for a connection.
type Gone struct{ ID uint64 }

func (g *Gone) Walk(w *Walker) { w.Fields(&g.ID) }

// Exited tells the auditor that a worker has exited, and so holds no connections.
type Exited struct {
	Worker uint32
	Status string // how it ended
}

func (e *Exited) Walk(w *Walker) {
	w.Fields(&e.Worker)
	w.Text(maxReason, &e.Status)
}

// Follow asks the parent whether the file of the LogFD still has its name.
type Follow struct{}

func (*Follow) Walk(*Walker) {}

// Followed answers a Follow.
type Followed struct {
	Reason string // why the log can't be written; "" when it can
}

func (f *Followed) Walk(w *Walker) { w.Text(maxReason, &f.Reason) }
