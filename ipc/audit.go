package ipc

// LogFD gives the auditor the audit log, open for appending.
type LogFD struct {
	FailOpen bool   // changes are permitted while the log can't be written
	Sync     bool   // each line is synced to the disk before it is reported as written
	Torn     bool   // the file ends in the middle of a line
	Path     string // of a file that may be moved or removed, so the auditor sends CheckLogFile; "" for standard error
}

func (l *LogFD) Walk(w *Walker) { w.Fields(&l.FailOpen, &l.Sync, &l.Torn); w.Text(maxPath, &l.Path) }

// ClaimsFD gives the auditor the file of Idempotency-Keys, open for reading and
// writing.
type ClaimsFD struct {
	PerWorker bool // each worker has its user's uid, so messages from it concern only this user
	Path      string
}

func (c *ClaimsFD) Walk(w *Walker) { w.Fields(&c.PerWorker); w.Text(maxPath, &c.Path) }

// CheckLogFile asks the parent whether the audit log's path still leads to the
// file that LogFD passed.
type CheckLogFile struct{ NoFields }

// LogFileResult answers a CheckLogFile.
type LogFileResult struct {
	Reason string // why the log can't be written; "" when it can
}

func (f *LogFileResult) Walk(w *Walker) { w.Text(MaxReason, &f.Reason) }
