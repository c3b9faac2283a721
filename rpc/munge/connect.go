package munge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"schedrestd/become/peer"
)

// ErrUntrusted means that an untrusted user serves a socket.
var ErrUntrusted = errors.New("it is served by an untrusted user")

// retryDelay is how long to wait before the next attempt to connect to a socket
// whose queue is full. The kernel does not wait for room in the queue of a UNIX
// socket.
const retryDelay = 5 * time.Millisecond

// Connect calls dial to open a connection to munged, or to another daemon that
// issues credentials. If trusted returns false for the user who serves the
// socket, Connect fails with ErrUntrusted. While the socket's queue is full,
// Connect keeps trying until ctx ends.
func Connect(ctx context.Context, dial func(context.Context) (net.Conn, error), trusted func(uid uint32) bool) (net.Conn, error) {
	for {
		nc, err := dial(ctx)
		if err == nil {
			if err := verifyPeer(nc, trusted); err != nil {
				nc.Close()
				return nil, err
			}
			return nc, nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryDelay):
		}
	}
}

func verifyPeer(nc net.Conn, trusted func(uid uint32) bool) error {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return fmt.Errorf("%T: the kernel does not name the peer", nc)
	}
	p, err := peer.Of(sc)
	if err != nil {
		return err
	}
	if !trusted(p.UID) {
		return fmt.Errorf("%w: uid %d", ErrUntrusted, p.UID)
	}
	return nil
}
