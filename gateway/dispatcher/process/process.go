// Package process handles the processes that the parent starts for the
// dispatcher: workers and services.
//
// The dispatcher has no privileges, so it asks the parent to start a process.
// The dispatcher gets a channel to the process, and a pipe with the lines that
// the process logs. The parent chooses the program, checks which user the
// process runs as, sends it signals, and reports its exit. This package copies
// the logged lines with a prefix, up to a quota.
package process

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/errs"
	"schedrestd/internal/exitstatus"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Process is a process that the parent started for the dispatcher.
type Process struct {
	Number    uint32
	Identity  security.Identity
	PID       int
	OwnUserns bool // it runs in a user namespace of its own
	Channel   *ipc.Channel
	Started   time.Time
	EndReason string // why the dispatcher killed it; "" if it exited by itself. Used only by the goroutine that owns the process

	Exited        chan struct{} // closed when it has exited; the three fields below are valid from then on
	ForbiddenCall bool          // the sandbox killed it for a forbidden system call
	Crashed       bool          // it crashed by itself, or ForbiddenCall is set
	status        string        // exit status, as a text

	starter *Starter
	label   string        // identifies it in the log
	log     *os.File      // read end of the pipe to which its standard error goes
	logDone chan struct{} // closed when log has been read to its end
}

// Terminate kills the process. If it is called more than once, the log shows
// the first reason.
func (p *Process) Terminate(reason string) {
	p.EndReason = cmp.Or(p.EndReason, reason)
	p.Kill()
}

// Kill kills the process without a reason.
func (p *Process) Kill() { p.signal(true) }

// LogCounters makes the process log its counters.
func (p *Process) LogCounters() { p.signal(false) }

func (p *Process) signal(kill bool) {
	if p.starter != nil {
		p.starter.parent.Send(&ipc.SignalProcess{Number: p.Number, Kill: kill})
	}
}

// ExitGrace is how long a process may take to exit after it has closed its
// channel. After a process has exited, its channel is still read for this time,
// and its log until nothing was in the pipe for this time.
const ExitGrace = time.Second

// logLimit is how long the log of a process is read after the process has
// exited. Only another process that keeps writing to the pipe, or standard
// error that accepts nothing, can take so long.
const logLimit = 10 * time.Second

// Reap waits until the process has exited, and kills it after the timeout. It
// closes the dispatcher's descriptors for the process, and returns the exit
// status as text.
func (p *Process) Reap(timeout time.Duration) string {
	timer := time.AfterFunc(timeout, p.Kill)
	<-p.Exited
	timer.Stop()
	p.Channel.Close()
	select {
	case <-p.logDone:
	case <-time.After(logLimit):
		fmt.Fprintf(p.starter.output, "level=WARN msg=\"last log lines of a process dropped\" %s limit=%s\n", p.label, logLimit)
	}
	p.log.Close()
	return p.status
}

// WorkerViolation is the message of the most serious alarm. CaptureHint is the
// hint in all alarms. docs/INCIDENTS.md explains how to respond.
const (
	WorkerViolation = "worker killed by its sandbox: it made a forbidden system call"
	CaptureHint     = `an attacker may control it; look for type=1326 and its pid in the kernel's log, and see INCIDENTS.md`
)

// A Starter asks the parent to start processes. It is safe for concurrent use.
type Starter struct {
	parent *Parent
	output *relay.Log // gets the lines that processes log

	mu         sync.Mutex          // guards the fields below; held until a request is sent, so that requests are sent in the order of their numbers
	lastNumber uint32              // number of the last requested process
	pending    map[uint32]*request // unanswered requests, by number
	running    map[uint32]*Process // by number
}

// request is a request for a process.
type request struct {
	ipc.StartProcess
	quota *relay.Quota
	done  chan error
	proc  *Process
}

// NewStarter returns a Starter that sends requests to parent.
func NewStarter(parent *Parent, output *relay.Log) *Starter {
	return &Starter{parent: parent, output: output, pending: map[uint32]*request{}, running: map[uint32]*Process{}}
}

// Start starts the process that r describes. Start itself chooses the number of
// the process. It copies the lines that the process logs, as far as quota
// permits.
func (s *Starter) Start(r ipc.StartProcess, quota *relay.Quota) (*Process, error) {
	q := &request{StartProcess: r, quota: quota, done: make(chan error, 1)}
	s.sendRequest(q)
	if err := <-q.done; err != nil {
		return nil, err
	}
	return q.proc, nil
}

// sendRequest sends q to the parent.
func (s *Starter) sendRequest(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber++
	q.Number = s.lastNumber
	s.pending[q.Number] = q
	s.parent.Send(&q.StartProcess)
}

// Handle handles a message from the parent. The handled result is false if the
// message does not concern processes.
func (s *Starter) Handle(m ipc.Received) (handled bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.ProcessStarted:
		q := s.takeRequest(msg.Number)
		q.proc, err = s.adopt(q, msg, m.FDs)
		q.done <- err
		return true, err
	case *ipc.StartFailed:
		s.takeRequest(msg.Number).done <- msg.Err()
	case *ipc.ProcessExited:
		s.mu.Lock()
		p := s.running[msg.Number]
		delete(s.running, msg.Number)
		s.mu.Unlock()
		p.recordExit(unix.WaitStatus(msg.Status))
	default:
		return false, nil
	}
	return true, nil
}

// takeRequest removes the pending request with this number, and returns it.
func (s *Starter) takeRequest(number uint32) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.pending[number]
	delete(s.pending, number)
	return q
}

// adopt returns the Process for a process that the parent has started.
func (s *Starter) adopt(q *request, m *ipc.ProcessStarted, fds []int) (*Process, error) {
	log := os.NewFile(uintptr(fds[1]), "log of a process")
	channel, err := ipc.Open(fds[0], ipc.Dispatcher, q.Role)
	if err != nil {
		log.Close()
		return nil, errs.Wrap(err, errs.Internal, "open the channel to a %s", q.Role)
	}
	channel.Resume(ipc.Proving)
	p := &Process{Number: q.Number, Identity: security.Identity{UID: m.UID, GID: m.GID}, PID: int(m.PID), OwnUserns: m.OwnUserns,
		Channel: channel, Started: time.Now(), Exited: make(chan struct{}), starter: s, label: fmt.Sprintf("%[1]s=%[2]d %[1]s_pid=%[3]d %[1]s_uid=%[4]d", q.Role, m.Number, m.PID, m.UID), log: log, logDone: make(chan struct{})}
	s.mu.Lock()
	s.running[p.Number] = p
	s.mu.Unlock()
	go func() {
		defer close(p.logDone)
		relay.Lines(logReader{p}, s.output, p.label+" ", q.quota)
	}()
	return p, nil
}

// recordExit records the wait status of p.
func (p *Process) recordExit(ws unix.WaitStatus) {
	p.status, p.ForbiddenCall, p.Crashed = exitstatus.Describe(ws), isForbiddenCall(ws), isCrash(ws)
	close(p.Exited)
	_ = p.log.SetReadDeadline(time.Now().Add(ExitGrace)) // for the Read in progress; see logReader
	// A child of the process may still have the channel open.
	time.AfterFunc(ExitGrace, func() { p.Channel.Close() })
}

// A logReader reads what a process logs. After the process has exited, a Read
// fails if nothing is in the pipe for ExitGrace. It does not wait for the end of
// the pipe, because a child of the process may still have the pipe open.
type logReader struct{ p *Process }

func (r logReader) Read(b []byte) (int, error) {
	select {
	case <-r.p.Exited:
		_ = r.p.log.SetReadDeadline(time.Now().Add(ExitGrace))
	default:
	}
	return r.p.log.Read(b)
}
