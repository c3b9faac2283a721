package privsep

import (
	"log/slog"
	"math"
	"time"

	"schedrestd/ipc"
	"schedrestd/penalty"
)

// penalties is which sources offended, and have to wait for it: nobody who guesses tokens, sends what is no
// request or breaks workers may do so as fast as he can. What they did is the workers' word, and which
// source it was the kernel's; that a worker died the parent sees by itself.
type penalties struct {
	table     *penalty.Table[source]
	rejected  *penalty.Memory // the credentials of offences
	admission ipc.Admission
	log       *slog.Logger
	lines     *tally
	kinds     [penalty.Kinds]count
	pauses    count
}

// How much is remembered of offences.
const (
	mostSources     = 10_000 // debts
	mostCredentials = 16_384 // with which they were made; 20 bytes each
)

func newPenalties(a ipc.Admission, log *slog.Logger) *penalties {
	rules := penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{
		penalty.Auth: a.Auth, penalty.Malformed: a.Malformed, penalty.Crash: a.Crash}}
	return &penalties{table: penalty.New[source](rules, mostSources), rejected: penalty.NewMemory(mostCredentials), admission: a, log: log, lines: newTally()}
}

// wait is how long c's source has to wait; 0: not at all.
func (p *penalties) wait(c *connection) time.Duration {
	if p.table == nil || c.exempt {
		return 0
	}
	return p.table.Wait(time.Now(), c.source)
}

// reject notes that a credential of c's client was rejected. It returns what offend does. One
// that was rejected before costs nothing, whichever worker reports it: a client that repeats it guesses nothing.
func (p *penalties) reject(c *connection, credential uint64) (wait time.Duration, begun bool) {
	if p.table != nil && !c.exempt && p.wait(c) == 0 && !p.rejected.Add(credential) {
		p.kinds[penalty.Auth].add(1)
		return 0, false
	}
	return p.offend(c, penalty.Auth)
}

// offend notes an offence of c's source. It returns how long the source has to wait from now on, and
// reports whether this offence began the wait.
func (p *penalties) offend(c *connection, kind penalty.Kind) (wait time.Duration, begun bool) {
	p.kinds[kind].add(1)
	if p.table == nil || c.exempt {
		return 0, false
	}
	wait, begun = p.table.Offend(time.Now(), c.source, kind)
	if !begun {
		return wait, false
	}
	p.pauses.add(1)
	if total, ok := p.lines.add(); ok {
		p.log.Warn("source blocked", "source", c.source.String(), "listener", c.Listener,
			"last", kind.String(), "pause", wait, "pauses_so_far", total, "hint", c.exemption())
	}
	return wait, true
}

// crashed notes that a worker crashed while it was answering the connections in list.
func (p *penalties) crashed(list []*connection) {
	known := map[source]bool{}
	for _, c := range list {
		if !known[c.source] { // however many connections it had, it was one crash
			known[c.source] = true
			p.offend(c, penalty.Crash)
		}
	}
}

// offence notes what a worker says about the client of a connection, which it must hold. It says so
// once for each request at the most, and no honest one says it faster than a hundred times a second.
func (p *pool) offence(w *worker, m *ipc.Offence) error {
	p.mu.Lock()
	c, ok := w.held[m.ID]
	ok = ok && c.fd < 0
	p.mu.Unlock()
	if !ok {
		return errNotHeld("Offence", m.ID)
	}
	if !w.offences.Take(time.Now(), 1) {
		return errTooOften("Offence")
	}
	var wait time.Duration
	var begun bool
	if m.What == ipc.WrongRequest {
		wait, begun = p.slots.penalties.offend(c, penalty.Malformed)
	} else {
		wait, begun = p.slots.penalties.reject(c, m.Credential)
	}
	switch {
	case begun:
		p.pause(c.source, wait)
	case wait > 0: // the connection may have come since
		_ = w.Channel.TrySend(&ipc.Pause{ID: m.ID, Seconds: seconds(wait)})
	}
	return nil
}

// pause tells the workers that the clients of all connections of a source have
// to wait. Otherwise they would go on to serve its other connections. A worker
// that does not read its channel harms only itself.
func (p *pool) pause(of source, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		for id, c := range w.held {
			if c.source == of && c.fd < 0 {
				_ = w.Channel.TrySend(&ipc.Pause{ID: id, Seconds: seconds(wait)})
			}
		}
	}
}

// What a worker may report: some at once, and then so many a second. An honest one reports half of that
// (worker/penalty.go).
const (
	offenceBurst = 400
	offenceRate  = 200
)

// seconds is d, rounded up.
func seconds(d time.Duration) uint16 {
	return uint16(min((d+time.Second-1)/time.Second, math.MaxUint16))
}
