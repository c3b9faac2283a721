package privsep

import (
	"errors"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/ipc"
)

// accept takes connections from l and hands them over, until the listener closes or
// the pool drains. It holds a slot before it accepts, and no slot while nobody knocks,
// so that idle listeners take nothing from busy ones.
func (p *pool) accept(l *listener) {
	var trouble time.Duration
	for p.slots.take(p.quit) {
		fd, peer, err := l.acceptOne()
		switch {
		case err == nil:
			trouble = 0
			p.admit(fd, l, peer)
			continue
		case err == unix.EAGAIN:
			p.slots.free(1)
			if l.wait() != nil {
				return
			}
			continue
		}
		p.slots.free(1)
		if errors.Is(err, os.ErrClosed) || p.isDraining() {
			return
		}
		if gone(err) {
			continue
		}
		// Out of descriptors or of memory: pause, or this loop would spin.
		trouble = min(max(2*trouble, 10*time.Millisecond), time.Second)
		p.log.Warn("can't accept a connection", "listener", l.name, "error", err, "pause", trouble)
		time.Sleep(trouble)
	}
}

func (p *pool) isDraining() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

// gone tells whether err is of one connection that broke off before it was accepted;
// accept(2) lists them.
func gone(err error) bool {
	switch err {
	case unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENONET, unix.EPERM, unix.EINTR:
		return true
	}
	return false
}

// acceptOne accepts without waiting: EAGAIN when nobody knocks.
func (l *listener) acceptOne() (fd int, peer unix.Sockaddr, err error) {
	closed := l.raw.Read(func(s uintptr) bool {
		fd, peer, err = unix.Accept4(int(s), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		return true
	})
	if closed != nil {
		return -1, nil, os.ErrClosed
	}
	return fd, peer, err
}

// wait returns when somebody knocks, or with an error when the listener is closed. The
// look at the socket comes first each time, because the poller forgets what it
// saw before the call.
func (l *listener) wait() error {
	return l.raw.Read(func(s uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(s), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// facts is what the kernel says about the peer of an accepted connection.
func (l *listener) facts(fd int, peer unix.Sockaddr) (ipc.Connection, error) {
	c := ipc.Connection{Network: l.network, Listener: l.name, UID: ipc.NoID, GID: ipc.NoID}
	switch a := peer.(type) {
	case *unix.SockaddrInet4:
		c.Addr = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		c.Addr = netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)).String()
	case *unix.SockaddrUnix:
		u, err := become.PeerFD(fd)
		if err != nil {
			return c, err
		}
		c.UID, c.GID, c.PID, c.Vouched = u.UID, u.GID, u.PID, u.Vouch() == nil
	}
	return c, nil
}
