package dispatch

import (
	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/ipc"
	"schedrestd/security"
)

// onDemand is the common part of the dispatchers that start workers when
// connections arrive.
type onDemand struct {
	*pool.Set
	Options
	gen     *pool.Generation // the current generation
	standby *pool.Pool
}

// Renew starts the standby worker of g. This worker answers connections that
// are turned away. A worker that serves a single user or connection must not do
// this, because it could read another client's token. The standby worker runs
// as the configured user, so no client's user can interfere with it. Its start
// also proves that workers can serve.
func (h *onDemand) Renew(g *pool.Generation, done func(error)) {
	p := h.NewPool(g, h.Standby)
	p.Workers, p.Threads = 1, 1
	h.Start(p, func(err error) {
		if err == nil {
			h.replace(g, p)
		}
		done(err)
	})
}

// replace makes g the current generation, with p as its standby worker.
func (h *onDemand) replace(g *pool.Generation, p *pool.Pool) {
	if h.standby != nil {
		h.standby.Retire()
	}
	h.gen, h.standby, h.Slots.Answer = g, p, p.Refuse
}

// newPool returns a pool with one worker. The worker starts when a connection
// waits for the pool.
func (h *onDemand) newPool(id security.Identity) *pool.Pool {
	p := h.NewPool(h.gen, id)
	p.Workers, p.Lazy = 1, true
	return p
}

// identify decides whether the client of c may have a worker of its own. If so,
// it calls callback. Otherwise it turns c away. The decision is made at once if
// the user database's answer is cached, and otherwise when the database has
// answered.
//
// A uid that the user database does not know gets no worker, because it is
// usually a subordinate uid. A user may have tens of thousands of such uids
// (subuid(5)), and could use up the limit on workers with them. While the
// database is unavailable, every uid is assumed to have a name.
func (h *onDemand) identify(c *pool.Connection, callback func()) {
	if c.Forbidden != "" {
		h.Slots.Drop(c, pool.Forbidden, c.Forbidden)
		return
	}
	h.Names.lookup(c.UID, func(named, sure bool) {
		if sure && !named {
			h.Slots.Drop(c, pool.Forbidden, "its uid belongs to no user")
			return
		}
		callback()
	})
}

// peerOf returns the peer's identity, as the kernel reports it.
func peerOf(c ipc.Connection) security.Identity {
	return security.Identity{UID: c.UID, GID: c.GID}
}

// A perConnection is a Dispatcher that starts a worker for each connection. A
// client that compromises its worker can harm no other connection.
type perConnection struct{ onDemand }

func (h *perConnection) Dispatch(c *pool.Connection) {
	if !h.Switches.BecomeUser {
		h.serve(c, h.Worker)
		return
	}
	h.identify(c, func() { h.serve(c, peerOf(c.Connection)) })
}

// serve starts a worker for c.
func (h *perConnection) serve(c *pool.Connection, id security.Identity) {
	p := h.newPool(id)
	p.SingleUse = true
	h.Start(p, func(error) {})
	p.Submit(c)
}

func (h *perConnection) Stop() {}
