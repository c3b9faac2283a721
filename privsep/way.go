package privsep

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/privsep/netns"
	"schedrestd/sockdiag"
)

// way is a descriptor for a worker: a TCP socket, perhaps still being connected, or the inode of a UNIX
// socket.
type way struct {
	fd     int
	owner  uint32 // of the UNIX socket's directory; ipc.NoID with TCP
	server uint32 // of a TCP socket to this machine: who accepts or accepted it; else ipc.NoID
}

func (w way) close() { unix.Close(w.fd) }

// again is the number of "ask again in a moment".
const again = uint16(unix.EAGAIN)

// open opens the way to a, a TCP connection from where the outlet is. It waits for nobody: a TCP connection is completed while the worker has it.
//
// A UNIX socket is never connected to here. The daemon at its other end takes who connected for who asks,
// and that would be root. Its path is looked up for each connection, so that a socket or a
// directory that a restarted service made anew is found.
func open(a ipc.Address, from *netns.Dialer, ports uint32) (way, unix.Errno) {
	var w way
	var err error
	if a.Network == "unix" {
		w, err = inode(a.Address)
	} else {
		err = from.Do(func() error { w, err = connecting(a.Address, ports, false); return err })
	}
	return w, errnoOf(err)
}

// errLocal says that a socket to this machine can't be handed over before it is
// connected: who serves it could not be checked.
var errLocal = errors.New("the address is on this machine")

// errnoOf is the kernel's number for err, 0 for nil.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return unix.EADDRNOTAVAIL
}

// spares are TCP sockets of which each connects to address with its first write, from where the outlet is.
// The error is errLocal, or that this kernel, or its administrator, has no such sockets.
func spares(address string, from *netns.Dialer, ports uint32) (fds []int, err error) {
	err = from.Do(func() error {
		for range ipc.SpareCount {
			w, err := connecting(address, ports, true)
			if err != nil {
				return err
			}
			fds = append(fds, w.fd)
		}
		return nil
	})
	if err != nil {
		closeFDs(fds)
		return nil, err
	}
	return fds, nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// connecting is a TCP socket on its way to address, an IP and a port, in the calling thread's network namespace. One that
// is deferred has its address, and begins with its first write.
func connecting(address string, ports uint32, deferred bool) (way, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return way{}, err
	}
	local, err := sockdiag.Local(to.Addr())
	if err != nil {
		return way{}, err
	}
	if local && deferred {
		return way{}, errLocal
	}
	family, sa := sockaddr(to)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return way{}, err
	}
	// A request is one segment, and its answer begins when all of it is there.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if ports != 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipLocalPortRange, int(ports)) // Linux 6.3
	}
	if deferred {
		err = deferConnect(fd)
	}
	if err == nil {
		err = connect(fd, sa)
	}
	if err != nil && (err != unix.EINPROGRESS || deferred) { // a deferred one that is in progress was not deferred
		unix.Close(fd)
		return way{}, err
	}
	w := way{fd, ipc.NoID, ipc.NoID}
	if local {
		if w.server, err = server(fd); err != nil {
			w.close()
			return way{}, err
		}
	}
	return w, nil
}

// server is who serves the other end of fd, which is on this machine; become.Overflow
// when the kernel does not know.
func server(fd int) (uint32, error) {
	local, remote, err := sockdiag.Ends(fd)
	if err == unix.ENOTCONN { // as many wait to be accepted as may
		return 0, unix.EAGAIN
	}
	if err != nil {
		return 0, err
	}
	uid, err := sockdiag.Server(local, remote)
	if errors.Is(err, sockdiag.ErrUnknown) {
		return become.Overflow, nil
	}
	return uid, err
}

// deferConnect has connect(2) take the address only. It is TCP fast open without its cookie, and so, when the first
// write has no bytes, a plain handshake.
func deferConnect(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE, 1)
}

func connect(fd int, sa unix.Sockaddr) error {
	for {
		if err := unix.Connect(fd, sa); err != unix.EINTR {
			return err
		}
	}
}

func sockaddr(to netip.AddrPort) (family int, sa unix.Sockaddr) {
	ip := to.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: ip.As4()}
	}
	six := &unix.SockaddrInet6{Port: int(to.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		if i, err := net.InterfaceByName(zone); err == nil {
			six.ZoneId = uint32(i.Index)
		}
	}
	return unix.AF_INET6, six
}

// inode is the UNIX socket at path, unopened.
func inode(path string) (way, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return way{}, err
	}
	var st, dir unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		err = unix.ENOTSOCK
	}
	if err == nil {
		err = unix.Stat(filepath.Dir(path), &dir)
	}
	if err != nil {
		unix.Close(fd)
		return way{}, err
	}
	return way{fd, dir.Uid, ipc.NoID}, nil
}

// ipLocalPortRange is IP_LOCAL_PORT_RANGE of ip(7).
const ipLocalPortRange = 51

// portShares is in how many parts this machine's ports are divided for workers: who closes first has a port
// occupied for a minute, and one worker must not have that done with all. More parts would let an honest one run out
// of them sooner, before a controller on another machine: there they can't be used again meanwhile.
const portShares = 2

// portsOf is the part of the ports, from where the outlet is, that the worker of that number has its connections from, as
// IP_LOCAL_PORT_RANGE takes it; 0 is all of them.
func portsOf(worker uint32, from *netns.Dialer) uint32 {
	var low, high uint32
	err := from.Do(func() error {
		text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
		if err == nil {
			_, err = fmt.Sscan(string(text), &low, &high)
		}
		return err
	})
	size := (high + 1 - low) / portShares
	if err != nil || high > math.MaxUint16 || size < 1000 || low > high {
		return 0
	}
	low += size * (worker % portShares)
	return low | (low+size-1)<<16
}
