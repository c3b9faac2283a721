package spawn

import (
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Spec describes a process to start.
type Spec struct {
	Role     ipc.Role
	Program  *os.File
	Argv     []string
	Threads  int // how many threads run concurrently
	Identity security.Identity
	Files    uint64   // limit of open descriptors
	Out      *os.File // its standard output; nil: /dev/null
	Log      *os.File // its standard error; nil: a pipe
	Writes   bool     // it may write to a file that it gets; some roles always may
	Quiet    bool     // a failed stage logs nothing, because its exit status says enough
}

// Child is a started process, with the descriptors that the dispatcher gets.
type Child struct {
	*Process
	Channel   *ipc.Channel
	Log       *os.File // reading end of the pipe that is the process's standard error; nil: there is no pipe
	UID, GID  uint32
	OwnUserns bool // it is in a user namespace of its own
}

// Close closes this process's copies of the descriptors that the dispatcher
// gets.
func (s *Child) Close() {
	s.Channel.Close()
	s.Log.Close() // has no effect on nil
}

// Discard kills a process that no other process knows of. The process is reaped.
func (s *Child) Discard() { s.Kill(); s.Close() }

// stop kills an init process that is no longer needed, and waits a moment for
// it to exit. The other processes in its namespace exit before it.
func (s *Child) stop() {
	s.Kill()
	s.awaitExit(exitTimeout) // the init process exits later if a process in its namespace can't be killed or has not been reaped
	s.Close()
}

// Start starts a process with its own channel and log, and sends it two
// messages. The first message is the one that setup returns when it is called
// with the process's limit on tasks. The second message contains the attributes
// that the process must have. If the PID namespace has ended, Start returns
// ENOMEM.
func (s *Spawner) Start(spec Spec, setup func(tasks uint64) ipc.Message) (*Child, error) {
	p, err := s.Launch(spec)
	if err != nil {
		return nil, err
	}
	tasks := s.maxTasks(spec.Threads)
	for _, m := range []ipc.Message{setup(tasks), s.expectedAttributes(spec)} {
		if err := ipc.IgnoreClosed(p.Channel.TrySend(m)); err != nil { // the dispatcher notices an exit
			p.Discard()
			return nil, errs.Wrap(err, errs.Internal, "send a %s its settings", spec.Role)
		}
	}
	p.UID, p.GID, p.OwnUserns = spec.Identity.UID, spec.Identity.GID, s.userNS != nil
	return p, nil
}

// Launch starts a process with a channel, and sends it no message.
func (s *Spawner) Launch(spec Spec) (*Child, error) { return launch(spec, s.start) }

// launch implements Launch. The start argument is s.start, or s.execute if the
// caller is already on the Spawner's thread.
func launch(spec Spec, start func(spec Spec, channel, log int) (*Process, error)) (*Child, error) {
	channel, peerFD, err := ipc.Pair(ipc.Parent, spec.Role)
	if err != nil {
		return nil, err
	}
	defer unix.Close(peerFD) // an open copy here would hide the exit of the process
	p := &Child{Channel: channel}
	if spec.Log != nil {
		p.Process, err = start(spec, peerFD, int(spec.Log.Fd()))
	} else {
		var write int
		if p.Log, write, err = pipe(); err == nil {
			p.Process, err = start(spec, peerFD, write)
			unix.Close(write)
		}
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}
