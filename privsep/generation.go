package privsep

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/relay"
)

// generation groups what serves one configuration: its open keys, the services, and by way of the pools the
// workers. Nothing in it is ever exchanged. When something changes or dies, the next generation is built
// beside it, and takes over when its workers have proved that they can serve.
type generation struct {
	*pool.Generation
	config   Config
	keys     *keys
	keeper   *serviceProcess // nil: there is nothing to keep
	resolver *serviceProcess // nil: one client, who may start it
	audit    *auditFeed      // nil: there is no audit log

}

// newGeneration returns a generation that has no services yet.
func newGeneration(c Config) *generation {
	g := &generation{config: c}
	g.Generation = pool.NewGeneration(pool.Generation{Config: c.poolConfig(), Greet: g.greet, Audit: g.audit})
	return g
}

// makers has the programs and files that generations are started from.
type makers struct {
	who      service
	https    bool
	keeper   *serviceSpec   // nil: there is never a key
	resolver *serviceSpec   // nil: none is started
	audit    *audit         // nil: there is no audit log
	ending   sync.WaitGroup // of generations

	reportViolation func(worker uint32, why string)
}

// build starts the services of a generation for c, and gives the keeper its keys. before is the
// generation in force, or nil. With strict set, certificates that have replaced those in use must be usable.
func (m *means) build(c Config, before *generation, strict bool) (g *generation, err error) {
	g = newGeneration(c)
	g.End = func() { m.ending.Go(g.close) }
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	var old *keys
	if before != nil {
		old = before.keys
	}
	if g.keys, err = openKeys(c, m.who, m.https, old, strict); err != nil {
		return g, err
	}
	if m.makers.resolver != nil {
		if g.resolver, err = m.makers.resolver.start(m.plain, c, m.reportViolation, m.names.Handle); err != nil {
			return g, err
		}
	}
	if m.makers.audit != nil {
		if g.audit, err = m.makers.audit.start(m.Spawner, c, m.reportViolation); err != nil {
			return g, err
		}
	}
	g.Audit = g.audit
	if g.keys.needKeeper() {
		if err = m.startKeeper(g, old, strict); err != nil {
			return g, err
		}
	}
	g.sayKeys(old)
	return g, nil
}

// startKeeper starts the keeper of g and gives it its keys. A file that it refuses is replaced by the one
// before it, as one that can't be opened is.
func (m *means) startKeeper(g *generation, before *keys, strict bool) (err error) {
	var given atomic.Bool // keys that it has not answered for
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
	if g.keeper, err = m.makers.keeper.start(m.Spawner, g.config, m.reportViolation, hear); err != nil {
		return err
	}
	m.warnAboutKeeper(g, before)
	if before == nil {
		before = new(keys)
	}
	for {
		given.Store(true)
		answer, err := g.offer(kept)
		if err != nil || answer.OK {
			return err
		}
		why := errs.New(errs.Invalid, "%s", relay.Printable(answer.Reason))
		k := g.keys
		switch {
		case answer.Token && k.token.file != nil && k.token.followed:
			why = errs.New(errs.Invalid, "key file %s: %v", k.token.path, why).WithHint("%s", newTokenKey(k.token.file))
			if before.token.path != k.token.path {
				return why
			}
			err = k.token.fallBack(before.token, why, g.config.Log)
		case answer.Token && k.token.file != nil: // it was written over
			g.config.Log.Error("the keeper has no key of HS256 tokens: they are vouched for by the daemons", about(newTokenKey(k.token.file), "error", why)...)
			err = k.token.keep(keyFile{}, false)
		case !answer.Token && k.pair != nil:
			refused := k.pair.tls.refused(why)
			if before.pair == nil || strict || before.pair.tls != k.pair.tls {
				return refused
			}
			sayNotRenewed(g.config, refused)
			seen := k.pair.seen
			k.pair.close()
			k.pair, err = before.pair.again(seen)
			before = &keys{token: before.token} // it is refused once
		default:
			return why
		}
		if err != nil {
			return err
		}
	}
}

// offer gives the keeper its keys, and returns its answer.
func (g *generation) offer(kept <-chan *ipc.Kept) (*ipc.Kept, error) {
	m, fds := g.keys.forKeeper()
	switch err := g.keeper.Channel.Send(m, fds...); {
	case err != nil && unlessGone(err) == nil:
		<-g.keeper.over
		return nil, g.keeper.why
	case err != nil:
		return nil, errs.Wrap(err, errs.Internal, "give the keeper its keys")
	}
	select {
	case answer := <-kept:
		return answer, nil
	case <-g.keeper.over:
		return nil, g.keeper.why
	case <-time.After(g.config.StartLimit):
		return nil, errs.New(errs.Unavailable, "the keeper has not read the keys within %s", g.config.StartLimit)
	}
}

// warnAboutKeeper says once what a keeper without an identity of its own does not keep.
func (m *means) warnAboutKeeper(g *generation, before *keys) {
	if m.who.root {
		return
	}
	if before == nil || !before.needKeeper() {
		g.config.Log.Warn("the keeper has the workers' uid: a start as root gives it one of its own", "uid", m.who.UID)
	}
	if f := g.keys.token.file; f != nil && (before == nil || before.token.path != g.keys.token.path) {
		g.config.Log.Warn("whoever captures a worker can read the key of HS256 tokens by its path: without root workers run as who started the gateway",
			"file", f.Name(), "uid", m.who.UID, "hint", "start as root with -u; or name no jwt_key= that "+m.who.Name+" can read, and the daemons vouch")
	}
}

// sayKeys logs which files are in use that were not before.
func (g *generation) sayKeys(before *keys) {
	if before == nil {
		before = new(keys)
	}
	k, log := g.keys, g.config.Log
	k.token.sayUsed(before.token, log)
	k.set.sayUsed(before.set, log)
	if p := k.pair; p != nil && (before.pair == nil || before.pair.seen != p.seen || before.pair.tls != p.tls) {
		log.Info("certificate is in use", "file", p.tls.Certificate, "client_certificates", p.tls.ClientCA != "")
	}
}

// services returns the processes of g.
func (g *generation) services() (list []*serviceProcess) {
	for _, p := range []*serviceProcess{g.resolver, g.keeper} {
		if p != nil {
			list = append(list, p)
		}
	}
	if g.audit != nil {
		list = append(list, g.audit.serviceProcess)
	}
	return list
}

// greet gives a worker that is ready its channels to the services and its keys, before its first connection.
func (g *generation) greet(worker *ipc.Client, to *ipc.Channel) error {
	for _, p := range g.services() {
		if err := p.introduce(worker, to); err != nil {
			return err
		}
	}
	m, fds := g.keys.forWorker()
	return unlessGone(to.Send(m, fds...))
}

// lost returns a channel that gets the first service of g that exits.
func (g *generation) lost() <-chan *serviceProcess {
	first := make(chan *serviceProcess, len(g.services()))
	for _, p := range g.services() {
		go func() {
			<-p.over
			first <- p
		}()
	}
	return first
}

// isBroken reports whether a service of g has exited.
func (g *generation) isBroken() bool {
	for _, p := range g.services() {
		select {
		case <-p.over:
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

// show has the services write what they counted to the log.
func (g *generation) show() {
	if g == nil {
		return
	}
	for _, p := range g.services() {
		p.mu.Lock()
		select {
		case <-p.over:
		default:
			p.Signal(unix.SIGUSR1)
		}
		p.mu.Unlock()
	}
}

// close ends the services and closes the keys.
func (g *generation) close() {
	if g.keeper != nil {
		g.keeper.stop()
	}
	if g.resolver != nil {
		g.resolver.stop()
	}
	if g.audit != nil {
		g.audit.stop()
	}
	if g.keys != nil {
		g.keys.close()
	}
}
