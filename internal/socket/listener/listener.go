// Package listener listens on UNIX sockets that package socket opens. It is for
// programs that accept connections through package net. The privileged parent
// accepts connections without package net, so it does not use this package.
package listener

import (
	"net"
	"sync"

	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/socket"
)

// Listener is a listening UNIX socket. Close unlinks the socket's path, unless
// another file is at that path by then.
type Listener struct {
	*net.UnixListener
	socket    *socket.Socket
	closeOnce sync.Once
}

// Listen opens a UNIX socket with socket.Open, and returns a Listener for it.
func Listen(path string, o socket.Options) (*Listener, error) {
	s, err := socket.Open(path, o)
	if err != nil {
		return nil, err
	}
	defer s.File.Close() // the listener has a descriptor of its own
	ln, err := net.FileListener(s.File)
	if err != nil {
		s.Remove()
		return nil, errs.Wrap(err, errs.Internal, "socket %s", path)
	}
	return &Listener{UnixListener: ln.(*net.UnixListener), socket: s}, nil
}

// Close removes the socket and stops listening. If the listener is already
// closed, Close returns net.ErrClosed.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.closeOnce.Do(func() {
		l.socket.Remove()
		err = fdpass.Release(l.UnixListener) // closes the last descriptor and, with it, the connections that were not accepted
	})
	return err
}
