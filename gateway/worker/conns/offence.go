package conns

import (
	"net/netip"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/penalty"
	"schedrestd/ipc/work"
)

// The worker reports an offence to the dispatcher, which decides whether to
// block the client. But a client behind a trusted proxy can be identified only
// by a header, and the dispatcher reads no headers. So the worker itself
// decides whether to block such a client. If the dispatcher did this, too, the
// worker would have to name addresses, and an attacker who controls one worker
// could block every client of the proxy.

// maxReports is the number of reports that wait until the dispatcher reads.
var maxReports = int(limit.OffenceReports.Burst)

// ReportMalformed reports that the client sent malformed input.
func (c *Conn) ReportMalformed() { c.Report(work.BadRequest, 0) }

// Report reports an offence of the client. A credential that was rejected
// before is not an offence.
func (c *Conn) Report(kind work.OffenceKind, credential uint64) {
	c.table.mu.Lock()
	defer c.table.unlock()
	c.table.reportLocked(c, kind, credential)
}

// reportLocked reports an offence to the dispatcher, if the dispatcher still
// counts the connection.
func (t *Table) reportLocked(c *Conn, kind work.OffenceKind, credential uint64) {
	switch {
	case !t.penalties || !c.counted || c.silent:
	case len(t.outbox.waiting) >= maxReports || !t.reports.Take(time.Now(), 1):
		t.counts.Unreported.Add(1)
	default:
		t.counts.Reported.Add(1)
		t.outbox.addLocked(&work.Offence{ID: c.id, Kind: kind, Credential: credential})
	}
}

// Reject records a rejected credential, and reports whether this is its first
// rejection. A client that repeats a rejected credential gets no penalty,
// because it is not guessing.
func (t *Table) Reject(credential uint64) (first bool) {
	return t.rejected.Take(time.Now(), credential, 1) == 0
}

// OffendForwarded records that a credential of a source behind a proxy was
// rejected. If this blocks the source, it returns for how long.
func (t *Table) OffendForwarded(source netip.Addr) (pause time.Duration, blocked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forwarded.Offend(time.Now(), source, penalty.Auth)
}

// ForwardedSources returns how many sources behind proxies have debts, and how
// many were forgotten for lack of room.
func (t *Table) ForwardedSources() (debts int, forgotten uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forwarded.Len()
}

// Pause blocks the client of connection id for the time d.
func (t *Table) Pause(id uint64, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.conns[id]; c != nil {
		c.pausedUntil = time.Now().Add(d)
	}
}

// blockedForLocked returns how much longer the client of the connection is
// blocked, and 0 if it is not.
func (c *Conn) blockedForLocked() time.Duration { return max(0, time.Until(c.pausedUntil)) }

// IsBlocked reports whether the client of the connection is blocked.
func (c *Conn) IsBlocked() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.blockedForLocked() > 0
}

// MayLog reports whether another line about an offence may be logged. Without
// this limit, a client with many addresses could fill the log. Counters and
// metrics count all offences.
func (t *Table) MayLog() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines.Take(time.Now(), 1)
}
