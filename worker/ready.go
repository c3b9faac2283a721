package worker

import (
	"context"
	"sync/atomic"

	"schedrestd/errs"
	"schedrestd/rpc/client"
)

// leaving is set while this worker drains: it finishes its requests, and
// /readyz tells load balancers to send no more. A retired worker does not set
// it, because other workers go on serving. A process never has more than one
// worker, so this can be a package variable.
var leaving atomic.Bool

// readiness returns the check behind /readyz. Its error says why new requests
// should go elsewhere. reachable reports whether a controller can be reached;
// nil means that none is needed.
func readiness(reachable func(context.Context) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		switch {
		case leaving.Load():
			return errs.New(errs.Unavailable, "this server is shutting down")
		case reachable != nil && !reachable(ctx):
			return errs.New(errs.Unavailable, "the controller has been unreachable for %s", client.UnreachableAfter)
		}
		return nil
	}
}
