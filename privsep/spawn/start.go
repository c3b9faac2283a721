package spawn

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Spec is what a process is started with.
type Spec struct {
	Role    ipc.Role
	Program *os.File
	Argv    []string
	Threads int // that run concurrently
	Who     security.Identity
	Files   uint64   // limit of open descriptors
	Out     *os.File // its standard output; nil: /dev/null
	Log     *os.File // its standard error; nil: a pipe
	Quiet   bool     // it gets no line from a stage that fails; its exit status says enough
}

// Started is a process that was started, and what the dispatcher gets of it.
type Started struct {
	*Process
	Channel  *ipc.Channel
	Log      *os.File // reading end of the pipe at its standard error; nil: there is none
	UID, GID uint32
	Foreign  bool // it is in a user namespace of its own
}

// Close closes this process's copies of what the dispatcher gets.
func (s *Started) Close() {
	s.Channel.Close()
	if s.Log != nil {
		s.Log.Close()
	}
}

// Start starts a process with a channel and a log of its own. It sends the
// process the result of setup, which contains its limit of tasks, and the
// attributes that it must have. If the PID namespace has ended, the process is
// started in the next one.
func (s *Spawner) Start(b Spec, setup func(tasks uint64) ipc.Message) (*Started, error) {
	s = s.InUse()
	p, err := s.Launch(b)
	if errors.Is(err, unix.ENOMEM) && s.isEnding() { // no process starts in a namespace that is ending
		if _, failed := s.Next(); failed == nil {
			return s.Start(b, setup)
		}
	}
	if err != nil {
		return nil, err
	}
	tasks := s.tasks(b.Threads)
	expect := s.expect(b, tasks)
	for _, m := range []ipc.Message{setup(tasks), &expect} {
		err := p.Channel.TrySend(m)
		if err == nil {
			continue
		}
		if ipc.UnlessGone(err) == nil {
			break // the dispatcher notices
		}
		p.Kill()
		p.Close()
		return nil, errs.Wrap(err, errs.Internal, "tell a %s what it needs", b.Role)
	}
	p.UID, p.GID, p.Foreign = b.Who.UID, b.Who.GID, s.nest != nil
	return p, nil
}

// Launch starts a process with a channel, and sends it nothing.
func (s *Spawner) Launch(b Spec) (*Started, error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, b.Role)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs) // a copy kept here would hide the death
	p := &Started{Channel: channel}
	if b.Log != nil {
		p.Process, err = s.start(b, theirs, int(b.Log.Fd()))
	} else {
		var write int
		if p.Log, write, err = pipe(); err == nil {
			p.Process, err = s.start(b, theirs, write)
			unix.Close(write)
		}
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// isEnding waits for the end of a PID namespace in which no process starts any more,
// and reports whether it was lost.
func (s *Spawner) isEnding() bool {
	if s.first != nil {
		s.first.awaitDeath(lastWords) // which comes when all in there have been waited for
	}
	return s.IsLost()
}
