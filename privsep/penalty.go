package privsep

import (
	"time"

	"schedrestd/ipc"
	"schedrestd/penalty"
)

// offence notes what a worker reports about the client of a connection, which it must
// hold. It reports at most one offence for each request, and an honest one does so no
// faster than a hundred times a second.
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
	if m.What == ipc.WrongRequest {
		p.slots.offend(c, penalty.Malformed, 0)
	} else {
		p.slots.offend(c, penalty.Auth, m.Credential)
	}
	return nil
}

// What a worker may report: some at once, and then so many a second. An honest one reports half of that
// (worker/penalty.go).
const (
	offenceBurst = 400
	offenceRate  = 200
)
