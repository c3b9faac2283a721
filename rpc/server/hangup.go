package server

import (
	"context"
	"errors"
	"os"
	"time"
)

// errClientClosed is the cause with which a request's context is cancelled if
// the client closes the connection.
var errClientClosed = errors.New("the client closed the connection")

// watchHangup returns a context for the handler of a request. The context ends
// when the client closes the connection or shuts down its own sending side. The
// caller must call stop before it reads from the connection again.
func (c *conn) watchHangup(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if len(c.readAhead) > 0 { // the client has already sent its next request, which hides the end of the connection
		return ctx, func() { cancel(nil) }
	}
	c.nc.SetReadDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var b [1]byte
		n, err := c.nc.Read(b[:])
		if c.readAhead = b[:n]; n == 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel(errClientClosed)
		}
	}()
	return ctx, func() {
		c.nc.SetReadDeadline(time.Unix(1, 0))
		<-done
		cancel(nil)
	}
}

// Read reads from the client. It first returns the bytes that watchHangup has
// read.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.readAhead) > 0 {
		n := copy(p, c.readAhead)
		c.readAhead = c.readAhead[n:]
		return n, nil
	}
	return c.nc.Read(p)
}
