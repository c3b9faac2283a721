package conns

import "schedrestd/ipc/work"

// remove removes a connection that is closed and has no requests. The caller
// holds mu.
func (t *Table) remove(c *Conn) {
	if c.closed && c.requests == 0 {
		t.releaseSlot(c)
		delete(t.conns, c.id)
	}
}

// releaseSlot gives the connection's slot back to the dispatcher. The caller
// holds mu.
func (t *Table) releaseSlot(c *Conn) {
	if !c.hasSlot {
		return
	}
	if c.hasSlot = false; !c.closed {
		t.slotless++
	}
	t.outbox.add(&work.ConnectionDone{ID: c.id})
}
