package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/sockaddr"
)

// A Socket is a netlink socket that Open returned, possibly in another network
// namespace. Its methods may be called concurrently.
type Socket struct {
	mu sync.Mutex // held during a query, because the replies carry no number
	fd int
}

// NewSocket returns a Socket that uses the descriptor fd.
func NewSocket(fd int) *Socket { return &Socket{fd: fd} }

// ClientUID works like the function ClientUID.
func (s *Socket) ClientUID(c Connection) (uid uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clientUID(s.fd, c.local, c.remote)
}

// PeerEnded reports whether the peer of an accepted TCP connection has closed its
// own socket, or has stopped sending.
func (s *Socket) PeerEnded(c Connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := FindSocket(s.fd, c.local, c.remote)
	return err == nil && found.PeerEnded
}

// A Connection identifies an accepted connection, even after the process has
// closed or passed on its descriptor.
type Connection struct {
	local, remote netip.AddrPort // of a TCP connection
	inode         uint32         // of the server's socket of a UNIX connection
}

// IdentifyTCP identifies the TCP connection with descriptor fd, whose client has
// the address remote.
func IdentifyTCP(fd int, remote netip.AddrPort) (Connection, error) {
	local, err := syscall.Getsockname(fd)
	return Connection{local: sockaddr.AddrPort(local), remote: remote}, err
}

// Local returns the server's address of a TCP connection.
func (c Connection) Local() netip.Addr { return c.local.Addr() }

// IsBound reports whether the client of a TCP connection has a link-local address.
// The kernel binds the server's socket of such a connection to a network interface,
// and then IsGone does not find it.
func (c Connection) IsBound() bool { return c.remote.Addr().IsLinkLocalUnicast() }

// IdentifyUnix identifies the UNIX connection with descriptor fd.
func IdentifyUnix(fd int) (Connection, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return Connection{inode: uint32(st.Ino)}, err
}

// IsGone reports whether c no longer exists, or can neither send nor receive. A
// connection whose client has only shut down its sending side is not gone, and
// over TCP the kernel can't tell it from one that the client has closed.
//
// If the kernel can't find the connection for another reason, IsGone also
// returns true, for example without the kernel's unix_diag or for a connection
// in another network namespace. So the result is conclusive only if IsGone has
// returned false for the same connection before.
func (s *Socket) IsGone(c Connection) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.inode != 0 {
		return isUnixGone(s.fd, c.inode)
	}
	found, err := FindSocket(s.fd, c.local, c.remote)
	if errors.Is(err, ErrUnknown) {
		return true, nil
	}
	return found.Listening || found.Inode == 0, err
}

// Sizes and values of struct unix_diag_req and struct unix_diag_msg, and the
// attribute that holds the directions that were shut down (linux/unix_diag.h).
const (
	unixRequestSize = 24
	unixReplySize   = 16
	unixShutdown    = 6 // UNIX_DIAG_SHUTDOWN

	bothDirections = 3 // RCV_SHUTDOWN | SEND_SHUTDOWN
)

// isUnixGone reports whether no UNIX socket has the given inode, or both of its
// directions are shut down. The kernel shuts down both directions when the peer
// closes its socket.
func isUnixGone(socket int, inode uint32) (bool, error) {
	b := make([]byte, unixRequestSize)
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0)) // sockets in every state
	binary.NativeEndian.PutUint32(b[8:], inode)
	binary.NativeEndian.PutUint64(b[16:], ^uint64(0)) // any cookie
	r, err := queryVia(socket, unix.SOCK_DIAG_BY_FAMILY, b)
	switch {
	case errors.Is(err, unix.ENOENT):
		return true, nil
	case err != nil:
		return false, err
	case len(r) < unixReplySize:
		return false, unix.EBADMSG
	}
	for r = r[unixReplySize:]; len(r) >= unix.SizeofNlAttr; {
		size, kind := int(binary.NativeEndian.Uint16(r)), binary.NativeEndian.Uint16(r[2:])
		if size < unix.SizeofNlAttr || size > len(r) {
			break
		}
		if kind == unixShutdown && size > unix.SizeofNlAttr {
			return r[unix.SizeofNlAttr] == bothDirections, nil
		}
		r = r[min(len(r), (size+3)&^3):]
	}
	return false, unix.EBADMSG
}
