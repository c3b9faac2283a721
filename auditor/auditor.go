// Package auditor is the process that writes the audit log: a line before each
// change that a worker makes, and a line after the change. Before a worker
// makes a change, it asks the auditor for permission. The auditor also keeps
// the Idempotency-Keys of submissions (ledger.go), in another file. The parent
// gives the auditor the open files. For each connection, the dispatcher sends
// the auditor what the kernel reports about the client, so that a worker can't
// forge these facts. The auditor also formats the lines, because the parent may
// run as root and so must not handle texts from workers.
//
// The auditor starts as a worker does, with an identity of its own. It can
// append to the log that it was given, but can't read or truncate it. It can
// read and write the file of Idempotency-Keys, if one is configured. It can't
// open any other file. Once the auditor has started, both the parent and the
// dispatcher send messages to it, over the same channel. The dispatcher
// receives the auditor's questions and passes them on to the parent.
// docs/AUDIT.md lists the auditor's guarantees.
//
// Start with Main.
package auditor

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"schedrestd/auditor/claims"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security"
	"schedrestd/security/seal"
	"schedrestd/security/self"
	"schedrestd/service"
)

// Rename gives the process its name. Call it from an init function.
func Rename() { self.Rename("schedrestd-audi") }

// Main runs the auditor and returns its exit status.
func Main() int {
	return service.Main(ipc.Auditor, confine, func(parent *ipc.Channel) service.Service { return newAuditor(parent) })
}

func confine(setup ipc.ServiceSetup) (security.Sandbox, error) {
	s := setup.Seal
	return seal.Close(seal.Options{Kind: seal.Auditor, Claims: s&ipc.SealClaims != 0, Audit: s&ipc.SealAudit != 0}, s&ipc.SealRequire != 0)
}

// auditor is the running process.
type auditor struct {
	parent   *ipc.Channel
	file     *file
	followed chan string   // gets the parent's answer to a Follow
	gone     chan struct{} // closed when the gateway shuts down
	exiting  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	journal *journal   // nil until the parent has sent a file
	ledger  *ledger    // nil: Idempotency-Keys are not kept
	alone   bool       // each worker serves a single user
	held    map[uint32]map[uint64]ipc.Connection
	owner   map[uint64]uint32 // worker that holds the connection
	highest uint64            // highest connection number that the parent has sent
	more    chan struct{}     // closed and replaced when the parent sends facts about another connection
	clients map[uint32]*client
}

func newAuditor(parent *ipc.Channel) *auditor {
	a := &auditor{parent: parent, followed: make(chan string, 1), gone: make(chan struct{}), held: map[uint32]map[uint64]ipc.Connection{}, owner: map[uint64]uint32{},
		more: make(chan struct{}), clients: map[uint32]*client{}}
	a.file = &file{follow: a.follow}
	return a
}

// Handle handles a message from the parent.
func (a *auditor) Handle(m ipc.Received) (done bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.LogFD:
		return true, a.open(m.FDs[0], msg)
	case *ipc.ClaimsFD:
		return true, a.keep(m.FDs[0], msg)
	case *work.Facts:
		a.hold(msg)
	case *work.Gone:
		a.drop(msg.ID)
	case *work.Exited:
		a.workerExited(msg)
	case *ipc.Followed:
		select {
		case a.followed <- msg.Reason:
		default: // follow no longer waits
		}
	default:
		return false, nil
	}
	return true, nil
}

// open makes the auditor write all further lines to the file of the descriptor
// fd.
func (a *auditor) open(fd int, m *ipc.LogFD) error {
	a.file.use(fd, m)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.journal != nil {
		return nil
	}
	var err error
	if a.journal, err = newJournal(m.FailOpen); err == nil {
		go a.journal.write(a.file)
	}
	return err
}

// keep makes the auditor store Idempotency-Keys in the file of the descriptor
// fd. The parent sends this file only once.
func (a *auditor) keep(fd int, m *ipc.ClaimsFD) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ledger != nil {
		return errors.New("a second file of Idempotency-Keys")
	}
	if a.ledger, err = newLedger(claims.Open(fd)); err == nil {
		a.alone = m.PerWorker
		go a.ledger.run()
	}
	return err
}

// follow asks the parent whether the path of the audit log still leads to the
// open file. If it does not, for example after a rotation, the parent first
// sends the file that is now at that path, and then answers.
func (a *auditor) follow() error {
	select {
	case <-a.followed: // a late answer to the previous question
	default:
	}
	if err := a.parent.Send(new(ipc.Follow)); err != nil {
		return nil // the gateway is shutting down: remaining lines go to the current file
	}
	select {
	case reason := <-a.followed:
		if reason != "" {
			return errors.New(reason)
		}
		return nil
	case <-a.gone:
		return nil // the gateway is shutting down
	case <-time.After(writeLimit):
		return fmt.Errorf("the parent did not answer within %s", writeLimit)
	}
}

// hold records the facts about a connection that a worker is about to get.
func (a *auditor) hold(m *work.Facts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[m.Worker] == nil {
		a.held[m.Worker] = map[uint64]ipc.Connection{}
	}
	a.held[m.Worker][m.ID] = m.Connection
	a.owner[m.ID] = m.Worker
	a.reach(m.ID)
}

// drop records that no worker has a connection any longer.
func (a *auditor) drop(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.held[a.owner[id]], id)
	delete(a.owner, id)
	a.reach(id)
}

// reach records that facts about the connection id were received. a.mu is held.
func (a *auditor) reach(id uint64) {
	a.highest = max(a.highest, id)
	close(a.more)
	a.more = make(chan struct{})
}

// factsLimit is how long the facts about a connection may take to arrive.
const factsLimit = 200 * time.Millisecond

// holds returns the facts about a connection of the given worker, or nil if the
// connection has ended. The facts are sent before the connection is passed to
// the worker, but over another channel. So holds may have to wait for them.
func (a *auditor) holds(worker uint32, id uint64) (*ipc.Connection, error) {
	late := time.NewTimer(factsLimit)
	defer late.Stop()
	for {
		a.mu.Lock()
		c, ok := a.held[worker][id]
		_, others := a.owner[id]
		never, more := id == 0 || id > a.highest, a.more
		a.mu.Unlock()
		switch {
		case ok:
			return &c, nil
		case others:
			return nil, fmt.Errorf("sent Intent for connection %d, which it does not hold", id)
		}
		select {
		case <-more:
			continue
		case <-late.C:
		}
		if never {
			return nil, fmt.Errorf("sent Intent for connection %d, which never existed", id)
		}
		return nil, nil
	}
}

// Serve handles the messages of one worker.
func (a *auditor) Serve(c *service.Client) {
	a.mu.Lock()
	w := newClient(a.journal, c, func(id uint64) (*ipc.Connection, error) { return a.holds(c.Number, id) })
	a.clients[c.Number] = w
	claims := newClaimer(a.ledger, c, a.alone)
	a.mu.Unlock()
	defer close(w.ended)
	defer claims.ended()
	c.Each(func(m ipc.Message) (done bool, err error) {
		if done, err = claims.handle(m); !done {
			done, err = w.handle(m)
		}
		return done, err
	})
}

// workerExited records that a worker has exited. The worker's earlier messages
// are handled first.
func (a *auditor) workerExited(m *work.Exited) {
	a.mu.Lock()
	w := a.clients[m.Worker]
	delete(a.clients, m.Worker)
	for id := range a.held[m.Worker] {
		delete(a.owner, id)
	}
	delete(a.held, m.Worker)
	a.mu.Unlock()
	if w == nil {
		return
	}
	a.exiting.Go(func() {
		select {
		case <-w.ended:
		case <-time.After(writeLimit): // another process still holds its channel
		}
		w.exited(m.Status)
	})
}

// Close writes the queued lines. It returns when they are written or can't be
// written.
func (a *auditor) Close() {
	close(a.gone)
	a.exiting.Wait()
	a.mu.Lock()
	j, l := a.journal, a.ledger
	a.mu.Unlock()
	if l != nil {
		l.close()
	}
	if j != nil {
		j.close()
	}
}

// Counters returns the auditor's counters since its start.
func (a *auditor) Counters() (list []any) {
	a.mu.Lock()
	j, l := a.journal, a.ledger
	a.mu.Unlock()
	if l != nil {
		c := &l.counts
		list = append(list, "idempotency", slog.GroupValue(
			slog.Any("claimed", &c.claimed), slog.Any("replayed", &c.replayed), slog.Any("refused", &c.refused), slog.Any("failures", &c.failed)))
	}
	if j == nil {
		return list
	}
	j.mu.Lock()
	owed, waiting, ill := j.owed, len(j.queue), j.ill
	j.mu.Unlock()
	c := &j.counts
	return append(list, "audit", slog.GroupValue(
		slog.Any("lines", &c.lines), slog.Any("granted", &c.granted), slog.Any("refused", &c.refused), slog.Any("put_off", &c.later),
		slog.Int("under_way", owed), slog.Int("waiting", waiting), slog.Any("failed_writes", &c.failed), slog.Any("lines_lost", &c.lost), slog.Bool("failing", ill)))
}
