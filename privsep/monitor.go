package privsep

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/exitstatus"
	"schedrestd/internal/notify"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security/clients"
)

// monitor is the state of the parent. Only the goroutine that runs the method
// loop uses it. Operations that block run in other goroutines. When these need
// the monitor, they send a function to the loop, which calls it.
type monitor struct {
	service           identity.Service
	servesHTTPS       bool
	listeners         []*listen.Listener
	metricsListeners  []*listen.Listener // for scrapes
	auditLog          *auditlog.Log
	programs          program.Set
	confinedSpawner   *spawn.Spawner // of confined processes
	spareSpawners     []*spawn.Spawner
	confinementParts  []ipc.Part     // of the confinement, for the log
	workerSandbox     ipc.Ready      // what the proof at the start reported
	resolverSpawner   *spawn.Spawner // of the resolver
	dispatcherSpawner *spawn.Spawner // of the dispatcher
	events            chan func()
	done              chan struct{} // closed when the loop stops handling events

	dispatcher     *dispatcherProcess          // nil: none runs
	restarts       *rate.Bucket                // starts of dispatchers after the first one
	arrivalChannel atomic.Pointer[ipc.Channel] // channel for accepted connections; nil: none at the moment
	accepting      bool                        // acceptors run
	arrivals       *rate.Buckets[uint32]       // connections to UNIX sockets, by user
	acceptors      sync.WaitGroup
	clients        *clients.Set

	generations       map[uint32]*generation     // that the dispatcher has not released
	current           atomic.Pointer[generation] // in force; at first one with the id 0, the first configuration and no keys
	nextGeneration    *generation                // being built
	lastGenerationID  uint32                     // number of the latest generation
	openingGeneration bool                       // the keys of a generation are being opened
	pendingCause      generationCause            // cause of the generation that was requested, but is not being opened yet
	lastOpenedAt      time.Time                  // when the parent last began to open a generation
	pendingLogChecks  int                        // unanswered questions about the audit log
	lastKeyStamp      string                     // stamp of the key files when the parent last tried to use them; "": it tries again at the next check

	inetdClient *ipc.StdioConnection // the client in inetd mode; nil in other modes
	inetdFDs    []int
	onReady     func()     // called whenever a generation takes effect; if onReady is set, the gateway accepts no connections
	stopSignal  os.Signal  // the signal that told the gateway to stop; nil: none was received
	result      chan error // gets the result of the run
}

// dispatcherProcess is a running dispatcher.
type dispatcherProcess struct {
	*spawn.Child
	startedAt         time.Time
	lastProcessNumber uint32                     // number of the last process that the dispatcher asked for
	processes         map[uint32]*runningProcess // running processes that the dispatcher asked for, by number
	killTimer         *time.Timer                // kills the dispatcher if it is not ready in time or does not answer a Ping
	pingsSent         uint64
	pingAnswered      bool         // the last Ping was answered, or none was sent
	killReason        atomic.Value // string that says why the parent killed the dispatcher; nil: the parent did not kill it
}

// post passes f to the loop.
func (m *monitor) post(f func()) {
	select {
	case m.events <- f:
	case <-m.done:
	}
}

// postAndWait makes the loop call f. It returns when f has returned or the run
// is over.
func (m *monitor) postAndWait(f func()) {
	done := make(chan struct{})
	m.post(func() { f(); close(done) })
	select {
	case <-done:
	case <-m.done:
	}
}

// loop starts the dispatcher and handles events until the run has ended. It
// returns the error that ended the run, if any.
func (m *monitor) loop(signals <-chan os.Signal) error {
	m.pendingCause = causeReload
	if err := m.startDispatcher(); err != nil {
		return err
	}
	keyTick, pingTick, clientTick := time.Tick(m.config().Limits.KeyCheck), time.Tick(m.config().Limits.Ping/4), time.Tick(m.config().Limits.PeerCheck)
	var duplicateUntil time.Time
	for {
		select {
		case f := <-m.events:
			f()
		case <-m.confinedSpawner.NamespaceDone():
			if err := m.replaceSpawner(); err != nil {
				return err
			}
		case <-keyTick:
			m.checkKeyFiles()
		case <-pingTick:
			m.ping()
		case <-clientTick:
			m.endAbandonedWorkers()
		case s := <-signals:
			switch {
			case s == syscall.SIGHUP:
				m.reload()
			case s == syscall.SIGUSR1:
				if m.dispatcher.isServing() { // an earlier message would end the dispatcher
					m.send(new(ipc.LogCounters))
				}
			case m.stopSignal == nil:
				duplicateUntil = time.Now().Add(duplicateSignalWindow)
				m.stop(s)
			case s != m.stopSignal || time.Now().After(duplicateUntil):
				// A terminal and some supervisors send a signal twice: once to
				// the process and once to its process group. The second one is
				// ignored.
				return errs.New(errs.Unavailable, "stopped by a second signal (%s) before every request was answered", s)
			}
		case err := <-m.result:
			return err
		}
	}
}

// duplicateSignalWindow is the time during which a repetition of the first stop
// signal is ignored.
const duplicateSignalWindow = 500 * time.Millisecond

// stop closes the listeners. It lets requests in progress finish.
func (m *monitor) stop(s os.Signal) {
	m.stopSignal = s
	if m.arrivalChannel.Load() == nil && m.inetdClient == nil {
		m.config().Log.Info("stopped before it served", "signal", s.String())
		m.endRun(nil)
		return
	}
	notify.Stopping()
	m.config().Log.Info("draining", "signal", s.String())
	if d, limit := m.dispatcher, m.config().Limits.Stop; d != nil { // no other one is started from now on
		time.AfterFunc(limit, func() { d.killWithReason(fmt.Sprintf("did not exit within %s after a signal to stop", limit)) })
	}
	m.drain()
}

// startDispatcher starts a dispatcher and a goroutine that receives its
// messages.
func (m *monitor) startDispatcher() error {
	c := m.config()
	p, setup := m.programs[ipc.Dispatcher], c.serviceSetup()
	child, err := p.Start(m.dispatcherSpawner, p.Identity, spawn.Spec{Role: ipc.Dispatcher, Threads: 1, Files: uint64(c.Setup.Files) + uint64(c.Waiting), Log: os.Stderr}, &setup)
	if err != nil {
		return err
	}
	d := &dispatcherProcess{Child: child, startedAt: time.Now(), processes: map[uint32]*runningProcess{}, pingAnswered: true}
	d.killTimer = time.AfterFunc(c.Limits.Start, func() {
		reason := fmt.Sprintf("was not ready within %s", c.Limits.Start)
		if d.Channel.Phase() == ipc.Serving {
			reason = fmt.Sprintf(notReadingReason, c.Limits.Ping)
		}
		d.killWithReason(reason)
	})
	m.dispatcher = d
	go m.receive(d)
	return nil
}

const notReadingReason = "has not read its channel for %s"

// killWithReason kills the dispatcher. Only the first call records its reason.
func (d *dispatcherProcess) killWithReason(reason string) {
	d.killReason.CompareAndSwap(nil, reason)
	d.Kill()
}

// listAuditors returns the channels to the auditors.
func (d *dispatcherProcess) listAuditors() (list []*ipc.Channel) {
	for _, p := range d.processes {
		if p.isAuditor {
			list = append(list, p.Channel)
		}
	}
	return list
}

// exitReason returns why the dispatcher exited.
func (d *dispatcherProcess) exitReason() string {
	if reason, ok := d.killReason.Load().(string); ok {
		return reason
	}
	return exitstatus.Describe(d.Status)
}

// receive passes the dispatcher's messages to the loop.
func (m *monitor) receive(d *dispatcherProcess) {
	var err error
	for err == nil {
		var r ipc.Received
		if r, err = d.Channel.Receive(); err == nil {
			m.postAndWait(func() { err = m.handle(d, r.Message) })
		}
	}
	if !errors.Is(err, io.EOF) {
		d.killWithReason(err.Error())
	}
	time.AfterFunc(time.Second, d.Kill) // in case the dispatcher has closed its channel, but does not exit
	<-d.Exited
	m.post(func() { m.handleDispatcherExit(d) })
}

// endRun ends the run with the result err. If the run already has a result,
// that result stays.
func (m *monitor) endRun(err error) {
	select {
	case m.result <- err:
	default:
	}
}

// ping checks that the dispatcher still reads its channel. If the dispatcher
// does not answer, a timer kills it, even while the loop is blocked by a
// message to the dispatcher.
func (m *monitor) ping() {
	if d := m.dispatcher; d.isServing() && d.pingAnswered {
		d.pingAnswered = false
		d.pingsSent++
		d.killTimer.Reset(m.config().Limits.Ping)
		if arrivals := m.arrivalChannel.Load(); arrivals != nil && m.accepting && d.pingsSent%2 == 0 && m.stopSignal == nil {
			go arrivals.Send(&ipc.ArrivalPing{Number: d.pingsSent}) // a dispatcher that does not read it would block the loop
		} else {
			m.send(&ipc.Ping{Number: d.pingsSent})
		}
	}
}

// send sends the dispatcher a message. If the dispatcher has already exited,
// send does nothing. If the message can't be sent for another reason, for
// example because the configuration is too long, send kills the dispatcher.
func (m *monitor) send(msg ipc.Message, fds ...int) { m.sendTo(m.dispatcher, msg, fds...) }

// sendTo sends a message to d if d is still the dispatcher. If the message
// waits too long, sendTo kills d. Without this time limit, a dispatcher that
// asks many questions and does not read the answers would block the loop, even
// if it answered every Ping.
func (m *monitor) sendTo(d *dispatcherProcess, msg ipc.Message, fds ...int) {
	if d != nil && d == m.dispatcher {
		limit := m.config().Limits.Ping
		defer time.AfterFunc(limit, func() { d.killWithReason(fmt.Sprintf(notReadingReason, limit)) }).Stop()
		if err := ipc.IgnoreClosed(d.Channel.Send(msg, fds...)); err != nil {
			d.killWithReason(err.Error())
		}
	}
}

// handle handles a message from the dispatcher. If handle returns an error, the
// caller kills the dispatcher.
func (m *monitor) handle(d *dispatcherProcess, msg ipc.Message) error {
	switch msg := msg.(type) {
	case *ipc.Ready:
		return m.configureDispatcher(d)
	case *ipc.Refused:
		return errs.New(errs.Denied, "the dispatcher cannot serve: %s", msg.Reason)
	case *ipc.Pong:
		if d.pingAnswered || msg.Number != d.pingsSent {
			return fmt.Errorf("sent Pong %d, which was not requested", msg.Number)
		}
		d.pingAnswered = true
		d.killTimer.Stop()
	case *ipc.StartProcess:
		return m.handleStart(d, msg)
	case *ipc.SignalProcess:
		if p := d.processes[msg.Number]; p != nil {
			p.Signal(map[bool]unix.Signal{false: unix.SIGUSR1, true: unix.SIGKILL}[msg.Kill])
		}
	case *ipc.RenewGeneration:
		if len(m.generations) > maxGenerations {
			return fmt.Errorf("sent RenewGeneration with %d generations that it has not released", len(m.generations))
		}
		// A compromised dispatcher must not keep this process busy.
		time.AfterFunc(minRenewInterval-time.Since(m.lastOpenedAt), func() { m.post(func() { m.renewGeneration(msg.ID) }) })
	case *ipc.SecretKeysResult:
		return m.handleSecretKeysResult(msg)
	case *ipc.GenerationResult:
		return m.handleGenerationResult(msg)
	case *ipc.GenerationReleased:
		delete(m.generations, msg.ID)
	case *ipc.CheckLogFile:
		if m.auditLog == nil || m.pendingLogChecks == maxPendingLogChecks {
			return errors.New("sent CheckLogFile without an audit log, or too often")
		}
		m.pendingLogChecks++
		logs := d.listAuditors()
		go func() { // the audit log may be on a file system that hangs
			reply := m.auditLog.Reopen(logs, false)
			m.post(func() { m.pendingLogChecks--; m.sendTo(d, reply) })
		}()
	case *ipc.InetdResult:
		if m.inetdClient == nil {
			return errors.New("sent InetdResult without a client")
		}
		m.endRun(msg.Err())
	default:
		return ipc.Unhandled(msg)
	}
	return nil
}

// isServing reports whether there is a dispatcher, and whether it has what it
// needs to serve.
func (d *dispatcherProcess) isServing() bool { return d != nil && d.Channel.Phase() == ipc.Serving }

// configureDispatcher sends the dispatcher everything that it needs to serve.
// The dispatcher has just reported that it is ready.
func (m *monitor) configureDispatcher(d *dispatcherProcess) error {
	c := m.config()
	d.killTimer.Stop()
	c.Log.Info("dispatcher ready", "pid", d.PID, "took", time.Since(d.startedAt).Round(10*time.Microsecond))
	worker := c.defaultIdentity(m.service)
	m.send(&ipc.DispatcherSetup{Run: c.Run, Name: worker.Name, UID: worker.UID, GID: worker.GID, StartLimit: c.Limits.Start, PingTimeout: c.Limits.Ping,
		Sandbox: m.workerSandbox, Confinement: m.confinementParts})
	for _, l := range m.listeners {
		m.send(&l.Listening)
	}
	m.requestGeneration(causeAge)
	return nil
}

// handleDispatcherExit kills the workers and services of a dispatcher that has
// exited. It then starts another dispatcher, or ends the run if the gateway is
// stopping, serves only one client, or has not served yet.
func (m *monitor) handleDispatcherExit(d *dispatcherProcess) {
	d.killTimer.Stop()
	d.Close()
	if arrivals := m.arrivalChannel.Swap(nil); arrivals != nil {
		arrivals.Close()
	}
	for _, p := range d.processes {
		if p.isAuditor { // give the auditor time to write the lines that it has
			_ = p.Channel.Shutdown()
			time.AfterFunc(auditlog.FlushTimeout, p.Kill)
		} else {
			p.Kill()
		}
	}
	status := exitstatus.Describe(d.Status)
	err := errs.New(errs.Internal, "the dispatcher exited: %s (%s)", d.exitReason(), status)
	m.dispatcher = nil
	clear(m.generations)
	switch {
	case m.stopSignal != nil && status == exitstatus.OK:
		m.config().Log.Info("stopped")
		m.endRun(nil)
		return
	case m.stopSignal != nil || m.inetdClient != nil || !m.hasServed():
		m.endRun(err)
		return
	}
	m.clients.Forget()
	if g := m.nextGeneration; g != nil { // this generation may be why the dispatcher exited, so it is not tried again
		m.nextGeneration = nil
		m.rejectGeneration(g, err)
	}
	m.restartDispatcher("dispatcher exited", "because", d.exitReason(), "status", status)
}

// restartDispatcher starts a dispatcher, if necessary after a pause. It logs
// why no dispatcher runs.
func (m *monitor) restartDispatcher(event string, attrs ...any) {
	wait := m.restarts.Charge(time.Now(), 1)
	m.config().Log.Error(event, append(attrs, "pause", wait)...)
	time.AfterFunc(wait, func() {
		m.post(func() {
			if m.stopSignal != nil {
				m.endRun(nil)
			} else if err := m.startDispatcher(); err != nil {
				m.restartDispatcher("dispatcher not started", "error", err)
			}
		})
	})
}

const (
	// maxPendingLogChecks limits the number of unanswered questions about the
	// audit log. Each generation of processes asks at most one question at a
	// time.
	maxPendingLogChecks = 16

	// maxGenerations limits the number of generations that a dispatcher has not
	// released. A generation is not released while some of its workers still
	// have connections. A dispatcher that exceeds the limit must not ask for a
	// new generation.
	maxGenerations = 256

	// minRenewInterval is the minimum time between the starts of two
	// generations, if the dispatcher asks for the second one.
	minRenewInterval = 20 * time.Millisecond
)

// arrivals limits the connections of each local user to UNIX sockets. Sending a
// connection to the dispatcher takes this process much longer than connecting
// takes the client. Without the limit, a single client could fill the kernel's
// queue, and the kernel would refuse the connections of all others. For the same
// reason, a TCP connection that its client has already closed is not passed on.
// The parent does not know the user of a TCP connection. The dispatcher limits
// those connections. Like restarts, this is a row of the table of limits (package
// limit), which the parent does not link.
var arrivals = rate.Row{Burst: 2000, PerSecond: 2000, Max: 4096}

// restarts limits the starts of dispatchers. A dispatcher that crashes once is
// replaced at once. One that always crashes must not keep the machine busy.
var restarts = rate.Row{Burst: 5, PerSecond: 1. / 10}

// vouches limits the users for whom a keeper vouches. A captured keeper must not be able
// to fill the memory of the parent, which remembers each of them with up to a thousand
// groups for a minute or more, nor keep it busy. A vouch with a hundred groups counts
// twice.
var vouches = rate.Row{Burst: 1000, PerSecond: 100}

// renewGeneration replaces generation id. If that generation has already been
// replaced, or is being replaced, renewGeneration does nothing.
func (m *monitor) renewGeneration(id uint32) {
	if m.current.Load().id == id && m.nextGeneration == nil && !m.openingGeneration {
		m.requestGeneration(causeAge)
	}
}
