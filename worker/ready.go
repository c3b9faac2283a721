package worker

import (
	"context"
	"sync/atomic"

	"schedrestd/errs"
	"schedrestd/rpc/client"
)

// leaving is set when this worker drains: it answers what it has, and load balancers are told to
// send nothing more (/readyz). One that is retired is not: the gateway serves on, by other workers.
// A process is one worker for all its life.
var leaving atomic.Bool

// readiness is the answer of /readyz: nil, or why new requests should not come here.
// reachable reports whether a controller is; nil when none is needed.
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
