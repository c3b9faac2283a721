package rest

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"schedrestd/api"
)

// A server can delay its answer until it differs from the client's last one
// (List.Wait). The client asks for this with the header Prefer (RFC 7240), which
// servers that can't wait ignore. The answer says whether the server can.

// maxWait is how long the server may delay an answer. Many proxies close a
// connection on which nothing is sent for 50 or 60 seconds.
const maxWait = 45 * time.Second

var preferWait = "wait=" + strconv.Itoa(int(maxWait/time.Second))

// The states of a job for which a server can wait (List.Until).
const (
	UntilRunning = api.UntilRunning
	UntilEnded   = api.UntilEnded
)

// appliedWait returns how long the server can delay an answer, according to the
// header of an answer. It returns 0 if the server can't.
func appliedWait(h http.Header) time.Duration {
	for _, line := range h.Values("Preference-Applied") {
		for preference := range strings.SplitSeq(line, ",") {
			value, ok := strings.CutPrefix(strings.TrimSpace(preference), "wait=")
			if n, err := strconv.ParseUint(value, 10, 31); ok && err == nil {
				return min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	return 0
}

// maxRetryAfter limits the time for which a server can make the client pause.
const maxRetryAfter = time.Minute

// A delayedError is the error of a request that may be repeated after a time.
type delayedError struct {
	error
	after time.Duration
}

func (e *delayedError) Unwrap() error { return e.error }

// withRetryAfter adds the time in the header of an answer to its error, if the
// header has one.
func withRetryAfter(err error, h http.Header) error {
	seconds, parseErr := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if parseErr != nil {
		return err
	}
	return &delayedError{err, min(time.Duration(seconds)*time.Second, maxRetryAfter)}
}

// RetryAfter returns the time after which the request that failed with err may
// be repeated, according to the server. It returns 0 if the server named none.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*delayedError](err); ok {
		return e.after
	}
	return 0
}
