package worker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"schedrestd/auth"
	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/limiter"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// refusals has the errors for refused connections, by status.
var refusals = map[uint16]error{
	http.StatusForbidden:          errs.New(errs.Denied, "this user may not use this server"),
	http.StatusTooManyRequests:    limiter.ErrBlocked,
	http.StatusServiceUnavailable: errs.New(errs.Unavailable, "server busy: no worker is available"),
}

// refusedAnswer returns the complete answer to a refused connection, or nil if
// refusals has no entry for the status in m. The answer always uses HTTP/1.1,
// because the request is not read.
func (s *server) refusedAnswer(c *clientconn.Conn, m *ipc.Connection) []byte {
	err, ok := refusals[m.RefuseStatus]
	if !ok {
		return nil
	}
	retryAfter := ""
	if m.RetryAfter > 0 {
		retryAfter = fmt.Sprintf("Retry-After: %d\r\n", m.RetryAfter)
	}
	id, body := s.handler.RefuseUnread(auth.WithPeer(context.Background(), c.Peer), err)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nX-Request-Id: %s\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		m.RefuseStatus, http.StatusText(int(m.RefuseStatus)), id, retryAfter, len(body), body)
}

// If a connection is closed with an unread request, the kernel resets it, and
// the client may get the reset instead of the answer. So a refused connection
// stays open for a moment after the answer. There is a limit on them
// (limit.RefusedConns).
const refusedLinger = time.Second

// awaitRequest waits until the client begins its request, or until half of
// refusedLinger has passed. Go's net/http takes an answer that comes before the
// request for a fault of the server, so that its user sees an error instead of
// the answer.
func awaitRequest(c interface {
	io.Reader
	SetReadDeadline(time.Time) error
}, end time.Time) {
	var first [1]byte
	if c.SetReadDeadline(end.Add(-refusedLinger/2)) == nil {
		_, _ = c.Read(first[:])
		_ = c.SetReadDeadline(end)
	}
}

// refuseConn answers and closes a connection that the dispatcher refuses. The
// dispatcher does not count the connection, so nothing is reported about it.
func (s *server) refuseConn(fd int, m *ipc.Connection) {
	c, err := clientconn.New(fd, m, refusedLinger)
	if err != nil {
		return
	}
	place := s.refused.Empty(struct{}{})
	if !place.Grow(1) {
		_ = c.Close()
		return
	}
	answered := s.table.Hold() // a draining worker writes the answer first
	go func() {
		defer place.Release()
		defer c.Close()
		end := time.Now().Add(refusedLinger)
		_ = c.SetDeadline(end)
		awaitRequest(c, end)
		_, err := c.Write(s.refusedAnswer(c, m))
		if err == nil {
			err = c.CloseWrite()
		}
		answered()
		if err == nil {
			_, _ = io.Copy(io.Discard, c.Conn)
		}
	}()
}
