package privsep

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/notify"
	"schedrestd/ipc"
	"schedrestd/privsep/listen"
	"schedrestd/security"
)

// startAccepting gives the dispatcher a channel for connections. If no
// acceptors are running, it also starts them.
func (m *monitor) startAccepting() {
	arrivals, fd, err := ipc.Pair(ipc.Acceptor, ipc.Dispatcher)
	if err != nil {
		m.endRun(err)
		return
	}
	defer unix.Close(fd)
	diagFD, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		diagFD, _ = unix.Eventfd(0, unix.EFD_CLOEXEC) // reports no owner
	}
	defer unix.Close(diagFD)
	m.arrivalChannel.Store(arrivals)
	m.send(new(ipc.ArrivalChannel), fd, diagFD)
	if !m.accepting {
		m.accepting = true
		for _, l := range m.listeners {
			m.acceptors.Go(func() { m.acceptFrom(l, *m.config()) })
		}
	}
	notify.Ready("")
}

// drain closes the listeners. When every accepted connection has been sent to
// the dispatcher, drain asks the dispatcher to finish all requests and exit.
func (m *monitor) drain() {
	m.closeListeners()
	go func() { // acceptors may still be waiting for the monitor's loop or for the dispatcher
		m.acceptors.Wait()
		m.post(func() {
			if arrivals := m.arrivalChannel.Load(); arrivals != nil {
				_ = arrivals.Shutdown()
			}
			m.send(new(ipc.Shutdown))
		})
	}()
}

// acceptFrom accepts connections until the listener is closed, even while the
// dispatcher has no free slot. If connections had to wait in the kernel's queue
// instead, one client could fill the queue. The parent could not identify this
// client, because the kernel does not report whose connections are in the
// queue.
func (m *monitor) acceptFrom(l *listen.Listener, c Config) {
	var backoff time.Duration
	var warnedAt time.Time
	for {
		fd, peer, err := l.Accept()
		switch {
		case err == nil:
			backoff = 0
			facts, err := l.PeerFacts(fd, peer)
			now := time.Now()
			switch {
			case l.Network == ipc.TCP && listen.IsGone(fd): // passing it on would cost more
			case l.Network == ipc.TCP, m.arrivals.Take(now, ipc.OwnerOf(m.config().Ranges, facts.UID), 1) == 0:
				m.passConn(l, fd, facts, err, c.Switches)
			case now.Sub(warnedAt) > warnInterval:
				warnedAt = now
				c.Log.Warn("connections closed: too many from this user", "listener", l.Name, "uid", facts.UID, "limit", arrivals.PerSecond)
			}
			if l.Network != ipc.TCP {
				fdpass.Close(fd)
				continue
			}
			// A worker without a sandbox could make this wait for a client, by
			// setting the connection to linger, but only if it closes its own
			// descriptor before. That is so rare that no other goroutine is
			// needed, which would cost more than the close.
			fdpass.Do(func() { unix.Close(fd) })
			continue
		case errors.Is(err, os.ErrClosed):
			return
		case listen.IsAborted(err):
			continue
		}
		// The process is out of descriptors or memory. Without a pause, this
		// loop would use all of the CPU time.
		backoff = min(max(2*backoff, 10*time.Millisecond), time.Second)
		c.Log.Warn("connection not accepted", "listener", l.Name, "error", err, "pause", backoff)
		time.Sleep(backoff)
	}
}

// maxClientsInTransit is the number of connections that may be open beyond the
// dispatcher's limits. They are on their way to the dispatcher, or are being
// turned away. The parent also remembers as many connections that are closed
// before it checks which are open.
const maxClientsInTransit = 10_000

// warnInterval is the time between two warnings about a user whose connections are
// closed.
const warnInterval = time.Minute

// passConn sends the dispatcher a connection with the facts about its peer. If
// err is not nil, the kernel could not identify the peer. The dispatcher gets
// its own copy of the descriptor.
func (m *monitor) passConn(l *listen.Listener, fd int, facts ipc.Connection, err error, switches ipc.Switches) {
	a := &ipc.Arrival{Connection: facts, OtherNetns: l.OtherNetns}
	switch {
	case err != nil:
		a.DenyReason = err.Error()
	case switches.BecomeUser:
		a.DenyReason = m.service.RefusalReason(facts, switches.DisableUserCheck)
		if a.DenyReason == "" {
			m.postAndWait(func() {
				if a.ID, err = m.clients.Add(fd, security.Identity{UID: facts.UID, GID: facts.GID, Groups: become.PeerGroups(fd)}); err != nil {
					a.DenyReason = err.Error()
				}
				if m.clients.IsFull() && m.dispatcher != nil {
					m.dispatcher.killWithReason(fmt.Sprintf("holds more than %d connections", m.clients.Max))
				}
			})
		}
	}
	for {
		if to := m.arrivalChannel.Load(); to != nil {
			if err := to.Send(a, fd); err == nil || ipc.IgnoreClosed(err) != nil {
				return // the connection was sent, or can't be sent at all
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // the next dispatcher is being started
		case <-m.done:
			return
		}
	}
}
