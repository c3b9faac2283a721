package ipc

// LogFD gives the auditor the audit log, open for appending.
type LogFD struct {
	FailOpen bool // changes are permitted while the log can't be written
	Sync     bool // a line counts as written only when it is on the disk
	Torn     bool // the file ends in the middle of a line
	Named    bool // the log is a file with a name, which may be moved or removed, so the auditor sends Follow
}

func (l *LogFD) Walk(w *Walker) { w.Fields(&l.FailOpen, &l.Sync, &l.Torn, &l.Named) }

// ClaimsFD gives the auditor the file of Idempotency-Keys, open for reading and
// writing.
type ClaimsFD struct {
	PerWorker bool // each worker serves only the user with its uid, so its messages concern only that user
}

func (c *ClaimsFD) Walk(w *Walker) { w.Fields(&c.PerWorker) }

// Follow asks the parent whether the audit log, which LogFD passed, still has
// its name.
type Follow struct{}

func (*Follow) Walk(*Walker) {}

// Followed answers a Follow.
type Followed struct {
	Reason string // why the log can't be written; "" when it can
}

func (f *Followed) Walk(w *Walker) { w.Text(MaxReason, &f.Reason) }
