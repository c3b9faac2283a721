// Package clients records as which users processes may run at present: the users of
// open connections, and those for whom the keeper vouches.
package clients

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// A Set records clients. A compromised dispatcher must not be able to act as a user
// who has disconnected. So a Set asks the kernel, and not the dispatcher, which
// connections are open. It is not safe for concurrent use.
//
// The parent can't keep a descriptor of each connection, because the client
// would not notice when the worker closes it. It registers each connection with
// an epoll instance before it closes its descriptor. A registration lasts until
// all copies of the descriptor are closed, in whichever process (epoll(7)).
type Set struct {
	Max int // number of clients above which it is full

	epoll    int
	byID     map[uint64]client
	lastID   uint64
	lastSeen map[[2]uint32]time.Time // when each user was last known to be a client, by uid and gid
}

// A client is the user of a connection, or of a token.
type client struct {
	security.Identity
	until time.Time // when the keeper's word for the user expires; zero for a connection
}

// New returns an empty Set.
func New(max int) (*Set, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return &Set{Max: max, epoll: epoll, byID: map[uint64]client{}, lastSeen: map[[2]uint32]time.Time{}}, err
}

// Add records the user of the connection fd, and returns the number of the
// connection.
func (s *Set) Add(fd int, user security.Identity) (number uint64, err error) {
	s.lastID++
	// The kernel always reports a connection that its client has closed. With
	// EPOLLONESHOT it does so once.
	e := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(s.lastID), Pad: int32(s.lastID >> 32)}
	if err = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return 0, fmt.Errorf("watch a connection: %w", err)
	}
	s.Vouch(s.lastID, user, time.Time{})
	return s.lastID, nil
}

// Vouch records a user for whom the keeper vouches until the time limit, under a number
// that the keeper has chosen.
func (s *Set) Vouch(number uint64, user security.Identity, until time.Time) {
	s.byID[number], s.lastSeen[[2]uint32{user.UID, user.GID}] = client{user, until}, time.Now()
}

// IsFull reports whether there are more than Max clients.
func (s *Set) IsFull() bool {
	if len(s.byID) > s.Max {
		s.forgetReleased()
	}
	return len(s.byID) > s.Max
}

// Find returns the identity of the client with a number. If ok is false, there is no
// such client any longer.
func (s *Set) Find(number uint64) (id security.Identity, ok bool) {
	s.forgetClosed()
	c, ok := s.byID[number]
	return c.Identity, ok && (c.until.IsZero() || time.Now().Before(c.until))
}

// forgetClosed removes connections that their clients have closed.
func (s *Set) forgetClosed() {
	events := make([]unix.EpollEvent, 128)
	for n := len(events); n == len(events); {
		n, _ = unix.EpollWait(s.epoll, events, 0)
		for _, e := range events[:max(0, n)] {
			delete(s.byID, uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32)
		}
	}
}

// forgetReleased removes connections that their clients or all processes of the
// gateway have closed. The kernel lists the remaining registrations in /proc
// (proc_pid_fdinfo(5)).
func (s *Set) forgetReleased() {
	s.forgetClosed()
	text, err := os.ReadFile(fmt.Sprintf("/proc/thread-self/fdinfo/%d", s.epoll))
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
	maps.DeleteFunc(s.byID, func(number uint64, c client) bool { return !open[number] && !time.Now().Before(c.until) })
}

// Forget removes all clients.
func (s *Set) Forget() { clear(s.byID) }

// Seen returns a function that reports whether a user was a client within limit.
func (s *Set) Seen(now time.Time, limit time.Duration) func(uid, gid uint32) bool {
	s.forgetReleased()
	for _, c := range s.byID {
		s.lastSeen[[2]uint32{c.UID, c.GID}] = now
	}
	maps.DeleteFunc(s.lastSeen, func(_ [2]uint32, at time.Time) bool { return now.Sub(at) >= limit })
	return func(uid, gid uint32) bool { return !s.lastSeen[[2]uint32{uid, gid}].IsZero() }
}
