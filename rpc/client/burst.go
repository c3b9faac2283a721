package client

import (
	"context"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
)

// burstTime is how long a request counts as a new one.
const burstTime = 5 * time.Millisecond

// burstLimit limits the unanswered requests to a controller (limit.Bursts).
// Further requests wait, and users take turns. A request counts only until it is
// burstTime old, so a slow controller gets more requests at a time.
type burstLimit struct{ *semaphore.Semaphore[string] }

func newBurstLimit() burstLimit { return burstLimit{semaphore.New[string](limit.Bursts)} }

// enter waits until the request may be sent. The caller must call leave when it
// has the answer. If ctx ends first, enter returns the cause of ctx.
func (l burstLimit) enter(ctx context.Context, holder string) (leave func(), err error) {
	release, err := l.Enter(ctx, holder)
	if err != nil {
		return nil, err
	}
	timer := time.AfterFunc(burstTime, release)
	return func() {
		timer.Stop()
		release()
	}, nil
}
