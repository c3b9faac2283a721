// Package dispatch accepts connections, and finds the pool of workers for each
// connection: the shared pool, a pool for this connection alone, or the pool of
// the client's user.
//
// Its decisions depend only on what the parent and the user database report
// about the clients. It reads no data from connections. The entry points are
// New and Acceptor.
package dispatch

import (
	"log/slog"
	"time"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security"
)

type Options struct {
	Switches   ipc.Switches
	Admission  work.Admission
	Worker     security.Identity // without become_user: identity of the workers that serve clients
	Standby    security.Identity // identity of workers that serve no user
	Identities int               // become_user: maximum number of identities that have workers
	IdleLimit  time.Duration     // become_user: a worker that has had no connection for this long is retired
	WaitLimit  time.Duration     // how long a connection may wait for a worker
	// OwnerOf returns the user who owns a subordinate uid. For any other uid,
	// it returns the uid itself.
	OwnerOf func(uid uint32) uint32
	Names   *Names
	Log     *slog.Logger
}

// A Dispatcher finds a worker for each connection. There are three
// implementations. They have one pool for all connections, a worker for each
// connection, or a worker for each identity. All methods are called in the loop
// (pool.Loop).
type Dispatcher interface {
	// Dispatch gives c to a worker, at once or later. c must already have a
	// slot.
	Dispatch(c *pool.Connection)
	// Renew starts workers of g. If the new workers can serve, they replace
	// those of the previous generation. Otherwise the previous workers stay. In
	// the end, Renew calls done with nil or the error.
	Renew(g *pool.Generation, done func(error))
	// Stop turns away connections that wait for a pool.
	Stop()
}

// New returns the Dispatcher that the options require. If all clients share
// workers, the Dispatcher calls rotate when these workers have served enough
// connections.
func New(o Options, set *pool.Set, rotate func()) Dispatcher {
	demand := onDemand{Set: set, Options: o}
	switch {
	case o.Switches.WorkerPerConnection:
		return &perConnection{demand}
	case o.Switches.BecomeUser:
		return newIdentities(demand)
	}
	return &shared{Set: set, identity: o.Worker, rotate: rotate}
}

// shared is a Dispatcher with one pool for all connections.
type shared struct {
	*pool.Set
	identity security.Identity
	rotate   func()
	current  *pool.Pool
}

func (h *shared) Dispatch(c *pool.Connection) { h.current.Submit(c) }

func (h *shared) Renew(g *pool.Generation, done func(error)) {
	p := h.NewPool(g, h.identity)
	p.OnRotate = h.rotate
	h.Start(p, func(err error) {
		if err == nil {
			h.replace(p)
		}
		done(err)
	})
}

// replace makes p the current pool, and retires the previous one.
func (h *shared) replace(p *pool.Pool) {
	old := h.current
	h.current, h.Slots.Answer = p, p.Refuse
	if old != nil {
		for _, c := range old.Retire() {
			p.Submit(c)
		}
	}
}

func (h *shared) Stop() {}
