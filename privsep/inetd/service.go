package inetd

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Service is an unprivileged process that the worker may use. It starts when the worker first sends it
// something: most runs use none, and a process costs as much as a request.
type Service struct {
	Role     ipc.Role
	Start    func() (*spawn.Process, error)
	Farewell time.Duration // that it may take to exit when its channel has closed

	// For the auditor; otherwise nil. Begin sends what it needs before it hears the worker. Follow answers its
	// question after its file, in a goroutine that may wait for the file system.
	Begin  func(*ipc.Channel) error
	Follow func(*ipc.Channel) error
}

// service is a Service of this run.
type service struct {
	Service
	ours    *os.File // the end of the worker's channel to it, until it has that
	process *spawn.Process
	ready   bool
}

// offer gives the worker a channel to s, which does not run yet.
func (v *visit) offer(s *service) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a channel between the %s and a worker", s.Role)
	}
	defer unix.Close(fds[1])
	s.ours = os.NewFile(uintptr(fds[0]), s.Role.String())
	raw, err := s.ours.SyscallConn()
	if err != nil {
		return err
	}
	go func() {
		used := false
		_ = raw.Read(func(fd uintptr) bool {
			n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			used = err == nil && n > 0
			return err != unix.EAGAIN && err != unix.EINTR
		})
		if used { // otherwise the worker has exited
			v.post(func() { v.start(s) })
		}
	}()
	return v.say(&ipc.ServiceFD{Service: s.Role}, fds[1])
}

// start starts s.
func (v *visit) start(s *service) {
	p, err := s.Start()
	if err != nil {
		v.fail(s, err)
		return
	}
	s.process = p
	late := time.AfterFunc(v.StartLimit, p.Kill)
	var slow func(ipc.Message) (bool, error)
	if s.Follow != nil {
		slow = func(m ipc.Message) (bool, error) {
			if _, ok := m.(*ipc.Follow); !ok {
				return false, nil
			}
			return true, s.Follow(p.Channel)
		}
	}
	go v.listen(p.Channel, slow, func(m ipc.Message, err error) error {
		if err == nil {
			err = v.hearService(s, m)
		}
		if s.ready || err != nil {
			late.Stop()
		}
		if err != nil && s.process != nil { // otherwise the run ends
			s.process = nil
			status := p.Reap(0)
			switch {
			case p.Caged:
				err = errs.New(errs.Internal, "the %s was killed by its sandbox: it made a forbidden system call", s.Role).WithHint("%s", spawn.CaptureHint)
			case errors.Is(err, io.EOF):
				err = errs.New(errs.Internal, "the %s died: %s", s.Role, status).WithHint("its last words are in the log above")
			}
			v.fail(s, err)
		}
		return err
	})
}

// fail logs that s can't be used. The worker reads the end of its channel.
func (v *visit) fail(s *service, err error) {
	s.ours.Close()
	attrs := []any{"error", err}
	if hint := errs.HintOf(err); hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	v.Log.Error(s.Role.String()+" not available", attrs...)
}

// hearService handles a message of s.
func (v *visit) hearService(s *service, m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		s.ready = true
		v.Log.Info(s.Role.String()+" is ready", s.Role.String(), s.process.Number, "pid", s.process.PID, "sealed", security.Sealed(*m).String())
		return v.introduce(s)
	case *ipc.Refused:
		return errs.New(errs.Denied, "the %s refuses to serve: %s", s.Role, relay.Printable(m.Reason))
	case *ipc.Breach:
		v.worker.Condemn("to the " + s.Role.String() + ": " + relay.Printable(m.Reason))
		return nil
	}
	return ipc.Unheard(m)
}

// introduce tells s about the worker, and gives it its end of the worker's channel.
func (v *visit) introduce(s *service) error {
	defer s.ours.Close()
	if s.Begin != nil {
		if err := s.Begin(s.process.Channel); err != nil {
			return err
		}
		v.tell(&ipc.Gone{ID: v.Client.ID}) // no connection has a higher number
		if v.handed && !v.served {
			v.tell(&ipc.Facts{Worker: v.worker.Number, Connection: v.Client.Connection})
		}
	}
	card := &ipc.Client{Number: v.worker.Number, PID: uint32(v.worker.PID), UID: v.worker.Who.UID, Requests: 1}
	return s.process.Channel.TrySend(card, int(s.ours.Fd()))
}

// tell sends m to the auditor, if it runs.
func (v *visit) tell(m ipc.Message) {
	for _, s := range v.services {
		if s.Begin != nil && s.ready && s.process != nil {
			_ = s.process.Channel.TrySend(m)
		}
	}
}

// stop has s finish what the worker sent it, and waits for its exit.
func (v *visit) stop(s *service) {
	for s.Begin != nil && s.process != nil && !s.ready { // it gets ready, or is killed for being late
		(<-v.events)()
	}
	if p := s.process; p != nil {
		s.process = nil
		p.Channel.Close()
		p.Reap(max(s.Farewell, spawn.LastWords))
	}
}
