package limiter

import (
	"context"
	"net/http"

	"schedrestd/auth"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/count"
	"schedrestd/gateway/worker/proxy"
	"schedrestd/internal/errs"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/work"
)

// Config holds what a Limiter needs from other parts of the worker.
type Config struct {
	Setup   *work.Setup
	Table   *conns.Table
	Counts  *count.Counters
	Handler http.Handler                                      // answers the requests
	Refuse  func(http.ResponseWriter, *http.Request, error)   // answers the others
	Expired func(context.Context, auth.Rejection) (only bool) // reports whether a token is only out of date; may be nil
}

// A Limiter is the http.Handler of all requests, including HTTP/2 streams. Each
// request has a connection in the Table (see conns.Conn.With).
type Limiter struct {
	Config
	proxies proxy.Proxies
	places  *semaphore.Semaphore[string]
	rates   *rate.Buckets[string]
	parked  *semaphore.Semaphore[string] // requests that wait for a change
}

var (
	// ErrBlocked is the error that a blocked client gets.
	ErrBlocked = errs.New(errs.TooMany, "too many failed requests from this address; temporarily blocked").
			WithHint("check the credential, and retry after the time in Retry-After")

	// errOverloaded is the answer to a request that is well-formed, but has
	// waited too long because too many requests were in progress.
	errOverloaded = errs.New(errs.Unavailable, "server busy: concurrency limit reached")
)
