package privsep

import (
	"log/slog"
	"math"
	"time"

	"schedrestd/ipc"
	"schedrestd/penalty"
	"schedrestd/privsep/admission"
	"schedrestd/rate"
	"schedrestd/rights"
)

// slots has package admission decide about the connections of all pools, and carries out its decisions.
type slots struct {
	*admission.State
	*loop
	log    *slog.Logger
	rules  ipc.Admission
	admit  func(*connection)                                         // gives one that has a slot to a worker
	answer func(c *connection, status int, retryAfter time.Duration) // has a worker answer one that is turned away
	silent func()                                                    // reports workers that do not answer; see pool.excuseSilent

	unserved *limitedCount // connections that were turned away
	blocked  *limitedCount // sources
	counts   counters
	number   uint64       // of the last connection
	answers  *rate.Bucket // to connections that are turned away
	ticking  bool         // tick is on its way
}

// mostWaiting bounds the connections that are accepted and wait, as net.core.somaxconn
// bounds those in the kernel's queue. They are accepted because the kernel does not say
// whose connections are in its queue, and one client could fill that.
const mostWaiting = 4096

// newSlots returns the slots of c, which the goroutine of l owns.
func newSlots(c Config, l *loop) *slots {
	a := c.Setup.Admission
	s := &slots{loop: l, log: c.Log, rules: a, answers: rate.New(answerBurst, answerRate, time.Now()), unserved: newLimitedCount(), blocked: newLimitedCount(),
		answer: func(*connection, int, time.Duration) {}, silent: func() {},
		State: admission.New(admission.Config{Slots: c.Connections, PerSource: c.PerSource, Waiting: c.waiting(), Patience: c.HandLimit,
			Penalties: penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{
				penalty.Auth: a.Auth, penalty.Malformed: a.Malformed, penalty.Crash: a.Crash}}})}
	l.settled = s.settle
	return s
}

// settle carries out what was decided during an event, and what is decided because of that.
func (s *slots) settle() {
	for list := s.Decisions(); len(list) > 0; list = s.Decisions() {
		for _, d := range list {
			s.carryOut(d, d.Conn.Ref.(*connection))
		}
	}
	if s.Waiting() && !s.ticking {
		s.ticking = true
		s.after(admission.TickInterval, s.tick)
	}
}

func (s *slots) tick() {
	s.ticking = false
	s.silent()
	s.Tick(time.Now())
}

// carryOut carries out a decision about c. A worker that does not read its channel is not told: others
// are asked in the next round, and its slots go to others when it stays silent.
func (s *slots) carryOut(d admission.Decision, c *connection) {
	switch d.Do {
	case admission.Admit:
		s.admit(c)
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

// arrive has c decided about.
func (s *slots) arrive(c *connection) {
	c.Ref = c
	s.Arrived(time.Now(), &c.Conn)
}

// stopping is why no connection is served any more.
var stopping = admission.ShutDown.String()

// drop turns away a connection that has a slot and that no worker serves.
func (s *slots) drop(c *connection, status int, why string) {
	after := comeBack
	if status == statusForbidden {
		after = 0
	}
	s.turnAway(c, status, after, why)
	s.Left(&c.Conn)
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
	if status != 0 && !c.TLS && s.answers.Take(time.Now(), 1) {
		s.answer(c, status, after)
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
