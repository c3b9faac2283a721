package privsep

import (
	"errors"
	"os"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
)

// Audit says where the audit log is, and what holds when it can't be written.
type Audit ipc.Audit

// audit is the parent's part of the audit log: it opens the file for the auditor, and tells it what the kernel says about each
// connection. A nil one is off.
type audit struct {
	*supervisor
	config Audit
	follow *rate.Bucket // how often the auditor may ask after the file

	last  func() uint64                                // number of the last connection
	holds func(say func(worker uint32, c *connection)) // calls say with each connection that a worker holds

	mu      sync.Mutex // guards the file
	file    *auditFile // nil: standard error
	looking bool       // a Follow is being answered

	feeding  sync.Mutex    // guards what follows; supervisor.mu is locked under it
	queue    []ipc.Message // that the auditor's channel had no room for
	flushing bool
}

// How often the auditor may ask after the file, which an honest one does for a batch of lines.
const (
	followBurst = 4000
	followRate  = 2000
)

// auditFarewell is how long the auditor may take to write what there is when the gateway stops.
const auditFarewell = 12 * time.Second

// openAudit opens the audit log, while the start has all its rights, and the auditor's program. Without a path there is none.
func openAudit(c Config, who service) (*audit, error) {
	if c.Audit.Path == "" {
		return nil, nil
	}
	a := &audit{config: c.Audit, follow: rate.New(followBurst, followRate, time.Now())}
	var err error
	if c.Audit.Path != ipc.AuditStderr {
		if a.file, err = newAuditFile(c.Audit.Path, c.Log, who); err != nil {
			return nil, err
		}
	}
	if a.supervisor, err = newSupervisor(ipc.Auditor, c, who, c.Auditor, c.AuditorArgv); err != nil {
		return nil, err
	}
	a.farewell = auditFarewell
	a.hear, a.ready = a.answer, a.brief
	return a, nil
}

// brief tells an auditor that has just begun what it needs before it hears a worker.
func (a *audit) brief(p *spawn.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.give(p.Channel.Send)
	a.say(&ipc.Gone{ID: a.last()})
	a.holds(func(worker uint32, c *connection) { a.say(&ipc.Facts{Worker: worker, Connection: c.Connection}) })
}

// give sends the open file; a.mu is held.
func (a *audit) give(send func(ipc.Message, ...int) error) error {
	m := &ipc.LogFD{FailOpen: a.config.FailOpen, Sync: a.config.Sync}
	file := os.Stderr
	if a.file != nil {
		file, m.Torn, m.Named = a.file.file, a.file.endsTorn(), true
	}
	return send(m, int(file.Fd()))
}

// answer hears whether the file still has its name. A file system that hangs holds up this answer alone.
func (a *audit) answer(m ipc.Message) (done bool, err error) {
	switch m.(type) {
	case *ipc.Follow:
		a.mu.Lock()
		twice := a.looking
		a.looking = true
		a.mu.Unlock()
		if twice || !a.follow.Take(time.Now(), 1) {
			return true, errTooOften("Follow")
		}
		go a.look(a.trySend)
		return true, nil
	}
	return false, nil
}

// look answers a Follow.
func (a *audit) look(send func(ipc.Message, ...int) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looking = false
	reply := new(ipc.Followed)
	if a.file != nil {
		changed, err := a.file.follow()
		if changed {
			err = a.give(send)
		}
		if err != nil {
			reply.Reason = ipc.Refuse(err.Error()).Reason
		}
	}
	_ = send(reply)
}

// renew opens the file again, by its name. It does not wait.
func (a *audit) renew() {
	if a == nil || a.file == nil {
		return
	}
	go func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		err := a.file.reopen()
		if err == nil {
			err = a.give(a.trySend)
		}
		if err != nil {
			a.supervisor.config.Log.Error("the audit log can't be opened anew; the file of before stays in use", about(errs.HintOf(err), "error", err)...)
			return
		}
		a.supervisor.config.Log.Info("the audit log is opened anew")
	}()
}

// say sends m when the auditor's channel has room, in order. Without an auditor it is dropped: the next one is told of all that
// is there then.
func (a *audit) say(m ipc.Message) {
	if a == nil {
		return
	}
	a.feeding.Lock()
	defer a.feeding.Unlock()
	if len(a.queue) == 0 && !errors.Is(a.trySend(m), ipc.ErrFull) {
		return
	}
	a.queue = append(a.queue, m)
	if !a.flushing {
		a.flushing = true
		go a.flush()
	}
}

// flush sends what had no room.
func (a *audit) flush() {
	for {
		a.feeding.Lock()
		for len(a.queue) > 0 {
			err := a.trySend(a.queue[0])
			if errors.Is(err, ipc.ErrFull) {
				break
			}
			a.queue = a.queue[1:]
		}
		if len(a.queue) == 0 {
			a.queue, a.flushing = nil, false
			a.feeding.Unlock()
			return
		}
		a.feeding.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// given tells the auditor that a worker is about to get c.
func (a *audit) given(worker uint32, c *ipc.Connection) {
	if a != nil {
		a.say(&ipc.Facts{Worker: worker, Connection: *c})
	}
}

// gone tells it that no worker has that connection any longer.
func (a *audit) gone(id uint64) {
	if a != nil {
		a.say(&ipc.Gone{ID: id})
	}
}

// exited tells it how a worker ended.
func (a *audit) exited(worker uint32, status string) {
	if a != nil {
		a.say(&ipc.Exited{Worker: worker, Status: ipc.Refuse(status).Reason})
	}
}

// close has the auditor write what there is, and returns when it has exited.
func (a *audit) close() {
	if a == nil {
		return
	}
	for end := time.Now().Add(spawn.LastWords); time.Now().Before(end); time.Sleep(time.Millisecond) {
		a.feeding.Lock()
		left := len(a.queue)
		a.feeding.Unlock()
		if left == 0 {
			break
		}
	}
	a.stop()
	if a.file != nil {
		a.mu.Lock()
		a.file.file.Close()
		a.mu.Unlock()
	}
}
