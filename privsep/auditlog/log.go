// Package auditlog is the parent's part of the audit log and of the claims of
// Idempotency-Keys. It opens the files for the auditor of each generation, and
// passes the kernel's facts about connections to the auditor. It reads and writes
// neither file.
package auditlog

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/service"
)

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
	spec    *service.Spec
	todo    chan func() // for the goroutine that owns what follows

	file  *file                     // nil: standard error, or there is no audit log
	kept  *file                     // of claims; nil: there is none
	given map[*ipc.Channel]struct{} // to the auditors that have the file
}

// Farewell is how long an auditor may take to write its remaining lines.
const Farewell = 12 * time.Second

// Open opens the audit log. spec is the auditor's; the Log closes it.
func Open(o Options, spec *service.Spec) (*Log, error) {
	l := &Log{options: o, spec: spec, todo: make(chan func()), given: map[*ipc.Channel]struct{}{}}
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

// add gives the file to one more auditor.
func (l *Log) add(c *ipc.Channel) error {
	given := make(chan error)
	l.do(func() {
		var err error
		if l.kept != nil {
			err = c.Send(&ipc.ClaimsFD{PerWorker: l.options.PerWorker}, int(l.kept.open.Fd()))
		}
		if l.options.Path != "" {
			l.given[c] = struct{}{}
			err = errors.Join(err, l.give(c.Send))
		}
		given <- err
	})
	return ipc.UnlessGone(<-given)
}

// give sends the open file.
func (l *Log) give(send func(ipc.Message, ...int) error) error {
	m := &ipc.LogFD{FailOpen: l.options.FailOpen, Sync: l.options.Sync}
	file := os.Stderr
	if l.file != nil {
		file, m.Torn, m.Named = l.file.open, l.file.endsTorn(), true
	}
	return send(m, int(file.Fd()))
}

// giveAll gives the file to every auditor.
func (l *Log) giveAll() (err error) {
	for c := range l.given {
		err = errors.Join(err, ipc.UnlessGone(l.give(c.TrySend)))
	}
	return err
}

// look returns the answer to a Follow, and gives every auditor the file when
// another one has its name.
func (l *Log) look() *ipc.Followed {
	reply := new(ipc.Followed)
	if l.file == nil {
		return reply
	}
	changed, err := l.file.follow()
	if changed {
		err = l.giveAll()
	}
	if err != nil {
		reply.Reason = ipc.Refuse(err.Error()).Reason
	}
	return reply
}

// Reopen opens the file again, by its name. It does not wait.
func (l *Log) Reopen() {
	if l == nil || l.file == nil {
		return
	}
	l.do(func() {
		err := l.file.reopen()
		if err == nil {
			err = l.giveAll()
		}
		if err != nil {
			l.options.Log.Error("the audit log can't be opened anew; the file of before stays in use", errs.LogAttrs(errs.HintOf(err), "error", err)...)
			return
		}
		l.options.Log.Info("the audit log is opened anew")
	})
}

// Close closes the file and the auditor's program.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.spec.Close()
	for _, f := range []*file{l.file, l.kept} {
		if f != nil {
			l.do(func() { f.open.Close() })
		}
	}
}
