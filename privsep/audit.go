package privsep

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
)

// Audit says where the audit log is, and what holds when it can't be written.
type Audit ipc.Audit

// audit is the parent's part of the audit log: it opens the file, for the auditor of each generation. A nil one is off.
type audit struct {
	*serviceSpec
	config Audit
	log    *slog.Logger

	mu    sync.Mutex                // guards what follows
	file  *auditFile                // nil: standard error
	given map[*ipc.Channel]struct{} // to the auditors that have it
}

// auditFeed is the auditor of one generation. It is told what the kernel says about each connection.
type auditFeed struct {
	*serviceProcess
	audit   *audit
	follow  *rate.Bucket // how often it may ask after the file
	looking atomic.Bool  // it has asked

	feeding  sync.Mutex    // guards what follows
	queue    []ipc.Message // that its channel had no room for
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
	a := &audit{config: c.Audit, log: c.Log, given: map[*ipc.Channel]struct{}{}}
	var err error
	if c.Audit.Path != ipc.AuditStderr {
		if a.file, err = newAuditFile(c.Audit.Path, c.Log, who); err != nil {
			return nil, err
		}
	}
	if a.serviceSpec, err = newServiceSpec(ipc.Auditor, c, who, c.Auditor, c.AuditorArgv); err != nil {
		return nil, err
	}
	a.farewell = auditFarewell
	return a, nil
}

// start starts an auditor, and gives it the file.
func (a *audit) start(from *spawn.Spawner, c Config, accuse func(uint32, string)) (*auditFeed, error) {
	f := &auditFeed{audit: a, follow: rate.New(followBurst, followRate, time.Now())}
	var err error
	if f.serviceProcess, err = a.serviceSpec.start(from, c, accuse, f.answer); err != nil {
		return nil, err
	}
	return f, unlessGone(a.add(f.Channel))
}

// add gives the file to one more auditor.
func (a *audit) add(c *ipc.Channel) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given[c] = struct{}{}
	return a.give(c.Send)
}

// giveAll gives the file to every auditor; a.mu is held.
func (a *audit) giveAll() (err error) {
	for c := range a.given {
		err = errors.Join(err, unlessGone(a.give(c.TrySend)))
	}
	return err
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
func (f *auditFeed) answer(m ipc.Message) (done bool, err error) {
	switch m.(type) {
	case *ipc.Follow:
	default:
		return false, nil
	}
	if f.looking.Swap(true) || !f.follow.Take(time.Now(), 1) {
		return true, errors.New("it said Follow too often")
	}
	go func() {
		reply := f.audit.look()
		f.looking.Store(false)
		_ = f.Channel.TrySend(reply)
	}()
	return true, nil
}

// look returns the answer to a Follow, and gives every auditor the file when it is another one.
func (a *audit) look() *ipc.Followed {
	a.mu.Lock()
	defer a.mu.Unlock()
	reply := new(ipc.Followed)
	if a.file != nil {
		changed, err := a.file.follow()
		if changed {
			err = a.giveAll()
		}
		if err != nil {
			reply.Reason = ipc.Refuse(err.Error()).Reason
		}
	}
	return reply
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
			err = a.giveAll()
		}
		if err != nil {
			a.log.Error("the audit log can't be opened anew; the file of before stays in use", about(errs.HintOf(err), "error", err)...)
			return
		}
		a.log.Info("the audit log is opened anew")
	}()
}

// close closes the file.
func (a *audit) close() {
	if a == nil {
		return
	}
	a.serviceSpec.close()
	if a.file != nil {
		a.file.file.Close()
	}
}

// say sends m when the auditor's channel has room, in order. What an auditor that exits was not told is of no account: its workers
// make no change any more.
func (f *auditFeed) say(m ipc.Message) {
	if f == nil {
		return
	}
	f.feeding.Lock()
	defer f.feeding.Unlock()
	if len(f.queue) == 0 && !errors.Is(f.Channel.TrySend(m), ipc.ErrFull) {
		return
	}
	f.queue = append(f.queue, m)
	if !f.flushing {
		f.flushing = true
		go f.flush()
	}
}

// flush sends what had no room.
func (f *auditFeed) flush() {
	for {
		f.feeding.Lock()
		for len(f.queue) > 0 {
			err := f.Channel.TrySend(f.queue[0])
			if errors.Is(err, ipc.ErrFull) {
				break
			}
			f.queue = f.queue[1:]
		}
		if len(f.queue) == 0 {
			f.queue, f.flushing = nil, false
			f.feeding.Unlock()
			return
		}
		f.feeding.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// Given tells the auditor that a worker is about to get c.
func (f *auditFeed) Given(worker uint32, c *ipc.Connection) {
	if f != nil {
		f.say(&ipc.Facts{Worker: worker, Connection: *c})
	}
}

// Gone tells it that no worker has that connection any longer.
func (f *auditFeed) Gone(id uint64) {
	if f != nil {
		f.say(&ipc.Gone{ID: id})
	}
}

// Exited tells it how a worker ended.
func (f *auditFeed) Exited(worker uint32, status string) {
	if f != nil {
		f.say(&ipc.Exited{Worker: worker, Status: ipc.Refuse(status).Reason})
	}
}

// stop has the auditor write what there is, and returns when it has exited.
func (f *auditFeed) stop() {
	for end := time.Now().Add(spawn.LastWords); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.feeding.Lock()
		left := len(f.queue)
		f.feeding.Unlock()
		if left == 0 {
			break
		}
	}
	f.serviceProcess.stop()
	f.audit.mu.Lock()
	delete(f.audit.given, f.Channel)
	f.audit.mu.Unlock()
}
