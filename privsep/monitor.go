package privsep

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/exitstatus"
	"schedrestd/ipc"
	"schedrestd/notify"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// monitor is the state of the parent. It belongs to the goroutine that runs
// loop. Other goroutines run operations that block, and send functions to this
// goroutine, which calls them.
type monitor struct {
	config    Config // the configuration in force, or that of the first generation
	who       identity.Service
	https     bool
	listeners []*listen.Listener
	metrics   []*listen.Listener // for scrapes
	audit     *auditlog.Log
	programs  program.Set
	spawner   *spawn.Spawner // of confined processes
	spares    []*spawn.Spawner
	parts     []ipc.Part      // of the confinement, for the log
	sealed    security.Sealed // how a test of the workers' sandbox closed it
	plain     *spawn.Spawner  // of the resolver
	outside   *spawn.Spawner  // of the dispatcher
	events    chan func()
	over      chan struct{} // closed when the loop handles no more events

	dispatcher *dispatcherProcess          // nil: none runs
	failures   int                         // how many dispatchers in a row exited soon after their start
	arrivals   atomic.Pointer[ipc.Channel] // where accepted connections go; nil: nowhere for now
	accepting  bool
	acceptors  sync.WaitGroup
	peers      map[uint64]security.Identity // become_user: the identities of open connections, by number
	lastPeer   uint64
	mostPeers  int

	generations map[uint32]*generation // that the dispatcher has not released
	current     *generation            // in force
	keys        *keys.Keys             // of the generation in force
	next        *generation            // being built
	last        uint32                 // number of the latest generation
	opening     bool                   // a generation is being opened
	wanted      cause
	lastOpened  time.Time // when a generation was opened
	following   int       // questions about the audit log that are open
	tried       string    // stamp of the key files when they were last examined; "": not since the last generation

	client   *ipc.Streams // of an inetd run; nil: there is none
	clientFD []int
	ready    func()     // called when the first generation is in force
	stopping os.Signal  // the signal that ended the service; nil: it serves
	exit     chan error // gets the result of the run
}

// dispatcherProcess is a running dispatcher.
type dispatcherProcess struct {
	*spawn.Started
	started   time.Time
	number    uint32                    // of the last process that the dispatcher asked for
	processes map[uint32]*spawn.Process // running processes that the dispatcher asked for
	auditors  map[uint32]*ipc.Channel   // channels to the processes that have the audit log
	late      *time.Timer               // kills the dispatcher when it answers no Ping
	pings     uint64
	answered  bool         // the last Ping was answered
	briefed   bool         // the dispatcher has the facts that it needs to serve
	ending    atomic.Value // why the dispatcher was killed; "" when it exited by itself
}

// do passes f to the loop.
func (m *monitor) do(f func()) {
	select {
	case m.events <- f:
	case <-m.over:
	}
}

// call calls f in the loop, and returns when f has returned.
func (m *monitor) call(f func()) {
	done := make(chan struct{})
	m.do(func() { f(); close(done) })
	select {
	case <-done:
	case <-m.over:
	}
}

// loop starts the dispatcher and handles events until the run has ended. It returns the
// error that ended the run, if any.
func (m *monitor) loop(signals <-chan os.Signal) error {
	m.wanted = becauseOfReload
	if err := m.startDispatcher(); err != nil {
		return err
	}
	look, ping := time.NewTicker(watch), time.NewTicker(silence/4)
	defer look.Stop()
	defer ping.Stop()
	var same time.Time
	for {
		select {
		case f := <-m.events:
			f()
		case <-m.spawner.Lost():
			if err := m.namespaceLost(); err != nil {
				return err
			}
		case <-look.C:
			m.look()
		case <-ping.C:
			m.ping()
		case s := <-signals:
			switch {
			case s == syscall.SIGHUP:
				m.reload()
			case s == syscall.SIGUSR1:
				m.send(new(ipc.Show))
			case m.stopping == nil:
				same = time.Now().Add(sameSignal)
				m.stop(s)
			case s != m.stopping || time.Now().After(same):
				// A terminal and some supervisors send a signal twice at once,
				// to the process and to its group. The two count as one.
				return errs.New(errs.Unavailable, "stopped by a second signal (%s) before every request was answered", s)
			}
		case err := <-m.exit:
			return err
		}
	}
}

// sameSignal is the time within which two signals of the same kind count as
// one.
const sameSignal = 500 * time.Millisecond

// stop stops listening. Requests in progress continue to their end.
func (m *monitor) stop(s os.Signal) {
	m.stopping = s
	if m.arrivals.Load() == nil && m.client == nil {
		m.config.Log.Info("stopped before it served", "signal", s.String())
		m.end(nil)
		return
	}
	notify.Stopping()
	m.config.Log.Info("draining", "signal", s.String())
	m.finish()
}

// startDispatcher starts a dispatcher.
func (m *monitor) startDispatcher() error {
	c := m.config
	p, setup := m.programs[ipc.Dispatcher], c.serviceSetup()
	started, err := p.Start(m.outside, p.As, spawn.Spec{Role: ipc.Dispatcher, Threads: 1, Files: c.files() + uint64(c.Waiting), Log: os.Stderr}, &setup)
	if err != nil {
		return err
	}
	d := &dispatcherProcess{Started: started, started: time.Now(), processes: map[uint32]*spawn.Process{}, auditors: map[uint32]*ipc.Channel{}, answered: true}
	d.late = time.AfterFunc(startLimit, func() {
		why := fmt.Sprintf("was not ready within %s", startLimit)
		if d.Channel.Phase() == ipc.Serving {
			why = notReading()
		}
		d.condemn(why)
	})
	m.dispatcher = d
	go m.receive(d)
	return nil
}

func notReading() string { return fmt.Sprintf("has not read its channel for %s", silence) }

// condemn kills the dispatcher and records the reason.
func (d *dispatcherProcess) condemn(why string) {
	d.ending.CompareAndSwap(nil, why)
	d.Kill()
}

// logs returns the channels to the auditors.
func (d *dispatcherProcess) logs() []*ipc.Channel { return slices.Collect(maps.Values(d.auditors)) }

// reason returns why the dispatcher exited.
func (d *dispatcherProcess) reason() string {
	if why, ok := d.ending.Load().(string); ok {
		return why
	}
	return exitstatus.Describe(d.Ended)
}

// receive passes the dispatcher's messages to the loop.
func (m *monitor) receive(d *dispatcherProcess) {
	var why error
	for why == nil {
		var r ipc.Received
		if r, why = d.Channel.Receive(); why == nil {
			m.call(func() { why = m.handle(d, r.Message) })
		}
	}
	if !errors.Is(why, io.EOF) {
		d.condemn(why.Error())
	}
	time.AfterFunc(time.Second, d.Kill) // in case the dispatcher has only closed its channel
	<-d.Dead
	m.do(func() { m.lost(d) })
}

// end ends the run with the result err, unless the run has a result already.
func (m *monitor) end(err error) {
	select {
	case m.exit <- err:
	default:
	}
}

// ping checks that the dispatcher still reads its channel. The parent kills a
// dispatcher that does not answer, even while a message to that dispatcher
// blocks the loop.
func (m *monitor) ping() {
	if d := m.dispatcher; d != nil && d.answered && d.Channel.Phase() == ipc.Serving {
		d.answered = false
		d.pings++
		d.late.Reset(silence)
		m.send(&ipc.Ping{Number: d.pings})
	}
}

// send sends the dispatcher a message. If the dispatcher is already gone, send
// does nothing. If the message can't be sent for another reason, for example
// because the configuration is too long, the parent kills the dispatcher.
func (m *monitor) send(msg ipc.Message, fds ...int) {
	m.sendTo(m.dispatcher, msg, fds...)
}

// sendTo sends a message to d if d is still the dispatcher. A dispatcher that
// asks endlessly and does not read the answers would block the loop, even if it
// answers every Ping. So sendTo kills a dispatcher when the message waits too
// long.
func (m *monitor) sendTo(d *dispatcherProcess, msg ipc.Message, fds ...int) {
	if d != nil && d == m.dispatcher {
		defer time.AfterFunc(silence, func() { d.condemn(notReading()) }).Stop()
		if err := ipc.UnlessGone(d.Channel.Send(msg, fds...)); err != nil {
			d.condemn(err.Error())
		}
	}
}

// handle handles a message of the dispatcher. If handle returns an error, the caller
// kills the dispatcher.
func (m *monitor) handle(d *dispatcherProcess, msg ipc.Message) error {
	switch msg := msg.(type) {
	case *ipc.Ready:
		return m.brief(d, security.Sealed(*msg))
	case *ipc.Refused:
		return errs.New(errs.Denied, "the dispatcher cannot serve: %s", msg.Reason)
	case *ipc.Pong:
		if d.answered || msg.Number != d.pings {
			return fmt.Errorf("sent Pong %d, which was not requested", msg.Number)
		}
		d.answered = true
		d.late.Stop()
	case *ipc.Start:
		return m.startFor(d, msg)
	case *ipc.Signal:
		if p := d.processes[msg.Number]; p != nil {
			s := unix.SIGUSR1
			if msg.Kill {
				s = unix.SIGKILL
			}
			p.Signal(s)
		}
	case *ipc.Left:
		delete(m.peers, msg.ID)
	case *ipc.Renew:
		// A compromised dispatcher must not keep this process busy.
		time.AfterFunc(renewPause-time.Since(m.lastOpened), func() { m.do(func() { m.renew(msg.ID) }) })
	case *ipc.Verdict:
		return m.judgeKeys(msg)
	case *ipc.Outcome:
		return m.decided(msg)
	case *ipc.Released:
		delete(m.generations, msg.ID)
	case *ipc.Follow:
		if m.audit == nil || m.following == mostFollowing {
			return errors.New("sent Follow without an audit log, or too often")
		}
		m.following++
		logs := d.logs()
		go func() { // the file may be on a file system that hangs
			reply := m.audit.Follow(logs, false)
			m.do(func() { m.following--; m.sendTo(d, reply) })
		}()
	case *ipc.Served:
		if m.client == nil {
			return errors.New("sent Served without a client")
		}
		err := error(nil)
		if !msg.OK {
			err = msg.Err()
		}
		m.end(err)
	default:
		return ipc.Unheard(msg)
	}
	return nil
}

// brief sends a dispatcher that has become ready the facts that it needs to
// serve.
func (m *monitor) brief(d *dispatcherProcess, sealed security.Sealed) error {
	c := m.config
	d.late.Stop()
	c.Log.Info("dispatcher ready", "pid", d.PID, "sandbox", sealed.String(), "took", time.Since(d.started).Round(10*time.Microsecond))
	dispatch := c.dispatch(m.who)
	dispatch.Sealed, dispatch.Confinement = ipc.Ready(m.sealed), m.parts
	m.send(dispatch)
	for _, l := range m.listeners {
		m.send(&l.Listening)
	}
	d.briefed = true
	m.want(becauseOfAge)
	return nil
}

// lost handles the exit of the dispatcher. It ends the run if the service was stopped,
// and otherwise starts another dispatcher. The workers and services end with their
// dispatcher.
func (m *monitor) lost(d *dispatcherProcess) {
	c := m.config
	d.late.Stop()
	d.Close()
	if arrivals := m.arrivals.Swap(nil); arrivals != nil {
		arrivals.Close()
	}
	for number, p := range d.processes {
		if channel := d.auditors[number]; channel != nil { // give the auditor time to write the lines that it has
			_ = channel.End()
			time.AfterFunc(auditlog.Farewell, p.Kill)
		} else {
			p.Kill()
		}
	}
	status := exitstatus.Describe(d.Ended)
	err := errs.New(errs.Internal, "the dispatcher exited: %s (%s)", d.reason(), status)
	m.dispatcher = nil
	clear(m.generations)
	switch {
	case m.stopping != nil && status == exitstatus.OK:
		c.Log.Info("stopped")
		m.end(nil)
		return
	case m.stopping != nil || m.client != nil || m.current == nil:
		m.end(err)
		return
	}
	clear(m.peers)
	if g := m.next; g != nil { // this generation may be why the dispatcher exited, so it is not tried again
		m.next = nil
		m.rejected(g, err)
	}
	if time.Since(d.started) > 2*pause(m.failures) {
		m.failures = 0
	}
	wait := pause(m.failures)
	m.failures++
	c.Log.Error("dispatcher exited", "because", d.reason(), "status", status, "pause", wait)
	time.AfterFunc(wait, func() { m.do(m.restart) })
}

// restart starts a dispatcher after the previous one was lost.
func (m *monitor) restart() {
	if m.stopping != nil {
		m.end(nil)
		return
	}
	if err := m.startDispatcher(); err != nil {
		m.config.Log.Error("dispatcher not started", "error", err)
		m.failures++
		time.AfterFunc(pause(m.failures), func() { m.do(m.restart) })
	}
}

const (
	// mostFollowing is how many questions about the audit log may wait for an
	// answer: one for each generation.
	mostFollowing = 16

	// renewPause is the least time between two generations that the dispatcher
	// asks for.
	renewPause = 20 * time.Millisecond
)

// pause returns how long to wait before the next start after a number of
// failures in a row.
func pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// renew replaces the generation with the number id by a new one, unless that
// has happened already or is happening now.
func (m *monitor) renew(id uint32) {
	if m.current != nil && m.current.id == id && m.next == nil && !m.opening {
		m.want(becauseOfAge)
	}
}
