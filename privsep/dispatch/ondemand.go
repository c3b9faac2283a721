package dispatch

import (
	"schedrestd/ipc"
	"schedrestd/privsep/pool"
	"schedrestd/security"
)

// onDemand is what dispatchers have in common that start workers when connections come.
type onDemand struct {
	*pool.Set
	Options
	gen     *pool.Generation // in force
	standby *pool.Pool
}

// Renew starts the worker of g that answers connections that are turned away: it must not be one that serves
// a user or a connection, which could read another client's token. That it starts shows that workers can
// serve: it has the identity of no user, and none can harm it.
func (h *onDemand) Renew(g *pool.Generation, done func(error)) {
	p := h.NewPool(g, h.Nobody)
	p.Workers, p.Threads = 1, 1
	h.Start(p, func(err error) {
		if err == nil {
			h.replace(g, p)
		}
		done(err)
	})
}

// replace puts g and its worker in place of those before.
func (h *onDemand) replace(g *pool.Generation, p *pool.Pool) {
	if h.standby != nil {
		h.standby.Retire()
	}
	h.gen, h.standby, h.Slots.Answer = g, p, p.Refuse
}

// newPool returns a pool of one worker, which starts when a connection waits for it.
func (h *onDemand) newPool(who security.Identity) *pool.Pool {
	p := h.NewPool(h.gen, who)
	p.Workers, p.Lazy = 1, true
	return p
}

// identify calls then when the peer of c may have a worker of its own, now or later, and turns c away when not. A uid that the
// user database does not know is usually subordinate to a user's, who has tens of thousands of them (subuid(5)), each as good as a user.
// While the database is unavailable every uid is taken for a user's.
func (h *onDemand) identify(c *pool.Connection, then func()) {
	if why := h.refuses(c.Connection); why != "" {
		h.Slots.Drop(c, pool.Forbidden, why)
		return
	}
	h.Names.lookup(c.UID, func(named, sure bool) {
		if sure && !named {
			h.Slots.Drop(c, pool.Forbidden, "its uid is no user's")
			return
		}
		then()
	})
}

// refuses returns why a peer may not have a worker of its own; "" when it may. A worker of root's or
// SchedUser's would have their authority, and one of the overflow ids is everybody's.
func (o Options) refuses(c ipc.Connection) string {
	unchecked := o.Switches.DisableUserCheck
	switch {
	case c.Network == ipc.TCP || c.UID == ipc.NoID:
		return "the kernel does not say who it is"
	case c.UID == 0 && !unchecked:
		return "it is root's, who gets no worker"
	case !c.Vouched && c.GID == 0:
		return "its group is 0, and a worker of that could write what group root may"
	case !c.Vouched:
		return "its uid and gid stand for nobody"
	case unchecked:
		return ""
	case c.UID == o.SchedUID:
		return "it is SchedUser's, who gets no worker"
	}
	return ""
}

// peerOf returns the identity that the kernel vouches for.
func peerOf(c ipc.Connection) security.Identity {
	return security.Identity{UID: c.UID, GID: c.GID}
}

// perConnection is a worker for each connection: what one client did to it is gone with it.
type perConnection struct{ onDemand }

func (h *perConnection) Take(c *pool.Connection) {
	if !h.Switches.BecomeUser {
		h.serve(c, h.Worker)
		return
	}
	h.identify(c, func() { h.serve(c, peerOf(c.Connection)) })
}

// serve starts a worker for c.
func (h *perConnection) serve(c *pool.Connection, who security.Identity) {
	p := h.newPool(who)
	p.Once = true
	h.Start(p, func(error) {})
	p.Take(c)
}

func (h *perConnection) Stop() {}
