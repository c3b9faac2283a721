package privsep

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// supervisor keeps one service running: an unprivileged process that takes work from the parent
// and from workers. It starts the process, gives each worker a channel to it, and starts the next
// one when it has exited.
type supervisor struct {
	role    ipc.Role
	config  Config
	argv    []string
	as      []security.Identity // of the process, the best first
	program *os.File
	spawner *spawn.Spawner
	room    *spawn.Quota // for what it logs

	// What the parent has to do with it; each may be nil.
	hear   func(ipc.Message) (done bool, err error) // handles a message that not every service sends
	ready  func(*spawn.Process)                     // before workers get their channels
	exited func()
	accuse func(worker uint32, why string) // ends a worker that broke the protocol

	farewell time.Duration // what it may take to exit when its channel has closed; 0: lastWords

	accused *rate.Bucket  // workers that the service may have ended
	quit    chan struct{} // closed when the gateway stops
	running sync.WaitGroup

	mu      sync.Mutex     // guards what follows, and the process's ending; nothing is locked under it
	process *spawn.Process // nil while there is none
	serving bool           // it has said Ready
	open    bool           // … and takes workers
	silence silence
	clients map[uint32]*serviceClient
}

// serviceName returns the file name of a service's program.
func serviceName(role ipc.Role) string { return "schedrestd-" + role.String() }

// newSupervisor opens the program of a service. path is "" for the program beside this one.
func newSupervisor(role ipc.Role, c Config, who service, path string, argv []string) (*supervisor, error) {
	s := &supervisor{role: role, config: c, argv: append([]string{serviceName(role)}, argv...), room: c.newQuota(),
		accused: rate.New(mostAccused, accusedRate, time.Now()), quit: make(chan struct{}), clients: map[uint32]*serviceClient{}}
	var err error
	if s.as, err = serviceIdentities(who); err != nil {
		return nil, err
	}
	s.program, err = spawn.OpenProgram(role.String(), path, serviceName(role), s.as[0], who.root, s.as[0].UID, who.UID)
	return s, err
}

// serviceIdentities returns the identities that a service may have, the best first. As root it is
// a uid that no user and no worker has: a captured worker can neither stop nor trace the service.
func serviceIdentities(who service) (list []security.Identity, err error) {
	if !who.root {
		return []security.Identity{who.Identity}, nil
	}
	for _, id := range become.Strangers() {
		list = append(list, security.Identity{Name: fmt.Sprintf("uid %d", id), UID: id, GID: id})
	}
	if len(list) == 0 {
		return nil, errs.New(errs.Unavailable, "no random number for the uid of a service")
	}
	return list, nil
}

// start starts the service and returns when it is ready, or why it is not.
func (s *supervisor) start(from *spawn.Spawner) error {
	s.spawner = from
	first := make(chan error, 1)
	s.running.Go(func() { s.keep(first) })
	s.running.Go(s.watch)
	return <-first
}

// stop ends the service, if it was started. A nil one never was.
func (s *supervisor) stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	close(s.quit)
	if s.process != nil {
		s.process.Channel.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	s.program.Close()
}

func (s *supervisor) isStopped() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

// keep has one process of the service after the other, until the gateway stops. The pause grows
// while they exit early. A first one that does not get ready ends the start.
func (s *supervisor) keep(first chan<- error) {
	failures := 0
	for !s.isStopped() {
		began := time.Now()
		err := s.live(func() {
			if first != nil {
				first <- nil
				first = nil
			}
		})
		if first != nil {
			first <- err
			return
		}
		if s.isStopped() {
			return
		}
		failures++
		if time.Since(began) > 2*pause(failures) {
			failures = 1
		}
		s.config.Log.Error(s.role.String()+" exited", about(errs.HintOf(err), "because", err, "pause", pause(failures))...)
		select {
		case <-s.quit:
		case <-time.After(pause(failures)):
		}
	}
	if first != nil {
		first <- errs.New(errs.Unavailable, "%s", stopping)
	}
}

// live is the whole life of one process of the service.
func (s *supervisor) live(ready func()) error {
	p, err := s.spawn()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process, s.silence = p, silence{}
	if s.isStopped() {
		p.Channel.Close()
	}
	s.mu.Unlock()
	late := time.AfterFunc(s.config.StartLimit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.process == p && !s.serving {
			p.Condemn(fmt.Sprintf("it was not ready within %s", s.config.StartLimit))
		}
	})
	defer late.Stop()
	why := s.serveChannel(p, ready)
	s.mu.Lock()
	s.process, s.serving, s.open = nil, false, false
	ending := p.Ending
	s.mu.Unlock()
	patience := cmp.Or(s.farewell, spawn.LastWords)
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := p.Reap(patience)
	if s.exited != nil {
		s.exited()
	}
	switch {
	case p.Caged:
		return errs.New(errs.Internal, "the %s was killed by its sandbox: it made a forbidden system call (%s)", s.role, status).WithHint("%s", spawn.CaptureHint)
	case ending != "":
		return errs.New(errs.Unavailable, "the %s was ended: %s", s.role, ending)
	case errors.Is(why, io.EOF):
		return errs.New(errs.Internal, "the %s died: %s", s.role, status).WithHint("its last words are in the log above")
	}
	return why
}

// spawn starts a process of the service.
func (s *supervisor) spawn() (p *spawn.Process, err error) {
	for _, as := range s.as {
		born := spawn.Birth{Role: s.role, Program: s.program, Who: as, Argv: s.argv, Threads: 1, Files: s.config.files()}
		p, err = s.spawner.Start(born, s.room, func(_ *spawn.Process, tasks uint64) ipc.Message {
			return &ipc.ServiceSetup{Files: uint32(s.config.files()), Tasks: uint32(tasks), LogLevel: s.config.Setup.LogLevel, Seal: s.config.Setup.Seal &^ ipc.SealUnix}
		})
		if !errors.Is(err, unix.EINVAL) { // EINVAL: no such id in this user namespace
			break
		}
	}
	return p, err
}

// serveChannel handles the messages of the service until its channel closes.
func (s *supervisor) serveChannel(p *spawn.Process, ready func()) error {
	for {
		m, err := p.Channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			s.config.Log.Info(s.role.String()+" is ready", s.role.String(), p.Number, "pid", p.PID, "sealed", security.Sealed(*m).String(), "took", time.Since(p.Started).Round(10*time.Microsecond))
			s.begin(p)
			ready()
		case *ipc.Refused:
			return errs.New(errs.Denied, "the %s refuses to serve: %s", s.role, spawn.Printable(m.Reason))
		case *ipc.Breach:
			if !s.accused.Take(time.Now(), 1) { // a captured one could end all workers
				return errors.New("it reported too many workers")
			}
			s.accuse(m.Number, fmt.Sprintf("to the %s: %s", s.role, spawn.Printable(m.Reason)))
		case *ipc.Pong:
			s.mu.Lock()
			err = s.silence.heard(m.Number)
			s.mu.Unlock()
		default:
			done := false
			if s.hear != nil {
				done, err = s.hear(m)
			}
			if !done {
				err = ipc.Unheard(m)
			}
		}
		if err != nil {
			return err
		}
	}
}

// serviceClient is a worker that the service works for.
type serviceClient struct {
	worker *worker

	mu  sync.Mutex     // guards has, and keeps channels in the order of the processes
	has *spawn.Process // whose channel the worker has
}

// begin gives the workers that there are their channels to p.
func (s *supervisor) begin(p *spawn.Process) {
	s.mu.Lock()
	s.serving = true
	s.mu.Unlock()
	if s.ready != nil {
		s.ready(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
	for _, c := range s.clients {
		go func() { _ = s.connect(c) }() // a worker that does not read holds up nothing
	}
}

// introduce gives a worker that is ready its channel to the service. While there is no service
// it gets one later.
func (s *supervisor) introduce(w *worker) error {
	c := &serviceClient{worker: w}
	s.mu.Lock()
	s.clients[w.Number] = c
	s.mu.Unlock()
	go func() {
		<-w.Dead
		s.mu.Lock()
		delete(s.clients, w.Number)
		s.mu.Unlock()
	}()
	return s.connect(c)
}

// connect makes a channel between the service and a worker that has none to this process of it. The
// parent keeps no end. When the service can't be told it is exiting, and the worker hears of the
// next one.
func (s *supervisor) connect(c *serviceClient) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.mu.Lock()
	p := s.process
	if !s.open || c.has == p {
		p = nil
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a channel between the %s and a worker", s.role)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if p.Channel.Send(c.worker.card(), fds[0]) != nil {
		return nil
	}
	c.has = p
	return unlessGone(c.worker.Channel.Send(&ipc.ServiceFD{Service: s.role}, fds[1]))
}

// unlessGone is err, and nil when the process at the other end has exited: its channel is at its end, which
// is heard elsewhere.
func unlessGone(err error) error {
	if errors.Is(err, unix.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// trySend sends m to the service, if there is one that reads.
func (s *supervisor) trySend(m ipc.Message, fds ...int) error {
	if s == nil {
		return errs.New(errs.Unavailable, "there is no such service")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serving {
		return errs.New(errs.Unavailable, "there is no %s at this moment", s.role)
	}
	return s.process.Channel.TrySend(m, fds...)
}

// show has the service write what it counted to the log.
func (s *supervisor) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving {
		s.process.Signal(unix.SIGUSR1)
	}
}

// watch asks the service now and then whether it still reads its channel.
func (s *supervisor) watch() {
	tick := time.NewTicker(s.config.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
			s.mu.Lock()
			if s.serving {
				s.silence.ask(s.process, s.config.Silence)
			}
			s.mu.Unlock()
		}
	}
}
