// Package auditlog opens the file of the audit log and the file of
// Idempotency-Keys. When the audit log is moved or removed, the package opens a
// new one. An unprivileged process, the auditor, writes both files.
package auditlog

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// FlushTimeout is how long an auditor may take to write its remaining lines.
const FlushTimeout = 12 * time.Second

// Options describes the audit log.
type Options struct {
	ipc.Audit
	Root      bool   // the parent was started as root
	WorkerUID uint32 // uid of the workers, which must not be able to replace the file
	PerWorker bool   // each worker has the uid of its own user
	Log       *slog.Logger
}

// Log is the audit log of a running gateway. Its methods block while the file
// system hangs.
type Log struct {
	options    Options
	claimsFile *file // file of Idempotency-Keys; nil: there is none

	mu   sync.Mutex // guards *file; no other lock is taken while it is held
	file *file      // nil if the log goes to standard error, or if there is no audit log
}

// Open opens the audit log.
func Open(o Options) (*Log, error) {
	l := &Log{options: o}
	var err error
	if o.Path != "" && o.Path != ipc.AuditStderr {
		if l.file, err = openFile(o, "audit log", o.Path, unix.O_WRONLY|unix.O_APPEND); err != nil {
			return nil, err
		}
	}
	if o.Claims != "" {
		if l.claimsFile, err = openFile(o, "idempotency file", o.Claims, unix.O_RDWR); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// SendFiles sends an auditor the open files. An auditor that does not read its
// channel gets no files, and is killed.
func (l *Log) SendFiles(auditor *ipc.Channel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.sendLog(auditor)
	if l.claimsFile != nil {
		_ = auditor.TrySend(&ipc.ClaimsFD{PerWorker: l.options.PerWorker, Path: l.options.Claims}, int(l.claimsFile.osFile.Fd()))
	}
}

// sendLog sends an auditor the open audit log.
func (l *Log) sendLog(auditor *ipc.Channel) error {
	if l.options.Path == "" {
		return nil
	}
	m := &ipc.LogFD{FailOpen: l.options.FailOpen, Sync: l.options.Sync}
	file := os.Stderr
	if l.file != nil {
		file, m.Torn, m.Path = l.file.osFile, l.file.endsMidLine(), l.options.Path
	}
	return ipc.IgnoreClosed(auditor.TrySend(m, int(file.Fd())))
}

// Reopen sends the auditors a new file if the name of the log no longer leads
// to the open file, or if force is true.
func (l *Log) Reopen(auditors []*ipc.Channel, force bool) *ipc.LogFileResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return new(ipc.LogFileResult)
	}
	changed, err := l.file.reopenIfMoved(force)
	for i := 0; changed && i < len(auditors); i++ {
		err = errors.Join(err, l.sendLog(auditors[i]))
	}
	if err != nil {
		return &ipc.LogFileResult{Reason: ipc.TruncateReason(err.Error())}
	}
	return new(ipc.LogFileResult)
}
