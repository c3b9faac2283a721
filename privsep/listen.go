package privsep

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/rights"
)

// listener is one bound socket. The parent accepts from it and never reads a byte
// of what it accepted.
type listener struct {
	network ipc.Network
	name    string // its address, or unix:PATH
	tls     bool

	elsewhere bool // in the network namespace for TCP, which is not the gateway's own
	file      *os.File
	raw       syscall.RawConn
	remove    func() // takes a UNIX socket out of the file system
}

// listenAll opens every LISTEN argument, after what the service manager passed, or none.
func listenAll(c Config, who service) (list []*listener, err error) {
	defer func() {
		if err != nil {
			closeAll(list)
		}
	}()
	if err := checkListen(c); err != nil {
		return nil, err
	}
	if list, err = activated(c.Activated); err != nil {
		return list, err
	}
	for _, l := range list {
		if c.Switches.BecomeUser && l.network != ipc.Unix {
			return list, errs.New(errs.Invalid, "SCHEDRESTD_SECURITY=become_user can't serve %s, which the service manager passed", l.name).
				WithHint("ListenStream=/path/to/socket in the socket's unit")
		}
	}
	space, err := c.listenIn()
	if err != nil {
		return list, err
	}
	defer space.close()
	for _, e := range c.Listen {
		var more []*listener
		if e.Network == ipc.Unix {
			more, err = listenUnix(e, c, who)
		} else {
			more, err = listenTCP(e, space)
		}
		list = append(list, more...)
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

func closeAll(list []*listener) {
	for _, l := range list {
		l.close()
	}
}

// close stops listening; an accept that waits returns.
func (l *listener) close() {
	if l.remove != nil {
		l.remove()
	}
	_ = rights.Release(l.file) // with those that were not accepted
}

// newListener takes over a non-blocking listening descriptor.
func newListener(network ipc.Network, name string, file *os.File) (*listener, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "listen on %s", name)
	}
	return &listener{network: network, name: name, file: file, raw: raw}, nil
}

// listenTCP binds every address of e's host. One of several that this machine doesn't
// have (IPv6 switched off, say) is passed over. Its addresses are bound in s.
func listenTCP(e ipc.Listen, s *space) (list []*listener, err error) {
	err = s.inside(func() error {
		list, err = bindAll(e, e.Addresses, s)
		return err
	})
	return list, err
}

// listenIn is the network namespace for TCP.
func (c Config) listenIn() (*space, error) {
	if c.Netns != "" && !slices.ContainsFunc(c.Listen, func(e ipc.Listen) bool { return e.Network == ipc.TCP }) {
		return nil, errs.New(errs.Invalid, "SCHEDRESTD_NETNS=%s without a TCP address to open there", c.Netns).
			WithHint("name one; a socket that the service manager opens is where its unit says (NetworkNamespacePath=), and a UNIX socket in none")
	}
	return openSpace("SCHEDRESTD_NETNS", c.Netns)
}

// bindAll binds the addresses of e in the calling thread's network namespace, which is s.
func bindAll(e ipc.Listen, addresses []netip.AddrPort, s *space) (list []*listener, err error) {
	var missing error
	for _, a := range addresses {
		l, err := bindTCP(a)
		switch {
		case err == nil:
			l.tls, l.elsewhere = e.TLS, s != nil
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

// bindTCP listens on an address; the one that is no address is every one, of IPv6 and IPv4. By system calls,
// since package net remembers of the first namespace it sees whether there is IPv6. Without multipath TCP: rules of a
// firewall and of Landlock do not cover it.
func bindTCP(at netip.AddrPort) (*listener, error) {
	if !at.Addr().IsUnspecified() {
		return bindOne(at)
	}
	l, err := bindOne(netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()))
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return bindOne(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()))
	}
	return l, err
}

// backlog is as long as the kernel lets it be (net.core.somaxconn).
const backlog = 1<<16 - 1

func bindOne(at netip.AddrPort) (*listener, error) {
	family, sa := sockaddr(at)
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
	var bound unix.Sockaddr
	if err == nil {
		bound, err = unix.Getsockname(fd)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return newListener(ipc.TCP, nameTCP(bound, at.Addr().Zone()), file)
}

// nameTCP is the name of a listener that is bound at a.
func nameTCP(a unix.Sockaddr, zone string) string {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).WithZone(zone), uint16(a.Port)).String()
	}
	return ""
}

func explainBind(err error, address string, s *space) error {
	var hint string
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		hint = "another program listens there: name another port, or stop it"
	case errors.Is(err, unix.EACCES):
		hint = "a port below 1024 needs root, or CAP_NET_BIND_SERVICE"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		hint = "this machine has no such address"
		if s != nil {
			hint = "that network namespace has no such address: nsenter --net=PATH ip addr shows those that it has"
		}
	}
	if s != nil {
		address += " in " + s.what
	}
	var sys syscall.Errno
	if errors.As(err, &sys) {
		err = sys
	}
	return errs.New(errs.Unavailable, "can't listen on %s: %v", address, err).WithHint("%s", hint)
}

// names is what the listeners are called, for the log.
func names(list []*listener) []string {
	var s []string
	for _, l := range list {
		s = append(s, l.name)
	}
	slices.Sort(s)
	return s
}

// checkListen refuses what can't be listened on, before the first is opened.
func checkListen(c Config) error {
	for _, l := range c.Listen {
		switch {
		case l.Network == ipc.Unix && !filepath.IsAbs(l.Path):
			return errs.New(errs.Invalid, "can't listen on %s: not an absolute path", l.Text) // an abstract socket has no owner
		case l.TLS:
			if err := c.TLS.check(); err != nil {
				return errs.Wrap(err, errs.Invalid, "can't listen on %s", l.Text)
			}
		}
	}
	return nil
}
