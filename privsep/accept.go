package privsep

import (
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/sockdiag"
)

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
	c := ipc.Connection{Network: l.network, Listener: l.name, TLS: l.tls, UID: ipc.NoID, GID: ipc.NoID}
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

// clientUID returns the uid of the client, or ipc.NoID. The kernel tells it of the peer of
// a UNIX socket, and of a client on the loopback interface of the parent's own network
// namespace, until that has closed its socket. There it says who must wait, and no more:
// whoever has a token may connect.
func (l *listener) clientUID(fd int, addr netip.Addr, facts ipc.Connection) uint32 {
	if !addr.IsLoopback() || l.elsewhere {
		return facts.UID
	}
	local, remote, err := sockdiag.Ends(fd)
	if err != nil {
		return ipc.NoID
	}
	uid, err := sockdiag.Client(local, remote)
	if err != nil {
		return ipc.NoID
	}
	return uid
}
