package daemon

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/notify"
	"schedrestd/internal/socket"
	"schedrestd/internal/socket/listener"
)

// passedSockets returns the sockets that the service manager passed to this
// process.
var passedSockets = sync.OnceValues(notify.Sockets)

// passedListeners returns listeners for the sockets that the service manager
// passed. Each socket must be bound to the configured address and port or to
// the configured path, because clients connect there. If a passed socket had a
// different port, the configured port would be free, and any user could bind
// it.
func passedListeners(address, path string, o socket.Options) (list []net.Listener, err error) {
	files, err := passedSockets()
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "use the service manager's sockets")
	}
	for _, f := range files {
		ln, err := adopt(f, address, path, o)
		if err != nil {
			return list, err
		}
		list = append(list, ln)
	}
	return list, nil
}

func adopt(f *os.File, address, path string, o socket.Options) (net.Listener, error) {
	if !listens(f) {
		return nil, errs.New(errs.Invalid, "the service manager passed %q, which is not a listening stream socket", f.Name()).
			WithHint("use ListenStream= and Accept=no in the socket unit")
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "use the service manager's socket %q", f.Name())
	}
	switch addr := ln.Addr().(type) {
	case *net.TCPAddr:
		err = matchTCP(addr.AddrPort(), address)
	case *net.UnixAddr:
		if err = matchUnix(addr.Name, path); err == nil {
			err = listener.CheckActivated(path, o)
		}
		_ = control(f, fdpass.Refuse)
	}
	if err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// matchTCP returns an error unless the passed socket is bound to the configured
// address.
func matchTCP(bound netip.AddrPort, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return errs.Wrap(err, errs.Invalid, "address %s", address)
	}
	ips, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "look up host %s", host)
	}
	for _, ip := range ips {
		if ip.Unmap() == bound.Addr().Unmap() && port == strconv.Itoa(int(bound.Port())) {
			return nil
		}
	}
	return mismatch(bound.String(), address)
}

// matchUnix returns an error unless the passed socket is bound to the
// configured path.
func matchUnix(bound, path string) error {
	if path == "" {
		return mismatch(bound, "no UNIX socket")
	}
	if bound == path {
		return nil
	}
	have, err := os.Lstat(bound)
	if err != nil {
		return mismatch(bound, path)
	}
	want, err := os.Lstat(path) // the path may contain a link, such as /var/run
	if err != nil || !os.SameFile(have, want) {
		return mismatch(bound, path)
	}
	return nil
}

func mismatch(bound, want string) error {
	return errs.New(errs.Invalid, "socket mismatch: the service manager passed %s, the configuration has %s", bound, want).
		WithHint("make them equal: edit ListenStream= in the daemon's socket unit (systemctl edit), " +
			"or the host, the port and AuthInfo=socket= in the configuration")
}

// listens reports whether f is a listening stream socket.
func listens(f *os.File) (listening bool) {
	err := control(f, func(fd int) { listening = notify.IsListening(fd) })
	return err == nil && listening
}

// control calls fn with the descriptor of f.
func control(f *os.File, fn func(fd int)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { fn(int(fd)) })
}
