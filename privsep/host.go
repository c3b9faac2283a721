package privsep

import (
	"os"
	"sync"

	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// host finds the worker for a connection. There are three: one pool for all, a worker for each
// connection, and a worker for each identity.
type host interface {
	// take gives c, which has a slot, to a worker, now or later. It never waits.
	take(c *connection)
	// renew has workers of g before it retires those of the generation in force, which it
	// then lets go. When they can't serve, nothing changes.
	renew(g *generation) error
	// stop turns away who waits for room; who waits for a worker is its pool's.
	stop()
}

// means is what every pool works with.
type means struct {
	*makers
	spawner *spawn.Spawner
	plain   *spawn.Spawner // of the resolver
	slots   *slots
	pools   *pools
	outlet  *dial.Outlet
}

// newMeans has nothing yet that takes capabilities.
func newMeans(c Config, makers *makers) means {
	m := means{makers: makers, slots: newSlots(c), pools: newPools()}
	m.slots.silent = func() { m.pools.each((*pool).excuseSilent) }
	if m.accuse == nil {
		m.accuse = m.pools.accuse
	}
	return m
}

// begin starts the threads that do for this process what it is permitted no more then: the last of its capabilities that nobody needs are
// dropped. Each way to start comes by here before its first worker, and none goes on that has less of the cage than it requires.
func (m *means) begin(c Config, who service, program, keeper *os.File) (err error) {
	if m.outlet, err = dial.NewOutlet(c.Outlet); err != nil {
		return err
	}
	m.outlet.Check(c.Log)
	if m.spawner, err = spawn.New(c.spawnOptions(who, program, keeper)); err != nil {
		return err
	}
	m.spawner.Prepare(spawn.SpareNamespaces)
	if m.makers.resolver != nil {
		plain := c.spawnOptions(who, nil, nil)
		plain.Plain = true
		if m.plain, err = spawn.New(plain); err != nil {
			return err
		}
	}
	if err := dropCapabilities(who); err != nil {
		return err
	}
	return m.spawner.CheckRequired()
}

// end ends what began, and with it whatever process is left.
func (m *means) end() {
	if m.plain != nil {
		m.plain.Stop()
	}
	if m.spawner != nil {
		m.spawner.Stop()
	}
	m.outlet.Stop()
}

// newHost is the host that c asks for.
func newHost(c Config, who service, m means, worn func()) host {
	switch {
	case c.Switches.WorkerPerConnection:
		return &strict{means: m, who: who, config: c}
	case c.Switches.BecomeUser:
		return newIdentities(c, who, m)
	}
	return &shared{means: m, who: who.Identity, worn: worn}
}

// vouch goes on with c when its peer may have a worker of his own, now or later, and drops it when not. A uid that the
// databases do not know is as a rule subordinate to somebody's, who has tens of thousands of them (subuid(5)), each as good as a user. When they
// can't be asked everybody is taken for somebody.
func (m means) vouch(c *connection, s service, config Config, on func()) {
	if why := s.refuses(c.Connection, config); why != "" {
		m.slots.drop(c, statusForbidden, why)
		return
	}
	judge := func(named, sure bool) {
		if sure && !named {
			m.slots.drop(c, statusForbidden, "its uid is no user's")
			return
		}
		on()
	}
	if named, ok := m.names.kept(c.UID); ok {
		judge(named, true)
		return
	}
	m.names.ask(c.UID, judge)
}

// try starts a worker of g that gets no connection, to see that it can serve.
func (m means) try(g *generation, who service) error {
	p := newPool(m, g, g.config.anyWorker(who))
	p.config.Workers = 1
	err := m.pools.start(p)
	p.drain()
	return err
}

// standBy starts the worker of g that answers connections that are turned away, where each
// worker serves one user or one connection: it must not be one of those, which could
// read another client's token. That it starts shows that workers can serve.
func (m means) standBy(g *generation, who service) error {
	p := newPool(m, g, g.config.anyWorker(who))
	p.config.Workers, p.config.Threads = 1, 1
	if err := m.pools.start(p); err != nil {
		return err
	}
	if old := m.slots.refuser.Swap(p); old != nil {
		old.retire()
	}
	return nil
}

// inForce is the generation that a host serves by.
type inForce struct {
	mu  sync.Mutex // guards gen
	gen *generation
}

// newPool makes a pool of the generation in force.
func (f *inForce) newPool(m means, who security.Identity) *pool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return newPool(m, f.gen, who)
}

// replace puts g in force and lets the one before go.
func (f *inForce) replace(g *generation) {
	f.mu.Lock()
	old := f.gen
	f.gen = g
	f.mu.Unlock()
	if old != nil {
		old.release()
	}
}

// shared is one pool for all: the workers are of one identity.
type shared struct {
	means
	who  security.Identity
	worn func()

	mu  sync.Mutex // guards what follows
	gen *generation
	now *pool
}

func (h *shared) current() *pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *shared) take(c *connection) {
	for !h.current().take(c) { // replaced between the two
	}
}

func (h *shared) renew(g *generation) error {
	p := newPool(h.means, g, h.who)
	p.worn = h.worn
	if err := h.pools.start(p); err != nil {
		return err
	}
	h.mu.Lock()
	old, before := h.now, h.gen
	h.now, h.gen = p, g
	h.slots.refuser.Store(p)
	h.mu.Unlock()
	if old != nil {
		for _, c := range old.retire() {
			h.take(c)
		}
		before.release()
	}
	return nil
}

func (h *shared) stop() {}

// strict is a worker for each connection: what one client did to his is gone with it.
type strict struct {
	means
	inForce
	who    service
	config Config
}

func (h *strict) take(c *connection) {
	if !h.config.Switches.BecomeUser {
		h.serve(c, h.who.Identity)
		return
	}
	h.vouch(c, h.who, h.config, func() { h.serve(c, peerOf(c.Connection)) })
}

// serve starts a worker for c.
func (h *strict) serve(c *connection, who security.Identity) {
	p := h.newPool(h.means, who)
	p.config.Workers, p.lazy, p.once = 1, true, true
	if err := h.pools.start(p); err != nil {
		h.slots.drop(c, statusUnavailable, err.Error())
		return
	}
	p.take(c)
}

func (h *strict) renew(g *generation) error {
	if err := h.standBy(g, h.who); err != nil {
		return err
	}
	h.replace(g)
	return nil
}

func (h *strict) stop() {}

// peerOf is the identity that the kernel vouches for.
func peerOf(c ipc.Connection) security.Identity {
	return security.Identity{Name: "", UID: c.UID, GID: c.GID}
}

// refuses tells why a peer may not have a worker of his own; "" when he may. A worker of root's or
// SchedUser's would have their authority, and one of the overflow ids is everybody's.
func (s service) refuses(c ipc.Connection, config Config) string {
	switch {
	case c.Network == ipc.TCP || c.UID == ipc.NoID:
		return "the kernel does not say who it is"
	case c.UID == 0 && !config.Switches.DisableUserCheck:
		return "it is root's, who gets no worker"
	case !c.Vouched && c.GID == 0:
		return "its group is 0, and a worker of that could write what group root may"
	case !c.Vouched:
		return "its uid and gid stand for nobody"
	case config.Switches.DisableUserCheck:
		return ""
	case c.UID == s.schedUID:
		return "it is SchedUser's, who gets no worker"
	}
	return ""
}
