// Package fakeparent plays the parent in tests of the dispatcher's packages. It
// answers each request for a process with a channel whose other end the test
// holds, so the test plays the process, too. No program is executed.
package fakeparent

import (
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/ipc"
)

// timeout is how long a test waits for a message.
const timeout = time.Minute

// A Parent is the other end of the channel of a process.Parent.
type Parent struct {
	Starter  *process.Starter
	Sender   *process.Parent        // what the tested packages use to send messages
	Started  chan *Process          // the started processes
	Messages chan ipc.Message       // messages of the tested packages that do not concern processes
	Signals  chan ipc.SignalProcess // signals that are not SIGKILL

	t       testing.TB
	own     *ipc.Channel // this end of the channel
	mu      sync.Mutex   // guards the fields below
	handle  func(ipc.Message) bool
	refusal error
	running map[uint32]*Process
}

// New returns a Parent. The lines that processes log go to output.
func New(t testing.TB, output *relay.Log) *Parent {
	t.Helper()
	own, tested := Channel(t, ipc.Parent, ipc.Dispatcher, ipc.Serving)
	p := &Parent{Sender: process.NewParent(tested), Started: make(chan *Process, 1000), Messages: make(chan ipc.Message, 1000), Signals: make(chan ipc.SignalProcess, 1000),
		t: t, own: own, running: map[uint32]*Process{}}
	p.Starter = process.NewStarter(p.Sender, output)
	go p.receive()
	go p.forward(tested)
	return p
}

// Channel returns the ends of a channel between two roles, in the given phase.
func Channel(t testing.TB, one, other ipc.Role, phase ipc.Phase) (a, b *ipc.Channel) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	a, err = ipc.Open(fds[0], one, other)
	must(t, err)
	b, err = ipc.Open(fds[1], other, one)
	must(t, err)
	a.Resume(phase)
	b.Resume(phase)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Refuse makes further requests for processes fail with err, or succeed again
// if err is nil.
func (p *Parent) Refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusal = err
}

// HandleWith sets the function that handles messages of the parent that do not
// concern processes. The function returns false for an unexpected message.
func (p *Parent) HandleWith(handle func(ipc.Message) (handled bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle = handle
}

func (p *Parent) handler() func(ipc.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handle
}

// Send sends a message to the tested packages, which must be able to handle it.
func (p *Parent) Send(m ipc.Message) { must(p.t, p.own.Send(m)) }

// Next returns the next started process.
func (p *Parent) Next() *Process {
	p.t.Helper()
	select {
	case c := <-p.Started:
		return c
	case <-time.After(timeout):
		p.t.Fatal("no process is started")
	}
	return nil
}

// forward passes messages from the parent to the Starter, as a dispatcher does.
func (p *Parent) forward(tested *ipc.Channel) {
	for {
		m, err := tested.Receive()
		if err != nil {
			return
		}
		handled, err := p.Starter.Handle(m)
		if handle := p.handler(); !handled && handle != nil {
			handled = handle(m.Message)
		}
		if !handled || err != nil {
			p.t.Errorf("the message %T: handled %t, %v", m.Message, handled, err)
		}
	}
}

// receive handles the messages of the tested packages.
func (p *Parent) receive() {
	for {
		m, err := p.own.Receive()
		if err != nil {
			return
		}
		switch m := m.Message.(type) {
		case *ipc.StartProcess:
			p.start(m)
		case *ipc.SignalProcess:
			if !m.Kill {
				p.Signals <- *m
			} else if c := p.process(m.Number); c != nil {
				c.Exit(unix.WaitStatus(unix.SIGKILL))
			}
		default:
			p.Messages <- m
		}
	}
}

func (p *Parent) process(number uint32) *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[number]
}

// start answers a request for a process.
func (p *Parent) start(m *ipc.StartProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusal != nil {
		_ = p.own.Send(&ipc.StartFailed{Number: m.Number, Failure: ipc.FailureOf(p.refusal)})
		return
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer unix.Close(fds[0])
	channel, err := ipc.Open(fds[1], m.Role, ipc.Managers)
	if err != nil {
		p.t.Error(err)
		return
	}
	channel.Resume(ipc.Proving) // it has already received its configuration
	out, log, err := os.Pipe()
	if err != nil {
		p.t.Error(err)
		return
	}
	defer out.Close()
	c := &Process{StartProcess: *m, Channel: channel, Log: log, parent: p, PID: 1000 + m.Number}
	p.running[m.Number] = c
	if p.own.Send(&ipc.ProcessStarted{Number: m.Number, PID: c.PID, UID: 7, GID: 8}, fds[0], int(out.Fd())) == nil {
		p.Started <- c
	}
}

// A Process is a process that a test plays.
type Process struct {
	ipc.StartProcess
	PID     uint32
	Channel *ipc.Channel // the process's end
	Log     *os.File     // its standard error
	parent  *Parent
}

// Ready sends Ready, as a process does that can serve.
func (p *Process) Ready() {
	p.parent.t.Helper()
	must(p.parent.t, p.Channel.Send(new(ipc.Ready)))
}

// Receive returns the next message to the process, other than a Ping, which it
// answers. It closes the descriptors that come with a message.
func (p *Process) Receive() (ipc.Message, error) {
	for {
		m, err := p.Channel.Receive()
		if err != nil {
			return nil, err
		}
		for _, fd := range m.FDs {
			unix.Close(fd)
		}
		ping, ok := m.Message.(*ipc.Ping)
		if !ok {
			return m.Message, nil
		}
		_ = p.Channel.Send(&ipc.Pong{Number: ping.Number})
	}
}

// Exit ends the process with a wait status, as returned by wait(2). If the
// process has exited, Exit does nothing.
func (p *Process) Exit(status unix.WaitStatus) {
	if p.Orphan(status) {
		p.Channel.Close()
		p.Log.Close()
	}
}

// Orphan does the same as Exit, but leaves the process's descriptors open, as if
// a child of the process still ran. It returns false if the process has exited.
func (p *Process) Orphan(status unix.WaitStatus) bool {
	p.parent.mu.Lock()
	defer p.parent.mu.Unlock()
	if p.parent.running[p.Number] == nil {
		return false
	}
	delete(p.parent.running, p.Number)
	_ = p.parent.own.Send(&ipc.ProcessExited{Number: p.Number, Status: uint32(status)})
	return true
}

// Exited returns the wait status of a process that exits with a status.
func Exited(status int) unix.WaitStatus { return unix.WaitStatus(status << 8) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
