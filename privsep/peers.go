package privsep

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
)

// peers records the users of open connections, with become_user. A compromised
// dispatcher must not be able to act as a user who has disconnected. So peers
// asks the kernel, and not the dispatcher, which connections are open.
//
// The parent can't keep a descriptor of each connection, because the client
// would not notice when the worker closes it. It registers each connection with
// an epoll instance before it closes its descriptor. A registration lasts until
// all copies of the descriptor are closed, in whichever process (epoll(7)).
type peers struct {
	epoll    int
	max      int // number of connections above which the parent checks which are open
	byID     map[uint64]peer
	lastID   uint64
	lastSeen map[ids]time.Time // when each user was last known to have a connection, in the last Limits.Absence
}

// ids identifies the user of a connection.
type ids struct{ uid, gid uint32 }

// peer is the client of a connection.
type peer struct {
	ids
	groups []uint32 // supplementary groups of the process that connected
}

func newPeers(max int) (*peers, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return &peers{epoll: epoll, max: max, byID: map[uint64]peer{}, lastSeen: map[ids]time.Time{}}, err
}

// add records the user of the connection fd, and returns the number of the
// connection.
func (p *peers) add(fd int, user ids) (number uint64, err error) {
	p.lastID++
	// The kernel always reports a connection that its client has closed. With
	// EPOLLONESHOT it does so once.
	e := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(p.lastID), Pad: int32(p.lastID >> 32)}
	if err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return 0, fmt.Errorf("watch a connection: %w", err)
	}
	p.byID[p.lastID] = peer{user, become.PeerGroups(fd)}
	p.lastSeen[user] = time.Now()
	return p.lastID, nil
}

// exceedMax reports whether more than p.max connections are open.
func (p *peers) exceedMax() bool {
	if len(p.byID) > p.max {
		p.forgetReleased()
	}
	return len(p.byID) > p.max
}

// find returns the client of a connection, if its user has an open connection.
func (p *peers) find(number uint64) (client peer, ok bool) {
	p.forgetClosed()
	client, isKnown := p.byID[number]
	for _, other := range p.byID {
		ok = ok || isKnown && other.ids == client.ids
	}
	return client, ok
}

// forgetClosed removes connections that their clients have closed.
func (p *peers) forgetClosed() {
	events := make([]unix.EpollEvent, 128)
	for n := len(events); n == len(events); {
		n, _ = unix.EpollWait(p.epoll, events, 0)
		for _, e := range events[:max(0, n)] {
			delete(p.byID, uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32)
		}
	}
}

// forgetReleased removes connections that their clients or all processes of the
// gateway have closed. The kernel lists the remaining registrations in /proc
// (proc_pid_fdinfo(5)).
func (p *peers) forgetReleased() {
	p.forgetClosed()
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
	maps.DeleteFunc(p.byID, func(number uint64, _ peer) bool { return !open[number] })
}

// updateSeen updates lastSeen. Users who have had no connection for
// limit are no longer in it.
func (p *peers) updateSeen(now time.Time, limit time.Duration) {
	p.forgetReleased()
	for _, client := range p.byID {
		p.lastSeen[client.ids] = now
	}
	maps.DeleteFunc(p.lastSeen, func(_ ids, at time.Time) bool { return now.Sub(at) >= limit })
}

// endAbandonedWorkers kills the workers of users who have had no connection for
// Limits.Absence. Otherwise a compromised dispatcher could act as such a user
// through a worker that it never ends.
func (m *monitor) endAbandonedWorkers() {
	m.peers.updateSeen(time.Now(), m.config().Limits.Absence)
	if m.dispatcher == nil || m.inetdClient != nil {
		return
	}
	for _, p := range m.dispatcher.processes {
		if _, seen := m.peers.lastSeen[ids{p.UID, p.GID}]; p.isUsersOwn && !seen {
			m.config().Log.Error("worker terminated", "uid", p.UID, "because", "its user has no connection")
			p.Kill()
		}
	}
}
