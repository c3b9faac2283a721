package pool

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/fdpass"
	"schedrestd/internal/penalty"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// taken closes this process's descriptor of a connection that w has taken.
// Otherwise the client would not notice when the worker closes its descriptor.
// The channel of w now has space for another connection.
func (p *Pool) taken(w *worker, id uint64) error {
	c, ok := w.held[id]
	if !ok || c.FD < 0 {
		return fmt.Errorf("sent ConnectionTaken for connection %d, which it was not given", id)
	}
	p.Slots.identify(c)
	if c.Network == ipc.TCP && w.sandbox.Filter && !w.sandbox.Audit { // the worker can't set the connection to linger
		unix.Close(c.FD)
	} else {
		fdpass.Close(c.FD)
	}
	c.FD = -1
	p.Slots.Taken(&c.Conn)
	p.serveWaiting()
	return nil
}

// release frees the slot of a connection with which w is done. The connection must
// belong to w. Otherwise a compromised worker could free any number of slots,
// and so defeat the limit on connections.
func (p *Pool) release(w *worker, id uint64) error {
	c, err := w.heldConn(id, "ConnectionDone")
	if err != nil {
		return err
	}
	delete(w.held, id)
	p.gen.Audit.ConnClosed(id)
	w.finished++
	p.lastUsed = time.Now()
	p.Slots.Release(&c.Conn)
	if p.SingleUse {
		p.drain() // the worker has served the only connection of the pool
	}
	p.notifyIdle()
	return nil
}

// progress records the stage of a connection. The connection must belong to w.
// Otherwise a compromised worker could cause connections of other workers to be
// closed. The rate of reports is limited, because this process has to read them
// all.
func (p *Pool) progress(w *worker, m *work.Progress) error {
	c, err := w.heldConn(m.ID, "Progress")
	if err != nil {
		return err
	}
	if !p.Slots.Progress(&c.Conn, m.Stage) {
		return fmt.Errorf("reported twice that connection %d is %s", m.ID, m.Stage)
	}
	if !w.reports.Take(time.Now(), 1) {
		return errTooOften("Progress")
	}
	return nil
}

// offence records a worker's report about the client of a connection. The
// connection must belong to the worker. An honest worker reports at most one
// offence for each request, and on average at most a hundred offences a second.
func (p *Pool) offence(w *worker, m *work.Offence) error {
	c, err := w.heldConn(m.ID, "Offence")
	if err != nil {
		return err
	}
	if !w.offences.Take(time.Now(), 1) {
		return errTooOften("Offence")
	}
	if m.Kind == work.BadRequest {
		p.Slots.Offence(time.Now(), &c.Conn, penalty.Malformed, 0)
	} else {
		p.Slots.Offence(time.Now(), &c.Conn, penalty.Auth, m.Credential)
	}
	return nil
}

func errTooOften(message string) error { return fmt.Errorf("sent %s too often", message) }
