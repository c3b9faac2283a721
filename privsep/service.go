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
	"schedrestd/privsep/pool"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// serviceSpec is what the processes of one service are started from, in each generation. A service is
// an unprivileged process that works for the parent and for workers: the keeper, the resolver
// or the auditor.
type serviceSpec struct {
	role     ipc.Role
	argv     []string
	program  *os.File
	missing  error               // why there is no program
	as       []security.Identity // of the process, the best first
	room     *relay.Quota        // for what its processes log
	accused  *rate.Bucket        // workers that they may have ended
	farewell time.Duration       // what a process may take to exit when its channel is closed; 0: spawn.LastWords
}

// How many workers the processes of a service may have ended at once, and per second.
const (
	mostAccused = 100
	accusedRate = .1
)

// serviceName returns the file name of a service's program.
func serviceName(role ipc.Role) string { return "schedrestd-" + role.String() }

// newServiceSpec opens the program of a service. path is "" for the program beside this one. A program that
// can't be opened is an error when it is started.
func newServiceSpec(role ipc.Role, c Config, who service, path string, argv []string) (*serviceSpec, error) {
	s := &serviceSpec{role: role, argv: append([]string{serviceName(role)}, argv...), room: c.newQuota(), accused: rate.New(mostAccused, accusedRate, time.Now())}
	var err error
	if s.as, err = serviceIdentities(who); err != nil {
		return nil, err
	}
	if s.program, err = spawn.OpenProgram(role.String(), path, serviceName(role), s.as[0], who.root, s.as[0].UID, who.UID); err != nil {
		s.missing = errs.New(errs.Invalid, "%v", err).WithHint("%s", errs.HintOf(err))
	}
	return s, nil
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

// close closes the program.
func (s *serviceSpec) close() {
	if s != nil && s.program != nil {
		s.program.Close()
	}
}

// spawn starts a process of the service.
func (s *serviceSpec) spawn(from *spawn.Spawner, c Config) (p *spawn.Process, err error) {
	if s.missing != nil {
		return nil, s.missing
	}
	threads := 1
	if s.role == ipc.Keeper { // signing takes the processor
		threads = c.Threads
	}
	for _, as := range s.as {
		born := spawn.Birth{Role: s.role, Program: s.program, Who: as, Argv: s.argv, Threads: threads, Files: c.files()}
		p, err = from.Start(born, s.room, func(_ *spawn.Process, tasks uint64) ipc.Message {
			return &ipc.ServiceSetup{Files: uint32(c.files()), Tasks: uint32(tasks), LogLevel: c.Setup.LogLevel, Seal: c.Setup.Seal &^ ipc.SealUnix}
		})
		if !errors.Is(err, unix.EINVAL) { // EINVAL: no such id in this user namespace
			break
		}
	}
	return p, err
}

// serviceProcess is one process of a service.
type serviceProcess struct {
	*spawn.Process
	*serviceSpec
	config Config
	hear   func(ipc.Message) (done bool, err error) // handles a message that not every service sends; may be nil
	accuse func(worker uint32, why string)          // ends a worker that broke the protocol
	ready  chan error                               // gets nil when it is ready, or why it never will be
	over   chan struct{}                            // closed when it has exited
	why    error                                    // how it ended, when over is closed

	mu      sync.Mutex // guards silence, and the ending of the process
	silence pool.Liveness
}

// start starts a process of the service and returns when it is ready, or why it is not.
func (s *serviceSpec) start(from *spawn.Spawner, c Config, accuse func(uint32, string), hear func(ipc.Message) (bool, error)) (*serviceProcess, error) {
	child, err := s.spawn(from, c)
	if err != nil {
		return nil, err
	}
	p := &serviceProcess{Process: child, serviceSpec: s, config: c, hear: hear, accuse: accuse, ready: make(chan error, 1), over: make(chan struct{})}
	go p.live()
	go p.watch()
	select {
	case err = <-p.ready:
	case <-time.After(c.StartLimit):
		p.end(fmt.Sprintf("it was not ready within %s", c.StartLimit))
		<-p.over
		err = p.why
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// live hears the process until its channel closes, and waits for its end.
func (p *serviceProcess) live() {
	why := p.serveChannel()
	patience := cmp.Or(p.farewell, spawn.LastWords)
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := p.Reap(patience)
	p.mu.Lock()
	ending := p.Ending
	p.mu.Unlock()
	switch {
	case p.Caged:
		why = errs.New(errs.Internal, "the %s was killed by its sandbox: it made a forbidden system call (%s)", p.role, status).WithHint("%s", spawn.CaptureHint)
	case ending != "":
		why = errs.New(errs.Unavailable, "the %s was ended: %s", p.role, ending)
	case errors.Is(why, io.EOF):
		why = errs.New(errs.Internal, "the %s died: %s", p.role, status).WithHint("its last words are in the log above")
	}
	p.why = why
	select {
	case p.ready <- why:
	default: // it was ready
	}
	close(p.over)
}

// serveChannel handles the messages of the process until its channel closes.
func (p *serviceProcess) serveChannel() error {
	for {
		m, err := p.Channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			p.config.Log.Info(p.role.String()+" is ready", p.role.String(), p.Number, "pid", p.PID, "sealed", security.Sealed(*m).String(), "took", time.Since(p.Started).Round(10*time.Microsecond))
			p.ready <- nil
		case *ipc.Refused:
			return errs.New(errs.Denied, "the %s refuses to serve: %s", p.role, relay.Printable(m.Reason))
		case *ipc.Breach:
			if !p.accused.Take(time.Now(), 1) { // a captured one could end all workers
				return errors.New("it reported too many workers")
			}
			p.accuse(m.Number, fmt.Sprintf("to the %s: %s", p.role, relay.Printable(m.Reason)))
		case *ipc.Pong:
			p.mu.Lock()
			err = p.silence.Answered(m.Number)
			p.mu.Unlock()
		default:
			done := false
			if p.hear != nil {
				done, err = p.hear(m)
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

// watch asks the process now and then whether it still reads its channel.
func (p *serviceProcess) watch() {
	tick := time.NewTicker(p.config.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-tick.C:
			if p.Channel.Phase() == ipc.Serving {
				p.mu.Lock()
				p.silence.Ask(p.Process, p.config.Silence)
				p.mu.Unlock()
			}
		}
	}
}

// end kills the process for a reason of the parent's own.
func (p *serviceProcess) end(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Condemn(why)
}

// stop lets the process finish what it does, and returns when it has exited.
func (p *serviceProcess) stop() {
	p.Channel.Close()
	<-p.over
}

// introduce makes a channel between the service and a worker that is ready. The parent keeps no end.
func (p *serviceProcess) introduce(worker *ipc.Client, to *ipc.Channel) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a channel between the %s and a worker", p.role)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if p.Channel.Send(worker, fds[0]) != nil {
		return nil // it is exiting, and so the worker is replaced
	}
	return unlessGone(to.Send(&ipc.ServiceFD{Service: p.role}, fds[1]))
}

// unlessGone returns err, or nil when the process at the other end has exited: the end of its channel
// is handled elsewhere.
func unlessGone(err error) error {
	if errors.Is(err, unix.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
