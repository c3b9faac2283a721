package dispatch

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"schedrestd/privsep/admission"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/spawn"
)

// identities is a pool of one worker for each (uid, gid) that the kernel vouches for. There is a
// bound on how many there are at one time, and so a queue of connections that wait for room: the one that
// was used least recently goes first, once it has no connection, and its worker is asked to close
// connections when every pool has some.
type identities struct {
	onDemand
	list    map[identity]*pool.Pool
	leaving map[*pool.Pool]leave // retired, with a process that is still there
	waiting pool.Queue           // for room
	since   time.Time            // since when connections wait
	stopped bool
	timer   *time.Timer // of the next call of tend
	poked   bool        // which comes at once
}

// identity is what a worker is for. The gid belongs to it: under munge it becomes a job's group.
type identity struct{ uid, gid uint32 }

func newIdentities(demand onDemand) *identities {
	h := &identities{onDemand: demand, list: map[identity]*pool.Pool{}, leaving: map[*pool.Pool]leave{}}
	// Each worker has buffers here. The parent stays small for so many, at the cost of looking for garbage
	// more often; one pool for all would pay that with every line of its log.
	debug.SetGCPercent(50)
	return h
}

// Take gives c to the worker of its peer, and starts that when there is none.
func (h *identities) Take(c *pool.Connection) {
	h.identify(c, func() {
		switch {
		case h.stopped:
			h.Slots.Drop(c, pool.Unavailable, pool.Stopping)
		case h.hasRoom(c):
			h.serve(c)
		default:
			h.park(c)
			h.poke()
		}
	})
}

// park has c wait for room.
func (h *identities) park(c *pool.Connection) {
	h.waiting.Add(h.Loop, c, h.HandLimit, func(c *pool.Connection) {
		h.Slots.Drop(c, pool.Unavailable, "as many users as may be are served already")
	})
}

// serve gives c to its pool, which is there or has room.
func (h *identities) serve(c *pool.Connection) {
	id := identity{c.UID, c.GID}
	p := h.list[id]
	if p == nil {
		p = h.newPool(peerOf(c.Connection))
		p.Rested, p.Ended = h.poke, func() { delete(h.leaving, p); h.poke() }
		h.Start(p, func(error) {})
		h.list[id] = p
	}
	p.Take(c)
}

// reason is why a pool was retired.
type reason int

const (
	rested   reason = iota // it was at rest, or others needed its room
	replaced               // the configuration is another one
)

// leave is why and when a pool was retired.
type leave struct {
	why   reason
	since time.Time
}

// ownShare is which part of the room one user can have, who may have many groups.
const ownShare = 4

// hasRoom reports whether c can be served now.
func (h *identities) hasRoom(c *pool.Connection) bool {
	return h.list[identity{c.UID, c.GID}] != nil || len(h.list)+h.lingering() < h.Identities && !h.hasMany(c.UID)
}

// hasMany reports whether that user has as many workers as one may. One that was replaced does not count: a user who waits
// for a long answer when the configuration is reread is not kept out by that.
func (h *identities) hasMany(uid uint32) bool {
	n := 0
	for id := range h.list {
		if id.uid == uid {
			n++
		}
	}
	for p, one := range h.leaving {
		if p.Who().UID == uid && one.why != replaced {
			n++
		}
	}
	return n >= max(1, h.Identities/ownShare)
}

// lingering returns how many of those that leave take room. One that was replaced takes none, since it may have an
// answer to end that takes hours, unless so many were replaced that there would be no bound.
func (h *identities) lingering() int {
	return len(h.leaving) - min(h.replaced(), h.Identities)
}

// replaced returns how many that leave were replaced.
func (h *identities) replaced() (n int) {
	for _, one := range h.leaving {
		if one.why == replaced {
			n++
		}
	}
	return n
}

// poke has tend called soon.
func (h *identities) poke() {
	if !h.poked {
		h.poked = true
		h.tendIn(0)
	}
}

// tendIn has tend called when d has passed, and not before.
func (h *identities) tendIn(d time.Duration) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.timer = h.After(d, h.tend)
}

// tend retires pools that rested long enough, and makes room for connections that wait.
func (h *identities) tend() {
	h.poked = false
	if h.stopped {
		return
	}
	now := time.Now()
	next := h.retireRested(now)
	if h.admitWaiting(); len(h.waiting) == 0 {
		h.since = time.Time{}
	} else {
		h.makeRoom(now)
		next = admission.TickInterval
	}
	h.tendIn(next)
}

// retireRested retires pools that have had no connection for Config.Rest, and returns when to look again:
// no other's time is over before that.
func (h *identities) retireRested(now time.Time) time.Duration {
	next := h.Rest
	for id, p := range h.list {
		if !p.IsIdle() {
			continue
		}
		if left := p.Used().Add(h.Rest).Sub(now); left > 0 {
			next = min(next, left)
		} else {
			h.retire(id, p, rested)
		}
	}
	return next
}

// retire takes a pool off the list; it is among those that leave until its process is gone.
func (h *identities) retire(id identity, p *pool.Pool, why reason) {
	delete(h.list, id)
	h.leaving[p] = leave{why, time.Now()}
	for _, c := range p.Retire() {
		h.park(c)
	}
}

// admitWaiting serves those that wait as far as there is room.
func (h *identities) admitWaiting() {
	h.waiting.TakeAny(func(c *pool.Connection) bool {
		has := h.hasRoom(c)
		if has {
			h.serve(c)
		}
		return has
	})
}

// makeRoom retires as many pools as connections wait for, least recently used first, of those that have no
// connection. If there are too few, those whose connections all rest are asked to close them, and after a while those that
// are being answered, to come to an end. A user who has as many workers as one user may have gets room only from
// their own.
func (h *identities) makeRoom(now time.Time) {
	if h.since.IsZero() {
		h.since = now
	}
	d := h.demand()
	h.expectLeaving(d, now)
	list := slices.SortedFunc(maps.Values(h.list), func(a, b *pool.Pool) int { return a.Used().Compare(b.Used()) })
	for _, p := range list {
		if p.IsIdle() && d.needs(p.Who().UID) {
			h.retire(identity{p.Who().UID, p.Who().GID}, p, rested)
			d.comes(p.Who().UID)
		}
	}
	list = slices.DeleteFunc(list, (*pool.Pool).IsEnding)
	h.urge(list, d, false, now)
	if now.Sub(h.since) >= admission.TickInterval {
		h.urge(list, d, true, now)
	}
}

// urge asks pools of list to give way, as far as d needs them.
func (h *identities) urge(list []*pool.Pool, d *demand, busy bool, now time.Time) {
	for _, p := range list {
		if !p.IsIdle() && d.needs(p.Who().UID) && h.givesWay(p, busy, now) {
			d.comes(p.Who().UID)
		}
	}
}

// demand is how many pools have to end for connections that wait.
type demand struct {
	any int            // of whichever user
	own map[uint32]int // of that user, who has as many as one may
}

func (h *identities) demand() *demand {
	d, wanted := &demand{own: map[uint32]int{}}, map[identity]bool{}
	for _, c := range h.waiting {
		id := identity{c.UID, c.GID}
		switch {
		case wanted[id]:
		case h.hasMany(c.UID):
			d.own[c.UID]++
		default:
			d.any++
		}
		wanted[id] = true
	}
	return d
}

// needs reports whether the end of a pool of that user helps.
func (d *demand) needs(uid uint32) bool { return d.any > 0 || d.own[uid] > 0 }

// comes notes that one of that user is about to end.
func (d *demand) comes(uid uint32) {
	if d.own[uid] > 0 {
		d.own[uid]--
	} else {
		d.any--
	}
}

// expectLeaving takes from d the pools that leave, and has them hurry.
func (h *identities) expectLeaving(d *demand, now time.Time) {
	crowded := h.replaced() > h.Identities
	for p, one := range h.leaving {
		if one.why == replaced && !crowded {
			continue // its end makes no room
		}
		idle := p.IsIdle()
		if idle && now.Sub(one.since) > spawn.LastWords {
			p.EndIdle(spawn.LastWords) // it need not go by itself, and counts for no room until it is gone
			continue
		}
		if idle || h.givesWay(p, false, now) {
			d.comes(p.Who().UID)
		}
	}
}

// givesWay asks all connections of p to give way, if all rest, or busy is set, and reports whether its room is about to be free.
func (h *identities) givesWay(p *pool.Pool, busy bool, now time.Time) bool {
	coming, stubborn := h.Slots.Urge(now, p.Held(), busy)
	if stubborn {
		p.End("it was asked to close a connection that rests, and has not")
	}
	return coming || stubborn
}

// Renew retires the workers of the old configuration as well. Those of the new one start with the next
// connections.
func (h *identities) Renew(g *pool.Generation, done func(error)) {
	h.onDemand.Renew(g, func(err error) {
		if err == nil {
			for id, p := range h.list {
				h.retire(id, p, replaced)
			}
			h.poke()
		}
		done(err)
	})
}

// Stop turns away connections that wait for room.
func (h *identities) Stop() {
	h.stopped = true
	for _, c := range h.waiting.All() {
		h.Slots.Drop(c, pool.Unavailable, pool.Stopping)
	}
}
