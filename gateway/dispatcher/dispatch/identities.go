package dispatch

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/security"
)

// An identities is a Dispatcher with a pool for each pair of uid and gid that
// the kernel reports. Each pool has one worker. The number of pools is limited,
// so a connection may have to wait for a pool. In this case, the least recently
// used pool without connections is retired. If every pool has connections, some
// workers are asked to close theirs. A free place goes to the waiting user who
// has the fewest pools.
type identities struct {
	onDemand
	pools   map[identity]*pool.Pool
	leaving map[*pool.Pool]retirement // retired pools whose worker still runs
	// A place is a pool of a user; the items are the identities that wait for one.
	// Pools of a replaced configuration don't count for their users, who would
	// otherwise be locked out after a reload while old workers finish long answers.
	places       *semaphore.Queue[uint32, identity]
	waiting      map[identity]*pool.Queue // connections of these identities
	excess       int                      // places that pools of replaced configurations take; see updateExcess
	waitingSince time.Time                // when the first of the waiting identities began to wait
	stopped      bool
	timer        *time.Timer // of the next call of tend
	tendDue      bool        // tend is scheduled to run as soon as possible
}

// An identity contains the ids that a worker runs as. It includes the gid,
// because with MUNGE a job gets the gid of the worker that submits it.
type identity struct{ uid, gid uint32 }

func newIdentities(demand onDemand) *identities {
	h := &identities{onDemand: demand, pools: map[identity]*pool.Pool{}, leaving: map[*pool.Pool]retirement{}, waiting: map[identity]*pool.Queue{}}
	h.places = semaphore.NewQueue[uint32, identity](limit.Identities.Of(h.Identities), nil)
	// This process has buffers for each worker, and there may be many workers.
	// More frequent garbage collection limits the memory that they use. With a
	// shared pool, Go's default is better: there are few buffers, and frequent
	// collections would slow down the copying of log lines.
	debug.SetGCPercent(50)
	return h
}

// Dispatch gives c to the worker with the client's uid and gid.
func (h *identities) Dispatch(c *pool.Connection) {
	h.identify(c, func() {
		if h.stopped {
			h.Slots.Drop(c, pool.Unavailable, pool.Stopping)
			return
		}
		if p := h.pools[identity{c.UID, c.GID}]; p != nil {
			p.Submit(c)
			return
		}
		h.park(c)
		if h.startNext(); len(h.waiting) > 0 {
			h.tendSoon()
		}
	})
}

// park lets c wait for a pool.
func (h *identities) park(c *pool.Connection) {
	id := identity{c.UID, c.GID}
	queue := h.waiting[id]
	if queue == nil {
		queue = new(pool.Queue)
		h.waiting[id] = queue
		h.places.Push(id.uid, id)
	}
	queue.Add(h.Loop, c, h.WaitLimit, func(c *pool.Connection) {
		if len(*queue) == 0 {
			delete(h.waiting, id)
			h.places.Remove(id.uid, id)
		}
		h.Slots.Drop(c, pool.Unavailable, "the limit of users served concurrently is reached")
	})
}

// startNext starts as many pools for waiting identities as the limits permit.
func (h *identities) startNext() {
	for id, ok := h.places.Next(); ok; id, ok = h.places.Next() {
		p := h.newPool(security.Identity{UID: id.uid, GID: id.gid})
		p.OnIdle, p.OnEnd = h.tendSoon, func() { h.forget(p); h.tendSoon() }
		h.Start(p, func(error) {})
		h.pools[id] = p
		queue := h.waiting[id]
		delete(h.waiting, id)
		for _, c := range queue.TakeAll() {
			p.Submit(c)
		}
	}
}

// reason is the reason why a pool was retired.
type reason int

const (
	reasonIdle     reason = iota // the pool had no connections
	reasonReplaced               // the configuration was replaced
)

// retirement records why and when a pool was retired.
type retirement struct {
	reason reason
	at     time.Time
}

// updateExcess takes as many places as there are pools of replaced
// configurations beyond Options.Identities. These pools may need hours for their
// last answers, so up to Options.Identities of them take no place. updateExcess
// must be called whenever the number of these pools has changed.
func (h *identities) updateExcess() {
	n := 0
	for _, retired := range h.leaving {
		if retired.reason == reasonReplaced {
			n++
		}
	}
	before := h.excess
	h.excess = max(0, n-h.Identities)
	h.places.AddFree(before - h.excess)
}

// forget forgets a retired pool whose worker has exited.
func (h *identities) forget(p *pool.Pool) {
	retired, ok := h.leaving[p]
	if !ok {
		return // the gateway stops
	}
	delete(h.leaving, p)
	if retired.reason != reasonReplaced {
		h.places.Hold(p.Identity().UID, -1)
	}
	h.updateExcess()
}

// tendSoon schedules a call of tend as soon as possible.
func (h *identities) tendSoon() {
	if !h.tendDue {
		h.tendDue = true
		h.tendIn(0)
	}
}

// tendIn schedules the next call of tend after the duration d. It cancels any
// call that was scheduled before.
func (h *identities) tendIn(d time.Duration) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.timer = h.After(d, h.tend)
}

// tend retires pools that have been idle for long enough, and makes space for
// waiting connections.
func (h *identities) tend() {
	h.tendDue = false
	if h.stopped {
		return
	}
	now := time.Now()
	next := h.retireIdle(now)
	if h.startNext(); len(h.waiting) == 0 {
		h.waitingSince = time.Time{}
	} else {
		h.makePlace(now)
		next = admission.TickInterval
	}
	h.tendIn(next)
}

// retireIdle retires pools that have had no connection for Options.IdleLimit.
// It returns the time until the next pool can be retired.
func (h *identities) retireIdle(now time.Time) time.Duration {
	next := h.IdleLimit
	for id, p := range h.pools {
		if !p.IsIdle() {
			continue
		}
		if remaining := p.LastUsed().Add(h.IdleLimit).Sub(now); remaining > 0 {
			next = min(next, remaining)
		} else {
			h.retire(id, p, reasonIdle)
		}
	}
	return next
}

// retire moves a pool from h.pools to h.leaving. The pool stays there until its
// worker has exited.
func (h *identities) retire(id identity, p *pool.Pool, r reason) {
	delete(h.pools, id)
	h.leaving[p] = retirement{r, time.Now()}
	if r == reasonReplaced {
		h.places.Hold(id.uid, -1)
		h.updateExcess()
	}
	for _, c := range p.Retire() {
		h.park(c)
	}
}

// makePlace ends pools, so that waiting connections can get new pools. It first
// retires pools without connections, the least recently used first. If there
// are too few of these, it asks workers that have only idle connections to
// close them. Once connections have waited for TickInterval, it also asks
// workers that are sending answers. For a user who has the maximum number of
// workers, it ends only pools of that user.
func (h *identities) makePlace(now time.Time) {
	if h.waitingSince.IsZero() {
		h.waitingSince = now
	}
	d := h.demand()
	h.expectLeaving(d, now)
	list := slices.SortedFunc(maps.Values(h.pools), func(a, b *pool.Pool) int { return a.LastUsed().Compare(b.LastUsed()) })
	for _, p := range list {
		if p.IsIdle() && d.needs(p.Identity().UID) {
			h.retire(identity{p.Identity().UID, p.Identity().GID}, p, reasonIdle)
			d.subtract(p.Identity().UID)
		}
	}
	list = slices.DeleteFunc(list, (*pool.Pool).IsLeaving)
	h.reclaimPools(list, d, false, now)
	if now.Sub(h.waitingSince) >= admission.TickInterval {
		h.reclaimPools(list, d, true, now)
	}
}

// reclaimPools asks pools in list to close their connections, one pool after
// another, until enough pools are about to end to meet the demand d. If busy is
// false, it asks only pools whose connections are all idle.
func (h *identities) reclaimPools(list []*pool.Pool, d *demand, busy bool, now time.Time) {
	for _, p := range list {
		if !p.IsIdle() && d.needs(p.Identity().UID) && h.reclaimPool(p, busy, now) {
			d.subtract(p.Identity().UID)
		}
	}
}

// A demand counts the pools that must end so that every waiting connection can
// have a pool.
type demand struct {
	anyUser int            // pools of any user
	perUser map[uint32]int // pools of each user who has the maximum number of workers
}

func (h *identities) demand() *demand {
	d := &demand{perUser: map[uint32]int{}}
	for id := range h.waiting {
		if h.places.AtShare(id.uid) {
			d.perUser[id.uid]++
		} else {
			d.anyUser++
		}
	}
	return d
}

// needs reports whether a waiting connection could get a pool if a pool of the
// given user ended.
func (d *demand) needs(uid uint32) bool { return d.anyUser > 0 || d.perUser[uid] > 0 }

// subtract records that a pool of the given user is about to end.
func (d *demand) subtract(uid uint32) {
	if d.perUser[uid] > 0 {
		d.perUser[uid]--
	} else {
		d.anyUser--
	}
}

// expectLeaving subtracts from d the retired pools that are about to end. It
// asks retired pools that have only idle connections to close these
// connections. It also kills workers that do not exit in time.
func (h *identities) expectLeaving(d *demand, now time.Time) {
	for p, retired := range h.leaving {
		if retired.reason == reasonReplaced && h.excess == 0 {
			continue // the end of this pool makes no place for a waiting connection
		}
		idle := p.IsIdle()
		if idle && now.Sub(retired.at) > process.ExitGrace {
			p.EndIdle(process.ExitGrace) // otherwise a worker that does not exit would keep its place
			continue
		}
		if idle || h.reclaimPool(p, false, now) {
			d.subtract(p.Identity().UID)
		}
	}
}

// reclaimPool asks p to close all its connections. If busy is false, it does so
// only if all of them are idle. It reports whether p is about to end.
func (h *identities) reclaimPool(p *pool.Pool, busy bool, now time.Time) bool {
	closing, stubborn := h.Slots.ReclaimAll(now, p.Held(), busy)
	if stubborn {
		p.Kill("did not close an idle connection when asked to")
	}
	return closing || stubborn
}

// Renew calls onDemand.Renew. If that succeeds, Renew retires all pools of the
// old configuration. New workers start when connections need them.
func (h *identities) Renew(g *pool.Generation, done func(error)) {
	h.onDemand.Renew(g, func(err error) {
		if err == nil {
			for id, p := range h.pools {
				h.retire(id, p, reasonReplaced)
			}
			h.tendSoon()
		}
		done(err)
	})
}

// Stop turns away connections that wait for a pool.
func (h *identities) Stop() {
	h.stopped = true
	for _, queue := range h.waiting {
		for _, c := range queue.TakeAll() {
			h.Slots.Drop(c, pool.Unavailable, pool.Stopping)
		}
	}
	clear(h.waiting)
}
