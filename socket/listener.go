package socket

import (
	"net"
	"sync"

	"schedrestd/errs"
	"schedrestd/rights"
)

// Listener is a UNIX socket that is unlinked when it is closed, if it is still this one.
type Listener struct {
	*net.UnixListener
	socket *Socket
	close  sync.Once
}

// Listen is Open for those who accept by package net.
func Listen(path string, o Options) (*Listener, error) {
	s, err := Open(path, o)
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

// Close removes the socket and stops listening. Closed again, it is net.ErrClosed.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.close.Do(func() {
		l.socket.Remove()
		err = rights.Release(l.UnixListener) // with those that were not accepted
	})
	return err
}
