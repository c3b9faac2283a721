package privsep

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// listener is one bound socket. The parent accepts from it and never reads a byte
// of what it accepted.
type listener struct {
	network ipc.Network
	name    string // its address, or unix:PATH
	tls     bool
	file    *os.File
	raw     syscall.RawConn
	remove  func() // takes a UNIX socket out of the file system
}

// listenAll opens every LISTEN argument, after what the service manager passed, or none.
func listenAll(c Config, who service) (list []*listener, err error) {
	defer func() {
		if err != nil {
			closeAll(list)
		}
	}()
	endpoints, err := parseEndpoints(c)
	if err != nil {
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
	for _, e := range endpoints {
		var more []*listener
		if e.network == ipc.Unix {
			more, err = listenUnix(e, c, who)
		} else {
			more, err = listenTCP(e)
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
	l.file.Close()
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
// have (IPv6 switched off, say) is passed over.
func listenTCP(e endpoint) (list []*listener, err error) {
	addresses, err := e.addresses()
	if err != nil {
		return nil, err
	}
	var missing error
	for _, a := range addresses {
		l, err := bindTCP(a)
		switch {
		case err == nil:
			l.tls = e.tls
			list = append(list, l)
		case errors.Is(err, unix.EADDRNOTAVAIL), errors.Is(err, unix.EAFNOSUPPORT):
			missing = err
		default:
			return list, explainBind(err, a)
		}
	}
	if len(list) == 0 {
		return nil, explainBind(missing, e.text)
	}
	return list, nil
}

// bindTCP listens on a literal address. Without multipath TCP: rules of a firewall
// and of Landlock do not cover it.
func bindTCP(address string) (*listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	return newListener(ipc.TCP, ln.Addr().String(), file)
}

func explainBind(err error, address string) error {
	var hint string
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		hint = "another program listens there: name another port, or stop it"
	case errors.Is(err, unix.EACCES):
		hint = "a port below 1024 needs root, or CAP_NET_BIND_SERVICE"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		hint = "this machine has no such address"
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
