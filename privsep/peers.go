package privsep

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// peers records the users of open connections, with become_user. A compromised
// dispatcher must not be able to act as a user who has disconnected. So peers
// does not rely on the dispatcher's reports, but asks the kernel which
// connections are open.
//
// The parent can't keep a descriptor of each connection, because the client
// would not notice when the worker closes it. It registers each connection with
// an epoll instance before it closes its descriptor. A registration lasts until
// all copies of the descriptor are closed, in whichever process (epoll(7)).
type peers struct {
	epoll  int
	byID   map[uint64]security.Identity
	lastID uint64
	absent map[ids]time.Time // users of workers who have no connection: since when
}

// ids identifies the user of a connection.
type ids struct{ uid, gid uint32 }

func idsOf(id security.Identity) ids { return ids{id.UID, id.GID} }

func newPeers() *peers {
	return &peers{epoll: -1, byID: map[uint64]security.Identity{}, absent: map[ids]time.Time{}}
}

// add records the user of the connection fd, and returns the number of the
// connection.
func (p *peers) add(fd int, id security.Identity) (number uint64, err error) {
	if p.epoll < 0 {
		if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
			return 0, fmt.Errorf("watch connections: %w", err)
		}
	}
	p.lastID++
	// The kernel always reports a connection that its client has closed. With
	// EPOLLONESHOT it does so once.
	e := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(p.lastID), Pad: int32(p.lastID >> 32)}
	if err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return 0, fmt.Errorf("watch a connection: %w", err)
	}
	p.byID[p.lastID] = id
	delete(p.absent, idsOf(id))
	return p.lastID, nil
}

// find returns the user of a connection, if this user has an open connection.
func (p *peers) find(number uint64) (security.Identity, bool) {
	id, ok := p.byID[number]
	p.forgetClosed()
	return id, ok && p.isConnected(idsOf(id))
}

func (p *peers) isConnected(user ids) bool {
	for _, other := range p.byID {
		if idsOf(other) == user {
			return true
		}
	}
	return false
}

// forgetClosed removes connections that their clients have closed.
func (p *peers) forgetClosed() {
	events := make([]unix.EpollEvent, 128)
	for n := len(events); p.epoll >= 0 && n == len(events); {
		n, _ = unix.EpollWait(p.epoll, events, 0)
		for _, e := range events[:max(0, n)] {
			delete(p.byID, uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32)
		}
	}
}

// forgetReleased removes connections that all processes have closed. The kernel
// lists the remaining registrations in /proc (proc_pid_fdinfo(5)).
func (p *peers) forgetReleased() {
	p.forgetClosed()
	if p.epoll < 0 {
		return
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/thread-self/fdinfo/%d", p.epoll))
	if err != nil {
		return
	}
	open := map[uint64]bool{}
	for line := range strings.Lines(string(text)) {
		var fd int
		var events, number uint64
		if n, _ := fmt.Sscanf(line, "tfd: %d events: %x data: %x", &fd, &events, &number); n == 3 {
			open[number] = true
		}
	}
	for number := range p.byID {
		if !open[number] {
			delete(p.byID, number)
		}
	}
}

// absentSince returns when the user of a worker was first found to have no
// connection. ok is false if the user has one.
func (p *peers) absentSince(user ids, now time.Time) (since time.Time, ok bool) {
	if p.isConnected(user) {
		delete(p.absent, user)
		return now, false
	}
	if _, known := p.absent[user]; !known {
		p.absent[user] = now
	}
	return p.absent[user], true
}

// endAbandonedWorkers kills the workers of users who have had no connection for
// Limits.Absence. Otherwise a compromised dispatcher could act as such a user
// through a worker that it never ends.
func (m *monitor) endAbandonedWorkers() {
	m.peers.forgetReleased()
	if m.dispatcher == nil {
		return
	}
	now := time.Now()
	for number, user := range m.dispatcher.users {
		if since, absent := m.peers.absentSince(user, now); absent && now.Sub(since) >= m.config.Limits.Absence {
			m.config.Log.Error("worker terminated", "uid", user.uid, "because", "its user has no connection")
			m.dispatcher.processes[number].Kill()
		}
	}
}
