package spawn

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/relay"
	"schedrestd/security"
)

// Birth is what a process is started with.
type Birth struct {
	Role    ipc.Role
	Program *os.File
	Argv    []string
	Threads int // that run concurrently
	Who     security.Identity
	Files   uint64 // limit of open descriptors
}

// Start starts a process with a channel and a log of its own. It sends the
// process the result of setup, which contains its limit of tasks, and the
// attributes that it must have. room bounds what it may log. The exit of a
// process before it received these is detected like any other. If the PID
// namespace has ended, the process is started in the next one.
func (s *Spawner) Start(b Birth, room *relay.Quota, setup func(p *Process, tasks uint64) ipc.Message) (*Process, error) {
	s = s.InUse()
	p, err := s.launch(b, room)
	if errors.Is(err, unix.ENOMEM) && s.isEnding() { // no process starts in a namespace that is ending
		if _, failed := s.Next(); failed == nil {
			return s.Start(b, room, setup)
		}
	}
	if err != nil {
		return nil, err
	}
	tasks := s.tasks(b.Threads)
	expect := s.expect(b, tasks)
	for _, m := range []ipc.Message{setup(p, tasks), &expect} {
		err := p.Channel.TrySend(m)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, os.ErrClosed) {
			break
		}
		if err != nil {
			p.Reap(0)
			return nil, errs.Wrap(err, errs.Internal, "tell a %s what it needs", b.Role)
		}
	}
	return p, nil
}

// launch starts a process, and relays its log.
func (s *Spawner) launch(b Birth, room *relay.Quota) (*Process, error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, b.Role)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs) // a copy kept here would hide the death
	logRead, logWrite, err := Pipe()
	if err != nil {
		channel.Close()
		return nil, err
	}
	defer unix.Close(logWrite)
	p, err := s.start(b, theirs, logWrite)
	if err != nil {
		channel.Close()
		logRead.Close()
		return nil, err
	}
	p.Number, p.Channel, p.log, p.silent = s.number.Add(1), channel, logRead, make(chan struct{})
	go func() {
		<-p.Dead
		// A process that this one left behind may hold the channel open.
		time.AfterFunc(LastWords, func() { channel.Close() })
	}()
	go func() {
		defer close(p.silent)
		relay.Lines(p.log, s.Output, fmt.Sprintf("%[1]s=%[2]d %[1]s_pid=%[3]d %[1]s_uid=%[4]d ", b.Role, p.Number, p.PID, b.Who.UID), room)
	}()
	return p, nil
}

// isEnding waits for the end of a PID namespace in which no process starts any more,
// and reports whether it was lost.
func (s *Spawner) isEnding() bool {
	if s.first != nil {
		s.first.awaitDeath(LastWords) // which comes when all in there have been waited for
	}
	return s.IsLost()
}
