package privsep

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Inetd serves the one client at standard input and output, through one worker, and returns nil
// when the client's input has ended and all of it is answered, whatever the answers were. An
// error says that the service itself failed.
//
// A connected socket on in is read and written; what else in is, out takes the answers. The
// first signal has the worker finish what it is answering, a second one ends it.
func Inetd(signals <-chan os.Signal, c Config, in, out *os.File) error {
	runtime.GOMAXPROCS(1)                           // this process starts one other and waits: fewer threads are started, and told
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1) // of one client there is nothing to count
	if err := security.CloseInherited(); err != nil {
		return err
	}
	client, err := meet(in, out)
	if err != nil {
		return err
	}
	defer client.leave()
	c = client.limits(c)
	if c, err = c.complete(); err != nil {
		return err
	}
	who, err := client.serveAs(c)
	if stranger, ok := errors.AsType[*stranger](err); ok {
		who.Identity, err = client.refuse(c, who, stranger), nil
	}
	if err != nil {
		return err
	}
	c.kernelTells = client.Network != ipc.TCP
	c.Setup = c.setup(who)
	program, err := openProgram(c.Program, who)
	if err != nil {
		return err
	}
	defer program.Close()
	keys, err := newVisitKeys(c, who)
	if err != nil {
		return err
	}
	defer keys.close()
	audit, err := openAudit(c, who)
	if err != nil {
		return err
	}
	resolver, err := newSupervisor(ipc.Resolver, c, who, c.Resolver, c.ResolverArgv)
	if err != nil {
		return err
	}
	m := newMeans(c, audit, resolver)
	defer m.end()
	if err := m.begin(c, who, program, nil); err != nil {
		return err
	}
	v := &visit{means: m, config: c, who: who, client: client, keys: keys, done: make(chan error, 1)}
	resolver.accuse = v.accuse
	if audit != nil {
		audit.holds, audit.last, audit.accuse = v.holds, func() uint64 { return client.ID }, v.accuse
		defer audit.close()
	}
	if err := v.start(); err != nil {
		return err
	}
	return v.wait(signals)
}

// accuse ends the worker, which broke the protocol on its channel to a service.
func (v *visit) accuse(_ uint32, why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.worker.condemn(why)
}

// holds calls say with the client while the worker has it.
func (v *visit) holds(say func(worker uint32, c *connection)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.handed && !v.served {
		say(v.worker.number, &connection{Connection: v.client.Connection})
	}
}

// limits is c for one client. Beside a socket the limits of time are for the worker's own sake
// only: who is slow at his own terminal or pipe takes nothing from anybody.
func (s *standard) limits(c Config) Config {
	c.Setup.Inetd = true
	c.Setup.Admission = ipc.Admission{} // another process would remember nothing of him
	c.Connections, c.Workers, c.Threads = 1, 1, 1
	if s.Network == ipc.Stdio {
		l := &c.Setup.Limits
		l.ReadHeader, l.ReadBody, l.Idle, l.Stall = unhurried, unhurried, unhurried, unhurried
	}
	return c
}

const unhurried = 24 * time.Hour

// serveAs is whom the worker runs as: whoever Run would serve as, or with become_user the peer.
func (s *standard) serveAs(c Config) (service, error) {
	if !c.Switches.BecomeUser {
		return identify(c)
	}
	who := service{root: os.Geteuid() == 0}
	switch {
	case !who.root:
		return who, errs.New(errs.Invalid, "become_user needs root: nobody else can become another user")
	case c.Setup.JWT:
		return who, errs.New(errs.Invalid, "become_user does not go with rest_auth/jwt").WithHint("-a rest_auth/local")
	case s.Network != ipc.Unix:
		return who, errs.New(errs.Invalid, "become_user needs a connected UNIX socket on standard input: only there the kernel says who the client is")
	case s.nameless:
		// Of a connection that was made from here the kernel names who listens at its other end: whoever
		// starts us could be served as the owner of any service that repeats what it hears.
		return who, errs.New(errs.Invalid, "become_user needs a connection that was accepted at a UNIX socket with a path, as a service manager or inetd passes it")
	}
	who.Identity = security.Identity{Name: fmt.Sprintf("uid %d", s.UID), UID: s.UID, GID: s.GID}
	who.protect(c.Service)
	if c.Switches.DisableUserCheck {
		return who, nil
	}
	err := security.CheckIdentity(who.Identity, protectedAccounts(c.Service)...)
	if err == nil && !s.Vouched {
		err = errs.New(errs.Denied, "the peer's uid %d and gid %d stand for no user", s.UID, s.GID)
	}
	if err != nil {
		return who, &stranger{err}
	}
	return who, nil
}

// stranger is a peer that is not served. That is an answer, and no failure of the service.
type stranger struct{ error }

func (s *stranger) Unwrap() error { return s.error }

// refuse has a stranger answered 403, by a worker of the identity that it returns.
func (s *standard) refuse(c Config, who service, why *stranger) security.Identity {
	c.Log.Warn("the client is not served", "uid", s.UID, "gid", s.GID, "because", why)
	s.Refuse = statusForbidden
	return c.anyWorker(who)
}

// visit is the one client with the one worker.
type visit struct {
	means
	config  Config
	who     service
	client  *standard
	keys    visitKeys
	worker  *worker
	stopped bool       // by a signal
	copied  chan error // gets the end of the relay to a regular file; nil without one
	done    chan error

	mu     sync.Mutex // guards what follows, and the worker's silence and ending
	handed bool       // the worker was given the client
	served bool       // … and has said Done
	told   string     // why it has to come to its end; "" when it need not
	ended  time.Time  // when the client was first seen to send no more
}

// start starts the worker.
func (v *visit) start() (err error) {
	v.worker, err = v.hire(v.config, post{who: v.who.Identity, threads: v.config.Threads, requests: 1})
	if err == nil {
		go func() { v.done <- v.hear() }()
	}
	return err
}

// hear listens to the worker until its channel closes.
func (v *visit) hear() error {
	late := time.AfterFunc(v.config.StartLimit, v.worker.kill)
	defer late.Stop()
	for {
		m, err := v.worker.channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			late.Stop()
			v.spawner.announce(v.config, v.who, security.Sealed(*m))
			v.config.announceRules()
			if err = v.keys.give(v.worker.channel); err == nil {
				err = v.resolver.startWhenUsed(v.plain, v.worker)
			}
			if err == nil && v.audit != nil {
				err = v.audit.startWhenUsed(v.spawner, v.worker)
			}
			if err == nil {
				err = v.hand()
			}
		case *ipc.Refused:
			return errs.New(errs.Denied, "the worker refuses to serve: %s", printable(m.Reason))
		case *ipc.Taken:
			v.client.taken()
		case *ipc.Done:
			v.mu.Lock()
			v.served = true
			v.mu.Unlock()
			v.audit.gone(v.client.ID)
		case *ipc.Pong:
			v.mu.Lock()
			err = v.worker.silence.heard(m.Number)
			v.mu.Unlock()
		case *ipc.Progress: // nobody waits for this one slot
		default:
			var done bool
			if done, err = v.worker.hear(m); !done {
				err = ipc.Unheard(m)
			}
		}
		if err != nil {
			return err
		}
	}
}

// hand gives the client to the worker.
func (v *visit) hand() error {
	m, fds := ipc.Message(&v.client.Connection), []int{v.client.in}
	if v.client.Network == ipc.Stdio {
		out, copied, err := v.client.output()
		if err != nil {
			return err
		}
		v.copied = copied
		m, fds = &ipc.Streams{Connection: v.client.Connection}, append(fds, out)
	}
	v.mu.Lock()
	v.handed = true
	v.mu.Unlock()
	err := v.worker.channel.TrySend(m, fds...)
	if v.client.Refuse != 0 { // the worker reports nothing of it
		v.mu.Lock()
		v.served = true
		v.finish("its client is refused")
		v.mu.Unlock()
	}
	return err
}

// wait waits for the end.
func (v *visit) wait(signals <-chan os.Signal) error {
	var first os.Signal
	var same time.Time
	tick := time.NewTicker(v.config.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			v.watch(now)
		case err := <-v.done:
			return v.end(err)
		case s := <-signals:
			switch {
			case first == nil:
				first, same = s, time.Now().Add(sameSignal)
				v.stopped = true
				v.mu.Lock()
				v.finish("the gateway ends")
				v.mu.Unlock()
			case s != first || time.Now().After(same):
				v.worker.kill()
				<-v.done
				_ = v.end(io.EOF)
				return errs.New(errs.Unavailable, "stopped by a second signal (%s) before all was answered", s)
			}
		}
	}
}

// end takes the worker's status, has what it wrote reach its file, and judges. why is what ended
// the listening.
func (v *visit) end(why error) error {
	patience := lastWords
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := v.worker.bury(patience)
	v.audit.exited(v.worker.number, status)
	v.client.taken()
	if v.copied != nil {
		if err := <-v.copied; err != nil {
			return errs.Wrap(err, errs.Unavailable, "can't write the answers to standard output")
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.worker.caged:
		return errs.New(errs.Internal, "%s (%s)", workerCaged, status).WithHint("%s", captureHint)
	case patience == 0:
		return why
	case v.stopped, v.served && status == allWell:
		return nil
	case v.worker.ending != "":
		return errs.New(errs.Unavailable, "the worker was ended: %s", v.worker.ending)
	case v.served:
		return errs.New(errs.Unavailable, "the worker could not write the answers (%s): what was asked for may be done all the same", status)
	}
	return errs.New(errs.Internal, "the worker ended before all was answered: %s", status)
}
