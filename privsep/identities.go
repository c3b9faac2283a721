package privsep

import (
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"schedrestd/privsep/admission"
	"schedrestd/privsep/spawn"
)

// identities is a pool of one worker for each (uid, gid) that the kernel vouches for. There is a
// bound on how many there are at one time, and so a queue of those that wait for room: who
// was used least recently goes first, once he has nothing open, and is asked to close
// what he has when everybody has something.
type identities struct {
	means
	who    service
	config Config

	mu      sync.Mutex // guards what follows
	gen     *generation
	list    map[identity]*pool
	leaving map[*pool]leave // retired, with a process that is there still
	waiting []*connection   // for room
	since   time.Time       // since when somebody waits
	stopped bool
	wake    chan struct{}
}

// identity is whom a worker is for. The gid belongs to it: under munge it becomes a job's group.
type identity struct{ uid, gid uint32 }

func newIdentities(c Config, who service, m means) *identities {
	h := &identities{means: m, who: who, config: c, list: map[identity]*pool{}, leaving: map[*pool]leave{}, wake: make(chan struct{}, 1)}
	// Each worker has buffers here. The parent stays small for so many, at the cost of looking for garbage
	// more often; one pool for all would pay that with every line of its log.
	debug.SetGCPercent(50)
	go h.tend()
	return h
}

// take gives c to the worker of its peer, and starts that when there is none.
func (h *identities) take(c *connection) {
	h.vouch(c, h.who, h.config, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.admit(c)
	})
}

// admit serves c, now or when there is room; h.mu is held.
func (h *identities) admit(c *connection) {
	if h.stopped {
		h.slots.drop(c, statusUnavailable, stopping)
		return
	}
	if !h.serve(c) {
		h.waiting = append(h.waiting, c)
		c.late = time.AfterFunc(h.config.HandLimit, func() { h.expire(c) })
		h.poke()
	}
}

// serve gives c to its pool, which is there or has room; h.mu is held, so that none that is on
// the list is retired.
func (h *identities) serve(c *connection) bool {
	id := identity{c.UID, c.GID}
	p := h.list[id]
	if p == nil {
		if !h.hasRoom(c) {
			return false
		}
		p = newPool(h.means, h.gen, peerOf(c.Connection))
		p.config.Workers, p.lazy, p.rested = 1, true, h.poke
		if err := h.pools.start(p); err != nil {
			h.slots.drop(c, statusUnavailable, err.Error())
			return true
		}
		h.list[id] = p
	}
	return p.take(c)
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

// ownShare is which part of the rooms one user can have, who may have many groups.
const ownShare = 4

// hasRoom tells whether c can be served now; h.mu is held.
func (h *identities) hasRoom(c *connection) bool {
	return h.list[identity{c.UID, c.GID}] != nil || len(h.list)+h.lingering() < h.config.Identities && !h.hasMany(c.UID)
}

// hasMany tells whether that user has as many rooms as one may; h.mu is held. A worker that was replaced is none of his: who waits
// for a long answer when the configuration is reread is not kept out by that.
func (h *identities) hasMany(uid uint32) bool {
	n := 0
	for id := range h.list {
		if id.uid == uid {
			n++
		}
	}
	for p, one := range h.leaving {
		if p.who.UID == uid && one.why != replaced {
			n++
		}
	}
	return n >= max(1, h.config.Identities/ownShare)
}

// lingering is how many of those that leave take room. One that was replaced takes none, since it may have an
// answer to end that takes hours, unless so many have been that they would be without bound.
// h.mu is held.
func (h *identities) lingering() int {
	return len(h.leaving) - min(h.replaced(), h.config.Identities)
}

// replaced is how many that leave were replaced; h.mu is held.
func (h *identities) replaced() (n int) {
	for _, one := range h.leaving {
		if one.why == replaced {
			n++
		}
	}
	return n
}

// expire tells c that there was no room for it in its time.
func (h *identities) expire(c *connection) {
	h.mu.Lock()
	i := slices.Index(h.waiting, c)
	if i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	}
	h.mu.Unlock()
	if i >= 0 {
		h.slots.drop(c, statusUnavailable, "as many users as may be are served already")
	}
}

// poke has tend look again.
func (h *identities) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// tend retires who rested long enough, and makes room for who waits.
func (h *identities) tend() {
	timer := time.NewTimer(0)
	for {
		select {
		case <-h.wake:
		case <-timer.C:
		}
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return
		}
		next := h.retireRested(time.Now())
		if h.admitWaiting(); len(h.waiting) == 0 {
			h.since = time.Time{}
		} else {
			h.makeRoom(time.Now())
			next = admission.TickInterval
		}
		h.mu.Unlock()
		timer.Reset(next)
	}
}

// retireRested retires who has had no connection for Config.Rest, and tells when to look again:
// nobody's time is over before that. h.mu is held.
func (h *identities) retireRested(now time.Time) time.Duration {
	next := h.config.Rest
	for id, p := range h.list {
		idle, since := p.isIdle()
		if !idle {
			continue
		}
		if left := since.Add(h.config.Rest).Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		h.retire(id, p, rested)
	}
	return next
}

// retire takes a pool off the list; it is among those that leave until its process is gone. h.mu is held.
func (h *identities) retire(id identity, p *pool, why reason) {
	delete(h.list, id)
	h.leaving[p] = leave{why, time.Now()}
	h.waiting = append(h.waiting, h.requeue(p.retire())...)
	go func() {
		<-p.gone
		h.mu.Lock()
		delete(h.leaving, p)
		h.mu.Unlock()
		h.poke()
	}()
}

// requeue has connections wait for room that waited for a worker; h.mu is held.
func (h *identities) requeue(list []*connection) []*connection {
	for _, c := range list {
		c.late = time.AfterFunc(h.config.HandLimit, func() { h.expire(c) })
	}
	return list
}

// admitWaiting serves those that wait as far as there is room; h.mu is held.
func (h *identities) admitWaiting() {
	h.waiting = slices.DeleteFunc(h.waiting, func(c *connection) bool {
		if !h.hasRoom(c) {
			return false
		}
		c.late.Stop() // its pool gives it another one
		return h.serve(c)
	})
}

// makeRoom retires as many as are waited for, least recently used first, of those that have no
// connection. If there are too few, those whose connections all rest are asked to close them, and after a while those that
// are being answered, to come to an end. For who has all the rooms that one user may have, there is only one of
// his own. h.mu is held.
func (h *identities) makeRoom(now time.Time) {
	if h.since.IsZero() {
		h.since = now
	}
	hurried := now.Sub(h.since) >= admission.TickInterval
	wanted, own := map[identity]bool{}, map[uint32]int{}
	for _, c := range h.waiting {
		id := identity{c.UID, c.GID}
		if !wanted[id] && h.hasMany(c.UID) {
			own[c.UID]++
		}
		wanted[id] = true
	}
	missing := len(wanted)
	for _, n := range own {
		missing -= n
	}
	need := func(uid uint32) bool { return missing > 0 || own[uid] > 0 }
	comes := func(uid uint32) {
		if own[uid] > 0 {
			own[uid]--
		} else {
			missing--
		}
	}
	crowded := h.replaced() > h.config.Identities
	for p, one := range h.leaving {
		if one.why == replaced && !crowded {
			continue // its end makes no room
		}
		idle, _ := p.isIdle()
		if idle && now.Sub(one.since) > spawn.LastWords {
			p.endIdle(spawn.LastWords) // it need not go by itself, and counts for no room until it is gone
			continue
		}
		if idle || h.givesWay(p, false, now) {
			comes(p.who.UID)
		}
	}
	type rest struct {
		id    identity
		p     *pool
		idle  bool
		since time.Time
	}
	var list []rest
	for id, p := range h.list {
		idle, since := p.isIdle()
		list = append(list, rest{id, p, idle, since})
	}
	slices.SortFunc(list, func(a, b rest) int { return a.since.Compare(b.since) })
	for _, one := range list {
		if one.idle && need(one.id.uid) {
			h.retire(one.id, one.p, rested)
			comes(one.id.uid)
		}
	}
	for _, busy := range []bool{false, true} {
		for _, one := range list {
			if (!busy || hurried) && !one.idle && need(one.id.uid) && h.givesWay(one.p, busy, now) {
				comes(one.id.uid)
			}
		}
	}
}

// givesWay asks all connections of p to give way, if all rest, or busy is set, and tells whether its room is about to be free. h.mu is held.
func (h *identities) givesWay(p *pool, busy bool, now time.Time) bool {
	coming, stubborn := h.slots.urge(p.connections(), busy, now)
	if stubborn {
		p.end("it was asked to close a connection that rests, and has not")
	}
	return coming || stubborn
}

// renew retires the workers of the old configuration. Those of the new one start with the next
// connections; that they can is tried first, as nobody's, whom no user can harm.
func (h *identities) renew(g *generation) error {
	if err := h.standBy(g, h.who); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gen != nil {
		defer h.gen.release()
	}
	h.gen = g
	for id, p := range h.list {
		h.retire(id, p, replaced)
	}
	h.poke()
	return nil
}

// stop turns away who waits for room.
func (h *identities) stop() {
	h.mu.Lock()
	h.stopped = true
	waiting := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	h.poke()
	for _, c := range waiting {
		c.late.Stop()
		h.slots.drop(c, statusUnavailable, stopping)
	}
}
