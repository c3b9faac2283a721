package privsep

import (
	"os"
	"sync"

	"schedrestd/ipc"
	"schedrestd/security"
)

// host finds the worker for a connection. There are three: one pool for all, a worker for each
// connection, and a worker for each identity.
type host interface {
	// start makes sure that workers can serve, before the first connection is accepted.
	start() error
	// take gives c, which has a slot, to a worker, now or later. It never waits.
	take(c *connection)
	// renew has workers of a new configuration before it retires those of the old one. When they
	// can't serve, nothing changes.
	renew(c Config) error
	// stop turns away who waits for room; who waits for a worker is its pool's.
	stop()
}

// means is what every pool works with.
type means struct {
	spawner  *spawner
	slots    *slots
	pools    *pools
	names    *named
	audit    *audit
	resolver *supervisor
	plain    *spawner // of the resolver
	outlet   *outlet
	hello    []func(*worker) error // each tells a worker that is ready what else it needs, before its first connection
}

// newMeans has nothing yet that takes capabilities. resolver answers what the parent asks; nil is
// none, for what serves nobody.
func newMeans(c Config, audit *audit, resolver *supervisor) means {
	m := means{slots: newSlots(c), pools: newPools(), names: newNamed(resolver.trySend), audit: audit, resolver: resolver}
	if resolver != nil {
		resolver.hear, resolver.exited, resolver.accuse = m.names.hear, m.names.fail, m.pools.accuse
		m.hello = append(m.hello, resolver.introduce)
	}
	m.slots.silent = func() { m.pools.each((*pool).excuseSilent) }
	if audit != nil {
		audit.accuse, audit.last = m.pools.accuse, m.slots.number.Load
		audit.holds = func(say func(uint32, *connection)) { m.pools.each(func(p *pool) { p.eachHeld(say) }) }
		m.hello = append(m.hello, audit.introduce)
	}
	return m
}

// begin starts the threads that do for this process what it is permitted no more then: the last of its capabilities that nobody needs are
// dropped. Each way to start comes by here before its first worker, and none goes on that has less of the cage than it requires.
func (m *means) begin(c Config, who service, program, keeper *os.File) (err error) {
	if m.outlet, err = startOutlet(c.Outlet); err != nil {
		return err
	}
	m.outlet.look(c.Log)
	if m.spawner, err = startSpawner(c, who, program, keeper); err != nil {
		return err
	}
	m.spawner.prepare(c, who, spareNamespaces)
	if m.resolver != nil {
		if m.plain, err = startPlainSpawner(c, who); err != nil {
			return err
		}
	}
	if err := dropCapabilities(who); err != nil {
		return err
	}
	return m.spawner.satisfy(c, who)
}

// end ends what began, and with it whatever process is left.
func (m *means) end() {
	m.resolver.stop()
	if m.plain != nil {
		m.plain.stop()
	}
	if m.spawner != nil {
		m.spawner.stop()
	}
	m.outlet.stop()
}

// newHost is the host that c asks for.
func newHost(c Config, who service, m means, worn func()) host {
	switch {
	case c.Switches.WorkerPerConnection:
		return &strict{means: m, who: who, config: c}
	case c.Switches.BecomeUser:
		return newIdentities(c, who, m)
	}
	return &shared{means: m, who: who.Identity, config: c, worn: worn}
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

// try starts a worker that gets no connection, to see that it can serve.
func (m means) try(c Config, who service) error {
	c.Workers = 1
	p := newPool(m, c, c.anyWorker(who))
	err := m.pools.start(p)
	p.drain()
	return err
}

// standBy starts the worker that answers connections that are turned away, where each
// worker serves one user or one connection: it must not be one of those, which could
// read another client's token. That it starts shows that workers can serve.
func (m means) standBy(c Config, who service) error {
	c.Workers, c.Threads = 1, 1
	p := newPool(m, c, c.anyWorker(who))
	if err := m.pools.start(p); err != nil {
		return err
	}
	if old := m.slots.refuser.Swap(p); old != nil {
		old.retire()
	}
	return nil
}

// shared is one pool for all: the workers are of one identity.
type shared struct {
	means
	who  security.Identity
	worn func()

	mu     sync.Mutex
	config Config
	now    *pool
}

func (h *shared) start() error { return h.renew(h.config) }

func (h *shared) current() *pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *shared) take(c *connection) {
	for !h.current().take(c) { // replaced between the two
	}
}

func (h *shared) renew(c Config) error {
	p := newPool(h.means, c, h.who)
	p.worn = h.worn
	if err := h.pools.start(p); err != nil {
		return err
	}
	h.mu.Lock()
	old := h.now
	h.now, h.config = p, c
	h.slots.refuser.Store(p)
	h.mu.Unlock()
	if old != nil {
		for _, c := range old.retire() {
			h.take(c)
		}
	}
	return nil
}

func (h *shared) stop() {}

// strict is a worker for each connection: what one client did to his is gone with it.
type strict struct {
	means
	who service

	mu     sync.Mutex
	config Config
}

func (h *strict) start() error { return h.standBy(h.config, h.who) }

func (h *strict) take(c *connection) {
	h.mu.Lock()
	config := h.config
	h.mu.Unlock()
	config.Workers = 1
	if !config.Switches.BecomeUser {
		h.serve(c, config, h.who.Identity)
		return
	}
	h.vouch(c, h.who, config, func() { h.serve(c, config, peerOf(c.Connection)) })
}

// serve starts a worker for c.
func (h *strict) serve(c *connection, config Config, who security.Identity) {
	p := newPool(h.means, config, who)
	p.lazy, p.once = true, true
	if err := h.pools.start(p); err != nil {
		h.slots.drop(c, statusUnavailable, err.Error())
		return
	}
	p.take(c)
}

func (h *strict) renew(c Config) error {
	if err := h.standBy(c, h.who); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.config = c
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
