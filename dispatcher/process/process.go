// Package process handles the processes that the parent starts for the
// dispatcher: workers and services.
//
// The dispatcher has no privileges. It asks the parent for a process of a
// configured program, and gets a channel to the process and a pipe with its
// log. The parent chooses the program and checks the identity, sends signals,
// and reports the exit. This package copies the log lines of processes, with a
// prefix and within a quota.
package process

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/dispatcher/relay"
	"schedrestd/errs"
	"schedrestd/exitstatus"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Process is a process that the parent started for the dispatcher.
type Process struct {
	Number    uint32
	Who       security.Identity
	PID       int
	Foreign   bool // it has a user namespace of its own
	Channel   *ipc.Channel
	Started   time.Time
	EndReason string // why the dispatcher killed it; "" if it exited by itself. Guarded by the owner of the process

	Dead          chan struct{} // closed when it has ended; the fields below are set by then
	ForbiddenCall bool          // the sandbox killed it for a forbidden system call
	Crashed       bool          // it crashed by itself, or ForbiddenCall is set
	status        string        // exit status, as a text

	from   *Starter
	log    *os.File      // reading end of the pipe at its fd 2
	silent chan struct{} // closed when its whole log was read
}

// Condemn kills the process for a reason that the dispatcher has determined.
// The log shows the first reason.
func (p *Process) Condemn(why string) {
	p.EndReason = cmp.Or(p.EndReason, why)
	p.Kill()
}

// Kill ends the process.
func (p *Process) Kill() { p.signal(true) }

// Show makes the process log its counters.
func (p *Process) Show() { p.signal(false) }

func (p *Process) signal(kill bool) {
	if p.from != nil {
		p.from.parent.Send(&ipc.Signal{Number: p.Number, Kill: kill})
	}
}

// LastWords is how long a process that has closed its channel may take to exit.
// It is also how long the channel of an exited process is still read.
const LastWords = time.Second

// Reap waits until the process has exited. If this takes longer than patience,
// Reap kills the process. Reap closes the dispatcher's descriptors of the
// process, and returns how the process ended.
func (p *Process) Reap(patience time.Duration) string {
	timer := time.AfterFunc(patience, p.Kill)
	<-p.Dead
	timer.Stop()
	p.Channel.Close()
	select {
	case <-p.silent:
	case <-time.After(LastWords): // another process holds the pipe
	}
	p.log.Close()
	return p.status
}

// Messages of alarms. docs/INCIDENTS.md explains how to respond.
const (
	WorkerViolation = "worker killed by its sandbox: it made a forbidden system call"
	CaptureHint     = `an attacker may control it; look for type=1326 and its pid in the kernel's log, and see INCIDENTS.md`
)

// Starter asks the parent for processes. Several goroutines may use one
// Starter.
type Starter struct {
	parent *Parent
	output *relay.Log // receives the lines that processes log

	mu      sync.Mutex          // guards the fields below, and keeps requests in order
	last    uint32              // number of the last process
	asked   map[uint32]*request // requests that the parent has not answered
	running map[uint32]*Process
}

// request is a request for a process.
type request struct {
	ipc.Start
	quota *relay.Quota
	done  chan error
	made  *Process
}

// NewStarter returns a Starter that sends requests to parent.
func NewStarter(parent *Parent, output *relay.Log) *Starter {
	return &Starter{parent: parent, output: output, asked: map[uint32]*request{}, running: map[uint32]*Process{}}
}

// Start starts the process that r describes. Start itself sets the number in r.
// It copies the process's log, as far as quota permits. It detects the exit of
// the process even if the process was never ready.
func (s *Starter) Start(r ipc.Start, quota *relay.Quota) (*Process, error) {
	q := &request{Start: r, quota: quota, done: make(chan error, 1)}
	s.ask(q)
	if err := <-q.done; err != nil {
		return nil, err
	}
	return q.made, nil
}

// ask sends q to the parent.
func (s *Starter) ask(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	q.Number = s.last
	s.asked[q.Number] = q
	s.parent.Send(&q.Start)
}

// Handle handles a message of the parent. The result done is false if the
// message does not concern processes.
func (s *Starter) Handle(m ipc.Received) (done bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.Started:
		q := s.answered(msg.Number)
		q.made, err = s.begin(q, msg, m.FDs)
		q.done <- err
		return true, err
	case *ipc.Unstarted:
		s.answered(msg.Number).done <- msg.Err()
	case *ipc.Ended:
		s.mu.Lock()
		p := s.running[msg.Number]
		delete(s.running, msg.Number)
		s.mu.Unlock()
		p.ended(unix.WaitStatus(msg.Status))
	default:
		return false, nil
	}
	return true, nil
}

// answered removes and returns the request that was answered.
func (s *Starter) answered(number uint32) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.asked[number]
	delete(s.asked, number)
	return q
}

// begin takes over a process that was started.
func (s *Starter) begin(q *request, m *ipc.Started, fds []int) (*Process, error) {
	log := os.NewFile(uintptr(fds[1]), "log of a process")
	channel, err := ipc.Resume(fds[0], ipc.Parent, q.Role, ipc.Proving)
	if err != nil {
		log.Close()
		return nil, errs.Wrap(err, errs.Internal, "open the channel to a %s", q.Role)
	}
	p := &Process{Number: q.Number, Who: security.Identity{UID: m.UID, GID: m.GID}, PID: int(m.PID), Foreign: m.Foreign, Channel: channel,
		Started: time.Now(), Dead: make(chan struct{}), from: s, log: log, silent: make(chan struct{})}
	s.mu.Lock()
	s.running[p.Number] = p
	s.mu.Unlock()
	label := fmt.Sprintf("%[1]s=%[2]d %[1]s_pid=%[3]d %[1]s_uid=%[4]d ", q.Role, p.Number, p.PID, p.Who.UID)
	go func() {
		defer close(p.silent)
		relay.Lines(log, s.output, label, q.quota)
	}()
	return p, nil
}

// ended records how p ended.
func (p *Process) ended(ws unix.WaitStatus) {
	p.status, p.ForbiddenCall, p.Crashed = exitstatus.Describe(ws), isForbiddenCall(ws), isCrash(ws)
	close(p.Dead)
	// A child of the process may still hold the channel open.
	time.AfterFunc(LastWords, func() { p.Channel.Close() })
}
