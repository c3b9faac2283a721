package pool

import (
	"log/slog"
	"math"
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/limit"
	"schedrestd/internal/penalty"
	"schedrestd/internal/rate"
	"schedrestd/internal/sockdiag"
	"schedrestd/ipc/work"
)

// A Slots carries out the decisions of package admission about the connections
// of all pools.
type Slots struct {
	*admission.State
	*Loop
	log         *slog.Logger
	Admit       func(*Connection)                                         // gives a worker a connection that has a slot
	Answer      func(c *Connection, status int, retryAfter time.Duration) // makes a worker answer a connection that is turned away
	kernel      *sockdiag.Socket                                          // for looking up connections; nil before SetKernel
	found       map[tcpKind]bool                                          // which TCP connections it finds
	checkSilent func()                                                    // reports workers that do not answer; see Pool.excuseSilent

	lines      *rate.Buckets[string] // limits log lines; see mayLog
	counts     counters
	totals     totals
	lastNumber uint64       // the last Connection.ID
	answers    *rate.Bucket // limits answers to connections that are turned away
	ticking    bool         // a call of tick is scheduled
}

type Options struct {
	Admission   work.Admission
	Connections int
	PerSource   int           // limit on the connections of one source; 0: none
	Waiting     int           // number of connections that may wait for a slot
	Watching    int           // number of connections that may wait for a change without a slot
	WaitLimit   time.Duration // how long a connection waits for other connections of its source to end
	Metrics     bool          // workers count for the exporter
	Log         *slog.Logger
}

// newSlots returns the Slots for these options. The Slots must be used only in
// the loop l.
func newSlots(o Options, l *Loop) *Slots {
	a := o.Admission
	s := &Slots{Loop: l, log: o.Log, found: map[tcpKind]bool{}, totals: newTotals(o.Metrics), answers: rate.New(limit.RefusalAnswers, time.Now()),
		lines:  rate.NewBuckets[string](limit.EventLines),
		Answer: func(*Connection, int, time.Duration) {}, checkSilent: func() {},
		State: admission.New(admission.Config{Slots: o.Connections, PerSource: o.PerSource, Waiting: o.Waiting, Watching: o.Watching, WaitLimit: o.WaitLimit,
			Penalties: penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{
				penalty.Auth: a.Auth, penalty.Malformed: a.Malformed, penalty.Crash: a.Crash}}})}
	l.afterEvent = s.applyDecisions
	return s
}

// SetKernel sets the netlink socket that is used to look up connections.
func (s *Slots) SetKernel(kernel *sockdiag.Socket) { s.kernel = kernel }

// applyDecisions carries out the decisions of package admission, and any new
// decisions that result, until none are left.
func (s *Slots) applyDecisions() {
	for list := s.Decisions(); len(list) > 0; list = s.Decisions() {
		for _, d := range list {
			s.carryOut(d, d.Conn.Ref.(*Connection))
		}
	}
	if s.Waiting() && !s.ticking {
		s.ticking = true
		s.After(admission.TickInterval, s.tick)
	}
}

func (s *Slots) tick() {
	s.ticking = false
	s.checkSilent()
	s.Tick(time.Now())
}

// carryOut carries out a decision about c. If the channel of c's worker is
// full, a message to that worker is dropped. If the message is a
// ReclaimConnection, package admission asks other connections at the next Tick.
// If the worker stays silent, other connections get its slots.
func (s *Slots) carryOut(d admission.Decision, c *Connection) {
	switch d.Action {
	case admission.Admit:
		s.Admit(c)
	case admission.Refuse:
		if d.Reason == admission.Blocked {
			s.turnAway(c, tooMany, max(time.Second, d.Wait), d.Reason.String())
		} else {
			s.turnAway(c, Unavailable, defaultRetryAfter, d.Reason.String())
		}
	case admission.Reclaim:
		_ = c.holder.TrySend(&work.ReclaimConnection{ID: c.ID})
	case admission.Pause:
		_ = c.holder.TrySend(&work.Pause{ID: c.ID, Seconds: seconds(d.Wait)})
	case admission.Report:
		if s.mayLog(blockedLines) {
			s.log.Warn("source blocked", "source", c.Source.String(), "listener", c.Listener,
				"last", d.Offence.String(), "pause", d.Wait, "blocks_so_far", s.Stats().Blocks, "hint", c.exemption())
		}
	}
}

// Arrive reports the new connection c to admission.
func (s *Slots) Arrive(c *Connection) {
	s.counts.accepted++
	c.Ref = c
	s.Arrived(time.Now(), &c.Conn)
}

// DropUnidentified turns away a connection whose peer the kernel can't
// identify.
func (s *Slots) DropUnidentified(c *Connection, reason error) {
	s.counts.accepted++
	s.turnAway(c, 0, 0, reason.Error())
}

// Stopping is the reason for turning away connections during shutdown.
var Stopping = admission.ShutDown.String()

// Drop turns away a connection that has a slot but gets no worker.
func (s *Slots) Drop(c *Connection, status int, reason string) {
	retryAfter := defaultRetryAfter
	if status == Forbidden {
		retryAfter = 0
	}
	s.turnAway(c, status, retryAfter, reason)
	s.Release(&c.Conn)
}

// The statuses of answers to connections that are turned away. 0 stands for no
// answer.
const (
	Forbidden   = 403 // the client may have no worker
	tooMany     = 429 // the source is blocked
	Unavailable = 503 // no worker is available
)

const defaultRetryAfter = 5 * time.Second // Retry-After of a 503

// turnAway closes a connection that will not be served, and logs why. If status
// is not 0, a worker answers the client with this status, because the
// dispatcher itself writes no HTTP. A TLS client gets no answer, because the
// handshake would cost too much.
func (s *Slots) turnAway(c *Connection, status int, retryAfter time.Duration, reason string) {
	s.counts.countTurnedAway(status)
	if status != 0 && !c.TLS && s.answers.Take(time.Now(), 1) {
		s.Answer(c, status, retryAfter)
	}
	fdpass.Close(c.FD)
	if s.mayLog(refusedLines) {
		s.log.Warn("connection refused", "listener", c.Listener, "peer", c.peer(), "because", reason, "refused_so_far", s.counts.turnedAway())
	}
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) uint16 {
	return uint16(min((d+time.Second-1)/time.Second, math.MaxUint16))
}
