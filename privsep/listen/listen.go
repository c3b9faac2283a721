// Package listen opens the gateway's listening sockets, or takes them over from
// a service manager. It accepts connections and asks the kernel about their
// peers. It reads nothing from a connection.
package listen

import (
	"cmp"
	"errors"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/sockaddr"
	"schedrestd/internal/socket"
	"schedrestd/ipc"
	"schedrestd/privsep/netns"
)

// Listener is a listening socket.
type Listener struct {
	ipc.Listening

	file   *os.File
	raw    syscall.RawConn
	remove func() // removes a UNIX socket from the file system
}

// Options contains the addresses to listen on, and settings for the listeners.
type Options struct {
	Activated []*os.File // passed by the service manager (see Activated); they come first
	Addresses []ipc.Listen
	Netns     string         // network namespace of the TCP addresses, by name or path; "": the one in which the gateway was started
	Unix      socket.Options // options of the UNIX sockets
	UnixOnly  bool           // reject TCP sockets that the service manager passed
}

// Open opens every listener, or none.
func Open(o Options) (list []*Listener, err error) {
	defer func() {
		if err != nil {
			CloseAll(list)
			list = nil
		}
	}()
	for _, f := range o.Activated {
		l, err := adopt(f)
		if err != nil {
			return list, err
		}
		list = append(list, l)
		if o.UnixOnly && l.Network != ipc.Unix {
			return list, errs.New(errs.Invalid, "become_user cannot serve %s, which the service manager passed", l.Name).
				WithHint("use ListenStream=/path/to/socket in the socket unit")
		}
	}
	ns, err := netns.Open("SCHEDRESTD_NETNS", o.Netns)
	if err != nil {
		return list, err
	}
	defer ns.Close()
	for _, e := range o.Addresses {
		var more []*Listener
		if e.Network == ipc.Unix {
			more, err = listenUnix(e, o.Unix)
		} else {
			err = ns.Do(func() error {
				more, err = bindAll(e, ns)
				return err
			})
		}
		list = append(list, more...)
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// CloseAll closes listeners.
func CloseAll(list []*Listener) {
	for _, l := range list {
		l.Close()
	}
}

// Close stops listening. An Accept in progress returns an error.
func (l *Listener) Close() {
	if l.remove != nil {
		l.remove()
	}
	_ = fdpass.Release(l.file) // also closes the connections that were not accepted
}

// FD returns the listening descriptor, so that it can be passed to another
// process.
func (l *Listener) FD() (fd int) {
	_ = l.raw.Control(func(n uintptr) { fd = int(n) })
	return fd
}

// deferSeconds is how long the kernel keeps a TCP connection over which the
// client has sent nothing. A client that only connects and closes, as often as
// possible, then fills neither the queue of connections nor this process's time.
const deferSeconds = 1

// maxUnsent is how many bytes of answers the kernel takes for a TCP connection
// before it can send them. Otherwise it takes up to 4 MiB for each, and clients
// that read nothing, of which there may be thousands while they follow changes,
// use up the memory for TCP of the whole machine.
const maxUnsent = 128 << 10

// setFile stores file, a non-blocking listening socket, in l. From then on, l
// owns the file. Accepted connections inherit the options, so that no process has
// to set them for each connection: answers go out at once, and a client whose
// machine is gone is noticed after three minutes.
func (l *Listener) setFile(file *os.File) (_ *Listener, err error) {
	l.file = file
	if l.raw, err = file.SyscallConn(); err == nil && l.Network == ipc.TCP {
		for _, o := range [][3]int{
			{unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, deferSeconds},
			{unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent},
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15}, // seconds
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
		} {
			_ = unix.SetsockoptInt(l.FD(), o[0], o[1], o[2])
		}
	}
	return l, errs.Wrap(err, errs.Internal, "listen on %s", l.Name)
}

// listenUnix makes the UNIX socket of e.
func listenUnix(e ipc.Listen, o socket.Options) ([]*Listener, error) {
	s, err := socket.Open(e.Path, o)
	if err != nil {
		return nil, err
	}
	l, err := (&Listener{Listening: ipc.Listening{Network: ipc.Unix, Name: e.Text}, remove: s.Remove}).setFile(s.File)
	return []*Listener{l}, err
}

// bindAll listens on the addresses in e. It skips addresses that this machine
// does not have, for example because IPv6 is disabled. If no address is left,
// it returns an error. The calling thread must be in the network namespace s.
func bindAll(e ipc.Listen, s *netns.Namespace) (list []*Listener, err error) {
	var missing error
	for _, a := range e.Addresses {
		l, err := bindTCP(a)
		switch {
		case err == nil:
			l.TLS, l.OtherNetns = e.TLS, s != nil
			list = append(list, l)
		case errors.Is(err, unix.EADDRNOTAVAIL), errors.Is(err, unix.EAFNOSUPPORT):
			missing = err
		default:
			return list, explainBind(err, a.String(), s)
		}
	}
	if len(list) == 0 {
		return nil, explainBind(missing, e.Text, s)
	}
	return list, nil
}

// bindTCP listens on an address. The unspecified IPv6 address, as in ":6820" and
// "[::]:6820", means all addresses of both IPv6 and IPv4; 0.0.0.0 means those of
// IPv4 only. bindTCP does not use package net, because package net checks for
// IPv6 only once, in the first namespace that it sees, and listens on IPv6, too,
// if the address is 0.0.0.0. The socket does not use multipath TCP, because
// firewall rules and Landlock rules do not cover it.
func bindTCP(at netip.AddrPort) (*Listener, error) {
	l, err := bindOne(at)
	if at.Addr() == netip.IPv6Unspecified() && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)) {
		return bindOne(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()))
	}
	return l, err
}

// backlog is the maximum number of connections that can wait to be accepted.
// The kernel limits it to net.core.somaxconn.
const backlog = 1<<16 - 1

func bindOne(at netip.AddrPort) (*Listener, error) {
	family, sa := sockaddr.Sockaddr(at)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), at.String())
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	bound, boundErr := syscall.Getsockname(fd)
	if err = cmp.Or(err, boundErr); err != nil {
		file.Close()
		return nil, err
	}
	return (&Listener{Listening: ipc.Listening{Network: ipc.TCP, Name: nameTCP(bound, at.Addr().Zone())}}).setFile(file)
}

// nameTCP returns the name of a listener that is bound to the address a.
func nameTCP(a syscall.Sockaddr, zone string) string {
	at := sockaddr.AddrPort(a)
	return netip.AddrPortFrom(at.Addr().WithZone(zone), at.Port()).String()
}

func explainBind(err error, address string, s *netns.Namespace) error {
	if s != nil {
		address += " in " + s.String()
	}
	return errs.New(errs.Unavailable, "listen on %s: %v", address, err).WithHint("%s", bindHints[err])
}

// bindHints holds the hint for each error of bindTCP that an administrator can
// remove.
var bindHints = map[error]string{
	unix.EADDRINUSE: "another program listens there, or a socket unit has opened the port: stop that, or use another port",
	unix.EACCES:     "ports below 1024 need root: use a higher port, or let systemd open the port (ListenStream= in schedrestd.socket)",
	unix.EPERM: "a unit permits only the ports in its SocketBindAllow=: run systemctl edit schedrestd, and add SocketBindAllow=tcp:PORT " +
		"to [Service]; for addresses of clients use ListenStream= in schedrestd.socket instead",
	unix.EADDRNOTAVAIL: "there is no such address: ip addr shows those of this machine, and nsenter --net=PATH ip addr those of a network namespace",
}
