// Package auditlog opens the file of the audit log, whose name it follows, and the
// file of Idempotency-Keys. An unprivileged process, the auditor, keeps both.
package auditlog

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// Farewell is how long an auditor may take to write its remaining lines.
const Farewell = 12 * time.Second

// Options describes the audit log.
type Options struct {
	ipc.Audit
	Root      bool   // the parent was started as root
	Worker    uint32 // uid of the workers, which must not be able to replace the file
	PerWorker bool   // each worker has the uid of its own user
	Log       *slog.Logger
}

// Log is the audit log while the gateway runs. A nil Log is off. One goroutine
// owns the file, because the file system may hang.
type Log struct {
	options Options
	todo    chan func() // for the goroutine that owns what follows
	file    *file       // nil: standard error, or there is no audit log
	kept    *file       // of Idempotency-Keys; nil: there is none
}

// Open opens the audit log.
func Open(o Options) (*Log, error) {
	l := &Log{options: o, todo: make(chan func())}
	var err error
	if o.Path != "" && o.Path != ipc.AuditStderr {
		if l.file, err = openFile(o, "audit log", o.Path, unix.O_WRONLY|unix.O_APPEND); err != nil {
			return nil, err
		}
	}
	if o.Claims != "" {
		if l.kept, err = openFile(o, "idempotency file", o.Claims, unix.O_RDWR); err != nil {
			return nil, err
		}
		if l.file != nil && l.kept.path == l.file.path { // it would be overwritten
			return nil, errs.New(errs.Invalid, "idempotency file %s: the audit log has this name", o.Claims).WithHint("use another path")
		}
	}
	go func() {
		for do := range l.todo {
			do()
		}
	}()
	return l, nil
}

// do passes something to the owner of the file, and does not wait for it.
func (l *Log) do(something func()) { go func() { l.todo <- something }() }

// Give sends an auditor the open files.
func (l *Log) Give(to *ipc.Channel) error {
	given := make(chan error)
	l.do(func() {
		err := l.give([]*ipc.Channel{to})
		if l.kept != nil {
			err = errors.Join(err, ipc.UnlessGone(to.TrySend(&ipc.ClaimsFD{PerWorker: l.options.PerWorker}, int(l.kept.open.Fd()))))
		}
		given <- err
	})
	return <-given
}

// give sends the open file to auditors. One that does not read its channel gets
// none, and is killed for that.
func (l *Log) give(list []*ipc.Channel) (err error) {
	if l.options.Path == "" {
		return nil
	}
	m := &ipc.LogFD{FailOpen: l.options.FailOpen, Sync: l.options.Sync}
	file := os.Stderr
	if l.file != nil {
		file, m.Torn, m.Named = l.file.open, l.file.endsTorn(), true
	}
	for _, to := range list {
		err = errors.Join(err, ipc.UnlessGone(to.TrySend(m, int(file.Fd()))))
	}
	return err
}

// Follow looks whether the file still has its name, and sends auditors the file
// that has it now. It does not wait, and passes the answer to done.
func (l *Log) Follow(list []*ipc.Channel, done func(*ipc.Followed)) {
	l.do(func() {
		reply := new(ipc.Followed)
		if l.file != nil {
			changed, err := l.file.follow()
			if changed {
				err = l.give(list)
			}
			if err != nil {
				reply.Reason = ipc.Refuse(err.Error()).Reason
			}
		}
		done(reply)
	})
}

// Reopen opens the file again, by its name, and sends it to auditors. It does not
// wait.
func (l *Log) Reopen(list []*ipc.Channel) {
	if l == nil || l.file == nil {
		return
	}
	l.do(func() {
		err := l.file.reopen()
		if err == nil {
			err = l.give(list)
		}
		if err != nil {
			l.options.Log.Error("the audit log can't be opened again; the previous file stays in use", errs.LogAttrs(errs.HintOf(err), "error", err)...)
			return
		}
		l.options.Log.Info("the audit log is opened again")
	})
}

// Close closes the files.
func (l *Log) Close() {
	if l == nil {
		return
	}
	for _, f := range []*file{l.file, l.kept} {
		if f != nil {
			l.do(func() { f.open.Close() })
		}
	}
}
