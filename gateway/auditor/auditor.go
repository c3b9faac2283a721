// Package auditor implements the process that writes the audit log. For each
// change that a worker makes, the auditor writes one line before the change and
// one after it. A worker must ask the auditor for permission before it makes a
// change. The auditor also keeps the Idempotency-Keys of submissions in a
// separate file (ledger.go). The parent opens both files and passes them to the
// auditor. For each connection, the dispatcher sends the auditor what the
// kernel reports about the client, so that a worker can't forge these facts.
// The auditor also formats the lines, because the parent may run as root and so
// must not handle texts from workers.
//
// The auditor is started like a worker, and runs as a separate user. It can
// append to the audit log, but can't read or truncate it. It can read and write
// the file of Idempotency-Keys, if one is configured. It can't open any other
// file. Once the auditor has started, both the parent and the dispatcher send
// it messages over the same channel. The dispatcher reads the auditor's
// messages, and passes the auditor's questions on to the parent. docs/AUDIT.md
// lists the auditor's guarantees.
package auditor

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"schedrestd/gateway/auditor/claims"
	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename gives the process its name. Call it from an init function.
func Rename() { self.Rename("schedrestd-audi") }

// Main runs the auditor and returns its exit status.
func Main() int {
	return service.Main(ipc.Auditor, confine, func(dispatcher *ipc.Channel) service.Service { return newAuditor(dispatcher) })
}

func confine(setup ipc.ServiceSetup) (sandbox.Layers, error) {
	s := setup.Sandbox
	o := sandbox.Options{Kind: sandbox.Auditor, Claims: s&ipc.SandboxFile != 0, Audit: s&ipc.SandboxAudit != 0}
	return sandbox.Close(o, s&ipc.SandboxRequire != 0)
}

type auditor struct {
	dispatcher *ipc.Channel
	file       *file
	logReply   chan string   // gets the parent's answer to a CheckLogFile
	done       chan struct{} // closed when the gateway shuts down
	exiting    sync.WaitGroup

	mu          sync.Mutex // guards the fields below
	journal     *journal   // nil until the parent has sent the audit log
	ledger      *ledger    // nil: Idempotency-Keys are not kept
	perWorker   bool       // each worker serves a single user
	connections map[uint32]map[uint64]ipc.Connection
	holders     map[uint64]uint32 // maps each connection to the worker that holds it
	highest     uint64            // highest connection number that the dispatcher has sent
	changed     chan struct{}     // closed and replaced when facts about a connection arrive, or when a connection ends
	clients     map[uint32]*client
}

func newAuditor(dispatcher *ipc.Channel) *auditor {
	a := &auditor{dispatcher: dispatcher, logReply: make(chan string, 1), done: make(chan struct{}), changed: make(chan struct{}),
		connections: map[uint32]map[uint64]ipc.Connection{}, holders: map[uint64]uint32{}, clients: map[uint32]*client{}}
	a.file = &file{checkPath: a.checkLogFile}
	return a
}

// Handle handles a message from the parent or the dispatcher.
func (a *auditor) Handle(m ipc.Received) (handled bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.LogFD:
		return true, a.openLog(m.FDs[0], msg)
	case *ipc.ClaimsFD:
		return true, a.openLedger(m.FDs[0], msg)
	case *work.ConnectionFacts:
		a.addFacts(msg)
	case *work.ConnectionReleased:
		a.dropConn(msg.ID)
	case *work.WorkerExited:
		a.workerExited(msg)
	case *ipc.LogFileResult:
		select {
		case a.logReply <- msg.Reason:
		default: // checkLogFile no longer waits
		}
	default:
		return false, nil
	}
	return true, nil
}

// openLog makes the auditor write all further lines to descriptor fd.
func (a *auditor) openLog(fd int, m *ipc.LogFD) error {
	a.file.use(fd, m)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.journal != nil {
		return nil
	}
	var err error
	if a.journal, err = newJournal(m); err == nil {
		go a.journal.write(a.file)
	}
	return err
}

// openLedger makes the auditor store Idempotency-Keys in the file at descriptor
// fd. The parent sends this file only once.
func (a *auditor) openLedger(fd int, m *ipc.ClaimsFD) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ledger != nil {
		return errors.New("a second file of Idempotency-Keys")
	}
	if a.ledger, err = newLedger(claims.Open(fd), m.Path); err == nil {
		a.perWorker = m.PerWorker
		go a.ledger.run()
	}
	return err
}

// checkLogFile asks the parent whether the audit log's path still leads to the
// file that the auditor has open. If the log was rotated, for example, the
// parent sends the new file before it answers.
func (a *auditor) checkLogFile() error {
	select {
	case <-a.logReply: // a late answer to the previous question
	default:
	}
	if err := a.dispatcher.Send(new(ipc.CheckLogFile)); err != nil {
		return nil // the gateway is shutting down: remaining lines go to the current file
	}
	select {
	case reason := <-a.logReply:
		if reason != "" {
			return errors.New(reason)
		}
		return nil
	case <-a.done:
		return nil // the gateway is shutting down
	case <-time.After(writeLimit):
		return fmt.Errorf("the parent did not answer within %s", writeLimit)
	}
}

// addFacts records the facts about a connection. The dispatcher is about to
// pass this connection to the worker m.Worker.
func (a *auditor) addFacts(m *work.ConnectionFacts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.connections[m.Worker] == nil {
		a.connections[m.Worker] = map[uint64]ipc.Connection{}
	}
	a.connections[m.Worker][m.ID] = m.Connection
	a.holders[m.ID] = m.Worker
	a.noteArrivalLocked(m.ID)
}

// dropConn records that a connection no longer belongs to any worker.
func (a *auditor) dropConn(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.connections[a.holders[id]], id)
	delete(a.holders, id)
	a.noteArrivalLocked(id)
}

// noteArrivalLocked records that the dispatcher has sent a message about the
// connection with number id, and wakes the goroutines that wait for facts.
func (a *auditor) noteArrivalLocked(id uint64) {
	a.highest = max(a.highest, id)
	close(a.changed)
	a.changed = make(chan struct{})
}

// factsLimit is how long waitForFacts waits for the facts about a connection.
const factsLimit = 200 * time.Millisecond

// waitForFacts returns the facts about a connection of the given worker, or nil
// if the connection has ended. The dispatcher sends the facts before it passes
// the connection to the worker. However, the facts and the worker's messages
// arrive over different channels, so waitForFacts may have to wait for the
// facts.
func (a *auditor) waitForFacts(worker uint32, id uint64) (*ipc.Connection, error) {
	timer := time.NewTimer(factsLimit)
	defer timer.Stop()
	for {
		a.mu.Lock()
		c, ok := a.connections[worker][id]
		_, heldByOther := a.holders[id]
		nonexistent, changed := id == 0 || id > a.highest, a.changed
		a.mu.Unlock()
		switch {
		case ok:
			return &c, nil
		case heldByOther:
			return nil, fmt.Errorf("sent Intent for connection %d, which it does not hold", id)
		}
		select {
		case <-changed:
			continue
		case <-timer.C:
		}
		if nonexistent {
			return nil, fmt.Errorf("sent Intent for connection %d, which never existed", id)
		}
		return nil, nil
	}
}

// Serve handles the messages of one worker.
func (a *auditor) Serve(c *service.Client) {
	a.mu.Lock()
	w := newClient(a.journal, a.ledger, c, a.perWorker, func(id uint64) (*ipc.Connection, error) { return a.waitForFacts(c.Number, id) })
	a.clients[c.Number] = w
	a.mu.Unlock()
	defer close(w.done)
	c.EachMessage(w.handle)
}

// workerExited records that a worker has exited. When all messages of the
// worker have been handled, the worker's unfinished changes and their
// Idempotency-Keys get the outcome "unknown".
func (a *auditor) workerExited(m *work.WorkerExited) {
	a.mu.Lock()
	w := a.clients[m.Worker]
	delete(a.clients, m.Worker)
	for id := range a.connections[m.Worker] {
		delete(a.holders, id)
	}
	delete(a.connections, m.Worker)
	a.mu.Unlock()
	if w == nil {
		return
	}
	a.exiting.Go(func() {
		select {
		case <-w.done:
		case <-time.After(writeLimit): // another process still has the worker's end of the channel open
		}
		w.handleExit(m.Status)
	})
}

// Close waits until the queued log lines and claims are written, or until the
// time limits for them have expired: at most 2*writeLimit, which is less than
// the time until the dispatcher or the parent kills this process. If the
// dispatcher has exited before its workers, their unfinished changes are logged
// with the outcome "unknown".
func (a *auditor) Close() {
	close(a.done)
	a.mu.Lock()
	j, l := a.journal, a.ledger
	left := slices.Collect(maps.Keys(a.clients))
	a.mu.Unlock()
	for _, worker := range left {
		a.workerExited(&work.WorkerExited{Worker: worker, Status: "the dispatcher exited"})
	}
	a.exiting.Wait()
	var closing sync.WaitGroup
	if l != nil {
		closing.Go(l.close)
	}
	if j != nil {
		closing.Go(j.close)
	}
	closing.Wait()
}

// Counters returns the auditor's counters since its start.
func (a *auditor) Counters() (list []any) {
	a.mu.Lock()
	j, l := a.journal, a.ledger
	a.mu.Unlock()
	if l != nil {
		c := &l.counts
		list = append(list, "idempotency", slog.GroupValue(
			slog.Any("claimed", &c.claimed), slog.Any("replayed", &c.replayed),
			slog.Any("refused", &c.refused), slog.Any("failures", &c.failures)))
	}
	if j == nil {
		return list
	}
	j.mu.Lock()
	pending, waiting, failing := j.pending, len(j.queue), j.failing
	j.mu.Unlock()
	c := &j.counts
	return append(list, "audit", slog.GroupValue(
		slog.Any("lines", &c.lines), slog.Any("granted", &c.granted), slog.Any("refused", &c.refused), slog.Any("deferred", &c.deferred),
		slog.Int("pending", pending), slog.Int("waiting", waiting), slog.Any("failed_writes", &c.failures),
		slog.Any("lines_lost", &c.dropped), slog.Bool("failing", failing)))
}
