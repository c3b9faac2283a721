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
			return nil, errs.New(errs.Invalid, "idempotency file %s: this is the path of the audit log", o.Claims).WithHint("use another path")
		}
	}
	go func() {
		for do := range l.todo {
			do()
		}
	}()
	return l, nil
}

// do passes a function to the goroutine that owns the file, and does not wait for its
// result.
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

// give sends the open file to auditors. An auditor that does not read its channel gets
// no file, and is killed.
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

// Follow checks whether the name of the file still leads to it, and sends auditors the
// file that has the name now. If again is set, it also sends a file that has kept its
// name. Follow does not wait, and passes the answer to done.
func (l *Log) Follow(list []*ipc.Channel, again bool, done func(*ipc.Followed)) {
	l.do(func() {
		reply := new(ipc.Followed)
		if l.file != nil {
			changed, err := l.file.follow(again)
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
