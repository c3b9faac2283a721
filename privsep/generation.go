package privsep

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/service"
)

// generation groups everything that serves one configuration: its open keys,
// the services and, through the pools, the workers. Nothing in it is ever
// replaced. When something changes or exits, the next generation is built
// beside it, and takes over when its workers have proved that they can serve.
type generation struct {
	*pool.Generation
	config   Config
	keys     *keys.Keys
	keeper   *service.Process // nil: there are no secret keys
	resolver *service.Process // nil: none is started
	audit    *auditlog.Feed   // nil: there is no audit log

}

// newGeneration returns a generation that has no services yet.
func newGeneration(c Config) *generation {
	g := &generation{config: c}
	g.Generation = pool.NewGeneration(pool.Generation{Config: c.poolConfig(), Greet: g.greet, Audit: g.audit})
	return g
}

// makers holds the programs and files that generations are started from.
type makers struct {
	who      identity.Service
	https    bool
	keeper   *service.Spec  // nil: there is never a secret key
	resolver *service.Spec  // nil: none is started
	audit    *auditlog.Log  // nil: there is no audit log
	ending   sync.WaitGroup // of generations

	reportViolation func(worker uint32, why string)
}

// build starts the services of a generation for c, and gives the keeper its
// keys. before is the generation in force, or nil. With strict set,
// certificates that have replaced those in use must be usable.
func (m *parent) build(c Config, before *generation, strict bool) (g *generation, err error) {
	g = newGeneration(c)
	g.End = func() { m.ending.Go(g.close) }
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	var old *keys.Keys
	if before != nil {
		old = before.keys
	}
	if g.keys, err = keys.Open(c.keyOptions(m.who, m.https), old, strict); err != nil {
		return g, err
	}
	if m.makers.resolver != nil {
		if g.resolver, err = m.makers.resolver.Start(m.plain, c.serviceSetup(), service.Hooks{Report: m.reportViolation, Handle: m.names.Handle}); err != nil {
			return g, err
		}
	}
	if m.makers.audit != nil {
		if g.audit, err = m.makers.audit.Start(m.Spawner, c.serviceSetup(), m.reportViolation); err != nil {
			return g, err
		}
	}
	g.Audit = g.audit
	if g.keys.NeedKeeper() {
		if err = m.startKeeper(g, old, strict); err != nil {
			return g, err
		}
	}
	g.keys.Announce(old)
	return g, nil
}

// startKeeper starts the keeper of g and gives it its keys. A file that the
// keeper rejects is replaced by the one used before, like a file that can't be
// opened.
func (m *parent) startKeeper(g *generation, before *keys.Keys, strict bool) (err error) {
	var given atomic.Bool // keys that the keeper has not acknowledged
	kept := make(chan *ipc.Kept, 1)
	hear := func(m ipc.Message) (bool, error) {
		switch m := m.(type) {
		case *ipc.Kept:
			if !given.Swap(false) {
				return true, errors.New("it said Kept of keys that it was not given")
			}
			kept <- m
			return true, nil
		}
		return false, nil
	}
	if g.keeper, err = m.makers.keeper.Start(m.Spawner, g.config.serviceSetup(), service.Hooks{Report: m.reportViolation, Handle: hear}); err != nil {
		return err
	}
	g.keys.Warn(before)
	for {
		given.Store(true)
		answer, err := g.offer(kept)
		if err == nil && !answer.OK {
			why := errs.New(errs.Invalid, "%s", relay.Printable(answer.Reason))
			if err = g.keys.Refused(answer.Token, why, before, strict); err == nil {
				continue
			}
		}
		return err
	}
}

// offer gives the keeper its keys, and returns its answer.
func (g *generation) offer(kept <-chan *ipc.Kept) (*ipc.Kept, error) {
	m, fds := g.keys.ForKeeper()
	if err := ipc.UnlessGone(g.keeper.Channel.Send(m, fds...)); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "give the keeper its keys")
	}
	select {
	case answer := <-kept:
		return answer, nil
	case <-g.keeper.Over:
		return nil, g.keeper.Why()
	case <-time.After(g.config.StartLimit):
		return nil, errs.New(errs.Unavailable, "the keeper has not read the keys within %s", g.config.StartLimit)
	}
}

// services returns the processes of g.
func (g *generation) services() (list []*service.Process) {
	for _, p := range []*service.Process{g.resolver, g.keeper} {
		if p != nil {
			list = append(list, p)
		}
	}
	if g.audit != nil {
		list = append(list, g.audit.Process)
	}
	return list
}

// greet gives a worker that is ready its channels to the services and its keys, before its first connection.
func (g *generation) greet(worker *ipc.Client, to *ipc.Channel) error {
	for _, p := range g.services() {
		if err := p.Introduce(worker, to); err != nil {
			return err
		}
	}
	m, fds := g.keys.ForWorker()
	return ipc.UnlessGone(to.Send(m, fds...))
}

// lost returns a channel that receives the first service of g that exits.
func (g *generation) lost() <-chan *service.Process {
	first := make(chan *service.Process, len(g.services()))
	for _, p := range g.services() {
		go func() {
			<-p.Over
			first <- p
		}()
	}
	return first
}

// isBroken reports whether a service of g has exited.
func (g *generation) isBroken() bool {
	for _, p := range g.services() {
		select {
		case <-p.Over:
			return true
		default:
		}
	}
	return false
}

// ask sends m to the resolver.
func (g *generation) ask(m ipc.Message, fds ...int) error {
	if g == nil || g.resolver == nil {
		return errs.New(errs.Unavailable, "there is no resolver")
	}
	return g.resolver.Channel.TrySend(m, fds...)
}

// show makes the services log their counters.
func (g *generation) show() {
	if g == nil {
		return
	}
	for _, p := range g.services() {
		p.Signal(unix.SIGUSR1)
	}
}

// close ends the services and closes the keys.
func (g *generation) close() {
	g.keeper.Stop()
	g.resolver.Stop()
	g.audit.Stop()
	g.keys.Close()
}
