package client

import (
	"context"
	"time"

	"schedrestd/internal/semaphore"
)

// Limits on a burst of requests to a controller. A controller that has more
// requests than threads serves them in no particular order. If it runs on the
// same machine, its threads also keep this process waiting for a processor. Without
// the limits, the slowest 1% of the pings of 16 clients took twice as long.
const (
	burst     = 4
	burstTime = 5 * time.Millisecond
)

// burstLimit limits the unanswered requests to a controller. When their number
// reaches burst, further requests wait, and users take turns. A request
// counts only until it is burstTime old, so a slow controller gets more than
// burst requests at a time.
type burstLimit struct{ *semaphore.Semaphore[string] }

func newBurstLimit() burstLimit {
	return burstLimit{semaphore.New[string](burst, burst, semaphore.Forever)}
}

// enter waits until the request may be sent. The caller must call leave when it
// has the answer. If ctx ends first, enter returns the cause of ctx.
func (l burstLimit) enter(ctx context.Context, holder string) (leave func(), err error) {
	p, err := l.Acquire(ctx, holder)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	timer := time.AfterFunc(burstTime, p.Release)
	return func() {
		timer.Stop()
		p.Release()
	}, nil
}
