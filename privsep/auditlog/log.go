// Package auditlog opens the file of the audit log, and follows its name. An
// unprivileged process writes it.
package auditlog

import (
	"log/slog"
	"os"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// Options describes the audit log.
type Options struct {
	ipc.Audit
	Root   bool   // the parent was started as root
	Worker uint32 // uid of the workers, which must not be able to replace the file
	Log    *slog.Logger
}

// Log is the audit log while the gateway runs. A nil Log is off. One goroutine
// owns the file, because the file system may hang.
type Log struct {
	options Options
	todo    chan func() // for the goroutine that owns what follows
	file    *file       // nil: standard error
}

// Dispatcher is the channel to the dispatcher, which passes on what it receives to
// the auditors.
type Dispatcher interface {
	Send(m ipc.Message, fds ...int) error
}

// Open opens the audit log.
func Open(o Options) (*Log, error) {
	l := &Log{options: o, todo: make(chan func())}
	if o.Path != ipc.AuditStderr {
		var err error
		if l.file, err = openFile(o); err != nil {
			return nil, err
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

// Give sends the open file.
func (l *Log) Give(to Dispatcher) error {
	if l == nil {
		return nil
	}
	given := make(chan error)
	l.do(func() { given <- l.give(to) })
	return <-given
}

func (l *Log) give(to Dispatcher) error {
	m := &ipc.LogFD{FailOpen: l.options.FailOpen, Sync: l.options.Sync}
	file := os.Stderr
	if l.file != nil {
		file, m.Torn, m.Named = l.file.open, l.file.endsTorn(), true
	}
	return ipc.UnlessGone(to.Send(m, int(file.Fd())))
}

// Follow answers whether the file still has its name, and sends the file that has
// it now. It does not wait, and calls done then.
func (l *Log) Follow(to Dispatcher, done func()) {
	l.do(func() {
		reply := new(ipc.Followed)
		if l.file != nil {
			changed, err := l.file.follow()
			if changed {
				err = l.give(to)
			}
			if err != nil {
				reply.Reason = ipc.Refuse(err.Error()).Reason
			}
		}
		_ = to.Send(reply)
		done()
	})
}

// Reopen opens the file again, by its name, and sends it. It does not wait.
func (l *Log) Reopen(to Dispatcher) {
	if l == nil || l.file == nil {
		return
	}
	l.do(func() {
		err := l.file.reopen()
		if err == nil {
			err = l.give(to)
		}
		if err != nil {
			l.options.Log.Error("the audit log can't be opened anew; the file of before stays in use", errs.LogAttrs(errs.HintOf(err), "error", err)...)
			return
		}
		l.options.Log.Info("the audit log is opened anew")
	})
}

// Close closes the file.
func (l *Log) Close() {
	if l != nil && l.file != nil {
		l.do(func() { l.file.open.Close() })
	}
}
