package spawn

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// Start starts a process, and tells it setup, of which its limit of tasks is a part, and what it is to find itself in. Whoever dies before he can be told anything is heard to have died, as one who dies later is.
// Where the PID namespace has ended, the process is started in the next one.
func (s *Spawner) Start(b Birth, room *Quota, setup func(p *Process, tasks uint64) ipc.Message) (*Process, error) {
	s = s.InUse()
	p, err := s.launch(b, room)
	if errors.Is(err, unix.ENOMEM) && s.next != nil && s.Anchor.ends() { // no process starts in a namespace that is ending
		return s.Start(b, room, setup)
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
