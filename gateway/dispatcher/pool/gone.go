package pool

import (
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/sockdiag"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A worker that no longer notices when clients disconnect keeps their slots,
// because of a flaw or because an attacker controls it. So the dispatcher asks
// the kernel, too, and replaces such a worker. It trusts only the kernel: a
// report of a worker could prevent other users from being served.

// maxGoneChecks limits the connections of one worker that are looked up in one
// check. The loop does nothing else meanwhile. A worker with more connections
// is checked in several steps, in random order.
const maxGoneChecks = 128

// identify records how the kernel can find c after this process has closed
// c.FD. If the kernel does not find the connection although it is open, c is
// never looked up again. This is the case, for example, for connections in
// another network namespace.
func (s *Slots) identify(c *Connection) {
	if s.kernel == nil || c.OtherNetns {
		return
	}
	if c.Network == ipc.Unix {
		if socket, err := sockdiag.IdentifyUnix(c.FD); err == nil {
			c.Socket = &socket
		}
	}
	if !s.finds(c) {
		c.Socket = nil
		if isHungUp(c.FD) {
			c.goneSince = time.Now()
		}
	}
}

// A tcpKind stands for the TCP connections of which the kernel finds either all or
// none, as long as they are open. The address can belong to a virtual routing
// domain (VRF), whose connections the kernel may not find.
type tcpKind struct {
	listener string
	local    netip.Addr
}

// maxKinds limits the results that are remembered. Clients on this machine can
// connect to any of 16 million loopback addresses.
const maxKinds = 1000

// finds reports whether the kernel finds c, which is open. It finds all TCP
// connections of a kind, or none, so it is asked until it finds the first. For
// other connections the result depends on the client: it may have a link-local
// address (sockdiag.Connection.IsBound), or a UNIX connection belongs to the
// client's network namespace. If one result counted for all of a listener, any
// client could make the dispatcher replace workers, by connecting in such a way.
func (s *Slots) finds(c *Connection) bool {
	if c.Socket == nil {
		return false
	}
	kind, ofKind := tcpKind{c.Listener, c.Socket.Local()}, c.Network == ipc.TCP && !c.Socket.IsBound()
	if ofKind && s.found[kind] {
		return true
	}
	gone, err := s.kernel.IsGone(*c.Socket)
	found := err == nil && !gone
	if found && ofKind {
		if len(s.found) >= maxKinds {
			clear(s.found)
		}
		s.found[kind] = true
	}
	return found
}

// isHungUp reports whether the connection with descriptor fd can neither send
// nor receive.
func isHungUp(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// checkGone asks the kernel which connections of the pool's workers are gone. A
// worker has as much time to notice this as it has for its last requests when
// the gateway stops, because it may still be carrying out a request of the
// client. After that, checkGone replaces the worker.
//
// A change that waits for an accounting daemon goes on without its client, so it
// gets the time of a transaction, too. An attacker who controls the worker gains
// nothing: as long as a connection is Calling, it has no slot that others need.
// If too many connections wait for it to give up its slot, the slot is lent.
func (p *Pool) checkGone() {
	for _, w := range p.workers {
		p.lookUp(w)
		p.Slots.Unresponsive(p.goneFor(w, p.slotLimit))
		if n := len(p.goneFor(w, p.finishLimit)); n > 0 && !w.replaced && w.EndReason == "" && !p.draining {
			p.replace(w, n)
		}
	}
}

// lookUp asks the kernel about connections of w.
func (p *Pool) lookUp(w *worker) {
	checks := 0
	for _, c := range w.held {
		if c.FD >= 0 || c.Socket == nil || !c.goneSince.IsZero() {
			continue
		}
		if checks++; checks > maxGoneChecks {
			return
		}
		if gone, err := p.Slots.kernel.IsGone(*c.Socket); gone && err == nil {
			c.goneSince = time.Now()
		}
	}
}

// goneFor returns the connections of w that have been gone for longer than their
// limit.
func (p *Pool) goneFor(w *worker, limit func(*Connection) time.Duration) (list []*admission.Conn) {
	for _, c := range w.held {
		if !c.goneSince.IsZero() && time.Since(c.goneSince) > limit(c) {
			list = append(list, &c.Conn)
		}
	}
	return list
}

// finishLimit returns the time after which a worker should have reported that c
// is gone.
func (p *Pool) finishLimit(c *Connection) time.Duration {
	if c.IsCalling() {
		return p.slotLimit(c) + 3*p.Setup.Limits.Accounting
	}
	return p.slotLimit(c)
}

// slotLimit returns the time after which others get the slot of c if it is gone.
func (p *Pool) slotLimit(*Connection) time.Duration { return p.Setup.Limits.Drain }

// replace starts another worker in the place of w. It asks w to finish its
// requests and exit, and kills w if w does not. The argument overdue is the
// number of w's connections that have been gone for too long.
func (p *Pool) replace(w *worker, overdue int) {
	w.replaced = true
	p.Slots.counts.replaced++
	p.logFailure(slog.LevelError, "worker replaced", "worker", w.Number, "pid", w.PID, "uid", p.identity.UID,
		"because", "it keeps connections that are gone", "connections", overdue, "after", p.Setup.Limits.Drain,
		"hint", "this is a bug, or an attacker controls the worker; see INCIDENTS.md")
	if err := w.Channel.TrySend(new(work.Drain)); err != nil {
		w.Terminate("was replaced, and did not receive the request to finish")
	}
	p.After(p.Setup.Limits.Drain+process.ExitGrace, func() {
		if p.workers[w.Number] == w {
			w.Terminate("was replaced and asked to finish, but still runs")
		}
	})
	p.fill(w.place)
}
