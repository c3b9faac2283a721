package worker

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/limiter"
	"schedrestd/internal/errs"
	"schedrestd/internal/errs/errcode"
	"schedrestd/ipc"
)

// refusals holds the errors for refused connections, by status.
var refusals = map[int]struct {
	err       *errs.Error
	retryable bool
}{
	http.StatusForbidden:          {errs.New(errs.Denied, "this user may not use this server"), false},
	http.StatusTooManyRequests:    {limiter.ErrBlocked, true},
	http.StatusServiceUnavailable: {errs.New(errs.Unavailable, "server busy: no worker is available"), true},
}

// refusedAnswer returns the complete answer to a refused connection, or nil if
// refusals has no entry for the status in m. The answer always uses HTTP/1.1,
// because the request is not read. The texts in refusals need no escaping in
// JSON.
func refusedAnswer(m *ipc.Connection) []byte {
	status := int(m.RefuseStatus)
	refusal, ok := refusals[status]
	if !ok {
		return nil
	}
	retryAfter := ""
	if m.RetryAfter > 0 {
		retryAfter = "Retry-After: " + strconv.Itoa(int(m.RetryAfter)) + "\r\n"
	}
	name := http.StatusText(status)
	body := fmt.Sprintf(`{"meta":{},"errors":[{"description":%q,"error_number":0,"error":%q,"source":"","code":%q,"retryable":%t}],"warnings":[]}`,
		refusal.err.Message, name, errcode.Of(refusal.err.Kind), refusal.retryable)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, name, retryAfter, len(body), body)
}

// If a connection is closed with an unread request, the kernel resets it, and
// the client may get the reset instead of the answer. So a refused connection
// stays open for a moment after the answer. While maxRefused of them are open,
// further refused connections are closed without an answer.
const (
	refusedLinger = time.Second
	maxRefused    = 64
)

// refuseConn answers and closes a connection that the dispatcher refuses. The
// dispatcher does not count the connection, so nothing is reported about it.
func (s *server) refuseConn(fd int, m *ipc.Connection) {
	c, err := clientconn.New(fd, m, refusedLinger)
	if err != nil {
		return
	}
	if s.refused.Add(1) > maxRefused {
		s.refused.Add(-1)
		_ = c.Close()
		return
	}
	answered := s.table.Hold() // a draining worker writes the answer first
	go func() {
		defer s.refused.Add(-1)
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(refusedLinger))
		_, err := c.Write(refusedAnswer(m))
		if err == nil {
			err = c.CloseWrite()
		}
		answered()
		if err == nil {
			_, _ = io.Copy(io.Discard, c.Conn)
		}
	}()
}
