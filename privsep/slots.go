package privsep

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/ipc"
	"schedrestd/penalty"
	"schedrestd/privsep/admission"
	"schedrestd/privsep/relay"
	"schedrestd/rate"
	"schedrestd/rights"
)

// slots carries out what package admission decides about the connections of all pools.
type slots struct {
	log    *slog.Logger
	admit  func(*connection) // serves one that waited, and has a slot now
	silent func()            // looks for workers that do not answer; see pool.excuseSilent
	rules  ipc.Admission

	unserved *tally // connections that were closed so
	blocked  *tally // sources
	counts   *counters
	refuser  atomic.Pointer[pool] // has workers answer those that are turned away; nil: none does
	quotas   relay.Quotas         // of what workers log
	number   atomic.Uint64        // of the last connection

	mu      sync.Mutex // guards what follows; the last lock that is taken
	state   *admission.State
	answers *rate.Bucket  // to connections that are turned away
	ticking bool          // tick is on its way
	next    []*connection // that have been given a slot and are to be admitted, in this order
}

// mostWaiting bounds the connections that are accepted and wait, as net.core.somaxconn
// bounds those in the kernel's queue. They are accepted because the kernel does not say
// whose connections are in its queue, and one client could fill that.
const mostWaiting = 4096

func newSlots(c Config) *slots {
	a := c.Setup.Admission
	return &slots{log: c.Log, rules: a, answers: rate.New(answerBurst, answerRate, time.Now()), silent: func() {}, unserved: newTally(), blocked: newTally(), counts: new(counters),
		state: admission.New(admission.Config{Slots: c.Connections, PerSource: c.PerSource, Waiting: c.waiting(), Patience: c.HandLimit,
			Penalties: penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{
				penalty.Auth: a.Auth, penalty.Malformed: a.Malformed, penalty.Crash: a.Crash}}})}
}

// enter gives c a slot, has it wait, or turns it away. It reports whether c has a slot.
func (s *slots) enter(c *connection) bool {
	c.Ref = c
	s.mu.Lock()
	s.state.Arrived(time.Now(), &c.Conn)
	list := s.state.Decisions()
	s.watch()
	s.mu.Unlock()
	if len(list) == 1 && list[0].Do == admission.Admit {
		return true
	}
	s.carryOut(list)
	return false
}

// happened reports an event to the state, and carries out what that decides.
// Connections are admitted by another goroutine, because the caller may hold the lock
// of its pool.
func (s *slots) happened(event func(*admission.State)) {
	s.mu.Lock()
	idle := len(s.next) == 0
	event(s.state)
	list := s.state.Decisions()
	for _, d := range list {
		if d.Do == admission.Admit {
			s.next = append(s.next, d.Conn.Ref.(*connection))
		}
	}
	if idle && len(s.next) > 0 {
		go s.admitNext()
	}
	s.mu.Unlock()
	s.carryOut(list)
}

func (s *slots) admitNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.next) > 0 {
		c := s.next[0]
		s.mu.Unlock()
		s.admit(c)
		s.mu.Lock()
		s.next = s.next[1:]
	}
}

// carryOut carries out decisions other than those to admit. A worker that does not read
// its channel is not told: others are asked in the next round, and its slots go to
// others when it stays silent.
func (s *slots) carryOut(list []admission.Decision) {
	for _, d := range list {
		c := d.Conn.Ref.(*connection)
		switch d.Do {
		case admission.Refuse:
			if d.Why == admission.Blocked {
				s.turnAway(c, statusTooMany, max(time.Second, d.Wait), d.Why.String())
			} else {
				s.turnAway(c, statusUnavailable, comeBack, d.Why.String())
			}
		case admission.Yield:
			_ = c.worker.Channel.TrySend(&ipc.Yield{ID: c.ID})
		case admission.Pause:
			_ = c.worker.Channel.TrySend(&ipc.Pause{ID: c.ID, Seconds: seconds(d.Wait)})
		case admission.Report:
			if total, ok := s.blocked.add(); ok {
				s.log.Warn("source blocked", "source", c.Source.String(), "listener", c.Listener,
					"last", d.Offence.String(), "pause", d.Wait, "pauses_so_far", total, "hint", c.exemption())
			}
		}
	}
}

// watch has tick called while connections wait; s.mu is held.
func (s *slots) watch() {
	if s.state.Waiting() && !s.ticking {
		s.ticking = true
		time.AfterFunc(admission.TickInterval, s.tick)
	}
}

func (s *slots) tick() {
	s.silent()
	s.happened(func(a *admission.State) {
		a.Tick(time.Now())
		s.ticking = false
		s.watch()
	})
}

// isFull reports whether the next connection makes others give way, as far as is known.
func (s *slots) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.IsFull()
}

// taken notes that a worker has c.
func (s *slots) taken(c *connection) { s.happened(func(a *admission.State) { a.Taken(&c.Conn) }) }

// end takes back what c holds.
func (s *slots) end(c *connection) { s.happened(func(a *admission.State) { a.Left(&c.Conn) }) }

// excuse gives the slots of silent workers' connections to others.
func (s *slots) excuse(list []*admission.Conn) {
	s.happened(func(a *admission.State) { a.Silent(list) })
}

// report notes how far c has come. It reports false when that was known.
func (s *slots) report(c *connection, stage ipc.Stage) (changed bool) {
	s.happened(func(a *admission.State) { changed = a.Progress(&c.Conn, stage) })
	return changed
}

// urge asks a worker's connections to give way, because its room is needed.
func (s *slots) urge(list []*admission.Conn, busy bool, now time.Time) (coming, stubborn bool) {
	s.happened(func(a *admission.State) { coming, stubborn = a.Urge(now, list, busy) })
	return coming, stubborn
}

// offend notes what c's client did.
func (s *slots) offend(c *connection, kind penalty.Kind, credential uint64) {
	s.happened(func(a *admission.State) { a.Offence(time.Now(), &c.Conn, kind, credential) })
}

// crashed notes that a worker crashed that had taken the connections in list.
func (s *slots) crashed(list []*admission.Conn) {
	s.happened(func(a *admission.State) { a.Crash(time.Now(), list) })
}

// close turns away the connections that wait, and those that come.
func (s *slots) close() { s.happened((*admission.State).Close) }

// stopping is why no connection is served any more.
var stopping = admission.ShutDown.String()

// drop turns away a connection that nobody serves, and frees its slot.
func (s *slots) drop(c *connection, status int, why string) {
	after := comeBack
	if status == statusForbidden {
		after = 0
	}
	s.turnAway(c, status, after, why)
	s.end(c)
}

// The statuses with which connections are turned away. 0 stands for none.
const (
	statusForbidden   = 403 // its peer may have no worker
	statusTooMany     = 429 // its source is blocked
	statusUnavailable = 503 // no worker is available for it
)

const comeBack = 5 * time.Second // Retry-After of a 503

// How many connections that are turned away are answered: at once, and per second. More
// are closed without a word, because each costs a worker's time.
const (
	answerBurst = 256
	answerRate  = 128
)

// turnAway closes a connection that has no slot, and logs why. A worker answers it with
// status and Retry-After, if one can at once; this process writes no HTTP. A TLS client
// gets no answer: a handshake would cost more than the connection is worth.
func (s *slots) turnAway(c *connection, status int, after time.Duration, why string) {
	s.counts.turnedAway(status)
	s.mu.Lock()
	answer := status != 0 && !c.TLS && s.answers.Take(time.Now(), 1)
	s.mu.Unlock()
	if p := s.refuser.Load(); answer && p != nil {
		p.refuse(c, status, after)
	}
	rights.Close(c.fd)
	if total, ok := s.unserved.add(); ok {
		s.log.Warn("connection is closed unserved", "listener", c.Listener, "peer", c.peer(), "because", why, "unserved_so_far", total)
	}
}

// seconds is d, rounded up.
func seconds(d time.Duration) uint16 {
	return uint16(min((d+time.Second-1)/time.Second, math.MaxUint16))
}
