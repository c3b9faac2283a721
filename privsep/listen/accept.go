package listen

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/sockaddr"
	"schedrestd/ipc"
)

// IsAborted reports whether err, an error of Accept, does not affect other
// connections. For example, a connection may have ended before it was accepted.
// See accept(2).
func IsAborted(err error) bool {
	return slices.Contains([]error{unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENONET, unix.EPERM, unix.EINTR}, err)
}

// Accept waits for a connection and accepts it. After Close it returns
// os.ErrClosed. It does not use package unix, which would ask the kernel for the
// protocol of each connection.
func (l *Listener) Accept() (fd int, peer syscall.Sockaddr, err error) {
	if l.raw.Read(func(s uintptr) bool {
		fd, peer, err = syscall.Accept4(int(s), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		return err != unix.EAGAIN
	}) != nil {
		err = os.ErrClosed
	}
	return fd, peer, err
}

// IsGone reports whether the client of a TCP connection has closed it, and no
// byte of the client is left to read.
func IsGone(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(p, 0); n == 0 || err != nil {
		return false
	}
	unread, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
	return p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 || err == nil && unread == 0
}

// PeerFacts returns what the kernel reports about the peer of an accepted
// connection.
func (l *Listener) PeerFacts(fd int, peer syscall.Sockaddr) (ipc.Connection, error) {
	c := ipc.Connection{Network: l.Network, Listener: l.Name, TLS: l.TLS, UID: ipc.NoID, GID: ipc.NoID}
	if l.Network == ipc.TCP {
		c.Addr = sockaddr.AddrPort(peer).String()
		return c, nil
	}
	u, err := become.PeerFD(fd)
	if err == nil {
		c.UID, c.GID, c.PID, c.Verified = u.UID, u.GID, u.PID, u.Verify() == nil
	}
	return c, err
}
