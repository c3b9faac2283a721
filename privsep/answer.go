package privsep

import (
	"bytes"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/rights"
)

// The statuses that the parent can answer with. It has parsed nothing then: the text is the same
// for everybody, whatever was asked for.
const (
	statusForbidden   = 403 // the kernel's word about the peer is not good enough
	statusTooMany     = 429 // its source has to wait
	statusUnavailable = 503 // no worker can be had for it
)

// answers has one constant answer for each status, as a client of HTTP/1 reads it. What was
// written here is all that the parent ever says to a client, but for the number of seconds in tooMany.
var answers = map[int][]byte{
	statusForbidden: canned("403 Forbidden", "", "denied", false,
		"this connection's user may not be served here"),
	statusUnavailable: canned("503 Service Unavailable", "Retry-After: 5\r\n", "unavailable", true,
		"no worker can serve this connection now"),
}

// tooMany is the answer to who has to wait that long, around the seconds.
func tooMany(wait time.Duration) []byte {
	text := append(make([]byte, 0, len(tooManyHead)+len(tooManyTail)+5), tooManyHead...)
	text = strconv.AppendUint(text, uint64(max(1, seconds(wait))), 10)
	return append(text, tooManyTail...)
}

var tooManyHead, tooManyTail, _ = bytes.Cut(canned("429 Too Many Requests", "Retry-After: #\r\n", "too_many", true,
	"too much from where this connection comes was refused or could not be read; it is closed for a while"), []byte("#"))

// canned is the envelope with one error in it. None of its texts needs escaping;
// code is a word of package errcode.
func canned(status, header string, code string, retryable bool, description string) []byte {
	body := fmt.Sprintf(`{"meta":{},"errors":[{"description":%q,"error_number":0,"error":%q,"source":"","code":%q,"retryable":%t}],"warnings":[]}`,
		description, status[len("503 "):], code, retryable)
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, header, len(body), body)
}

// refuseWith answers the connection fd, which it owns from here on, with one of answers or tooMany, and
// closes it. It never waits and reads nothing.
func refuseWith(fd int, text []byte) {
	// A client that takes nothing gets nothing: a new connection has room for this much.
	_ = unix.Sendto(fd, text, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	done := func() {
		rights.Close(fd)
		lingering.Add(-1)
	}
	if n := lingering.Add(1); unix.Shutdown(fd, unix.SHUT_WR) != nil || n > mostLingering {
		done()
		return
	}
	time.AfterFunc(linger, done)
}

// A connection that is closed with a request unread is reset, and the client may see that
// instead of the answer. So it stays open for a moment, unless many do.
const (
	linger        = time.Second
	mostLingering = 64
)

var lingering atomic.Int32
