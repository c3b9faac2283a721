package limiter

import (
	"context"
	"net/http"

	"schedrestd/auth"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/count"
	"schedrestd/ipc/work"
)

// Config holds what a Limiter needs from other parts of the worker.
type Config struct {
	Setup   *work.Setup
	Rules   auth.Rules // which claims of a token name the user
	Table   *conns.Table
	Counts  *count.Counters
	Handler http.Handler                                      // answers the requests
	Refuse  func(http.ResponseWriter, *http.Request, error)   // answers the others
	Expired func(context.Context, auth.Rejection) (only bool) // reports whether a token is only out of date; may be nil
}
