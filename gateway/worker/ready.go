package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"schedrestd/gateway/worker/keys"
	"schedrestd/rpc/client"
)

// draining is set while this worker finishes its requests before it exits.
// /readyz then tells load balancers to send no more requests. A retired worker
// does not set draining, because other workers still serve. A process runs at
// most one worker, so this can be a global variable.
var draining atomic.Bool

// readiness returns the check behind /readyz. The check returns the reasons why
// load balancers should send requests elsewhere. It calls reachable to find out
// whether a controller can be reached. If no controller is needed, reachable is
// nil.
func readiness(k *keys.Keys, reachable func(context.Context) bool) func(context.Context) []string {
	return func(ctx context.Context) (reasons []string) {
		if draining.Load() {
			reasons = append(reasons, "draining: this server is shutting down")
		}
		reasons = append(reasons, k.Problems(time.Now())...)
		if reachable != nil && !reachable(ctx) {
			reasons = append(reasons, fmt.Sprintf("controller: unreachable for %s", client.UnreachableAfter))
		}
		return reasons
	}
}
