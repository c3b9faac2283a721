package privsep

import (
	"time"

	"schedrestd/ipc"
	"schedrestd/security"
)

// dispatcher finds the worker for a connection. There are three: one pool for all, a worker for each
// connection, and a worker for each identity.
type dispatcher interface {
	// take gives c, which has a slot, to a worker, now or later.
	take(c *connection)
	// renew starts workers of g, and retires those of the generation in force, which it
	// then releases. When they can't serve, nothing changes. It calls done then.
	renew(g *generation, done func(error))
	// stop turns away connections that wait for a pool.
	stop()
}

// newDispatcher returns the dispatcher that c asks for.
func newDispatcher(c Config, m means, worn func()) dispatcher {
	demand := onDemand{means: m, config: c}
	switch {
	case c.Switches.WorkerPerConnection:
		return &perConnection{demand}
	case c.Switches.BecomeUser:
		return newIdentities(demand)
	}
	return &shared{means: m, worn: worn}
}

// try starts a worker of g that gets no connection, to see that it can serve.
func (m means) try(g *generation, done func(error)) {
	p := newPool(m, g, g.config.anyWorker(m.who))
	p.config.Workers = 1
	m.pools.start(p, func(err error) { p.drain(); done(err) })
}

// shared is one pool for all: the workers are of one identity.
type shared struct {
	means
	worn func()
	now  *pool
}

func (h *shared) take(c *connection) { h.now.take(c) }

func (h *shared) renew(g *generation, done func(error)) {
	p := newPool(h.means, g, h.who.Identity)
	p.worn = h.worn
	h.pools.start(p, func(err error) {
		if err == nil {
			h.replace(p)
		}
		done(err)
	})
}

// replace puts p in place of the pool before it.
func (h *shared) replace(p *pool) {
	old := h.now
	h.now, h.slots.answer = p, p.refuse
	if old != nil {
		for _, c := range old.retire() {
			p.take(c)
		}
	}
}

func (h *shared) stop() {}

// onDemand is what dispatchers have in common that start workers when connections come.
type onDemand struct {
	means
	config  Config
	gen     *generation // in force
	standby *pool
}

// renew starts the worker of g that answers connections that are turned away: it must not be one that serves
// a user or a connection, which could read another client's token. That it starts shows that workers can
// serve: it has the identity of no user, and none can harm it.
func (h *onDemand) renew(g *generation, done func(error)) {
	p := newPool(h.means, g, h.config.anyWorker(h.who))
	p.config.Workers, p.config.Threads = 1, 1
	h.pools.start(p, func(err error) {
		if err == nil {
			h.replace(g, p)
		}
		done(err)
	})
}

// replace puts g and its worker in place of those before.
func (h *onDemand) replace(g *generation, p *pool) {
	if h.standby != nil {
		h.standby.retire()
	}
	h.gen, h.standby, h.slots.answer = g, p, p.refuse
}

// newPool returns a pool of one worker, which starts when a connection waits for it.
func (h *onDemand) newPool(who security.Identity) *pool {
	p := newPool(h.means, h.gen, who)
	p.config.Workers, p.lazy = 1, true
	return p
}

// identify calls then when the peer of c may have a worker of its own, now or later, and turns c away when not. A uid that the
// user database does not know is usually subordinate to a user's, who has tens of thousands of them (subuid(5)), each as good as a user.
// While the database is unavailable every uid is taken for a user's.
func (h *onDemand) identify(c *connection, then func()) {
	if why := h.who.refuses(c.Connection, h.config); why != "" {
		h.slots.drop(c, statusForbidden, why)
		return
	}
	h.names.lookup(c.UID, func(named, sure bool) {
		if sure && !named {
			h.slots.drop(c, statusForbidden, "its uid is no user's")
			return
		}
		then()
	})
}

// perConnection is a worker for each connection: what one client did to it is gone with it.
type perConnection struct{ onDemand }

func (h *perConnection) take(c *connection) {
	if !h.config.Switches.BecomeUser {
		h.serve(c, h.who.Identity)
		return
	}
	h.identify(c, func() { h.serve(c, peerOf(c.Connection)) })
}

// serve starts a worker for c.
func (h *perConnection) serve(c *connection, who security.Identity) {
	p := h.newPool(who)
	p.once = true
	h.pools.start(p, func(error) {})
	p.take(c)
}

func (h *perConnection) stop() {}

// peerOf returns the identity that the kernel vouches for.
func peerOf(c ipc.Connection) security.Identity {
	return security.Identity{Name: "", UID: c.UID, GID: c.GID}
}

// refuses returns why a peer may not have a worker of its own; "" when it may. A worker of root's or
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

// watch has each worker asked now and then whether it still reads its channel.
func (m means) watch(every time.Duration) {
	m.pools.each((*pool).checkLiveness)
	m.after(every, func() { m.watch(every) })
}
