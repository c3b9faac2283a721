package broker

import "context"

// The type slots limits how many questions of a kind are pending. The channel
// has an element for each of them.
type slots chan struct{}

// acquire waits for a free slot, or until ctx ends.
func (s slots) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) release() { <-s }
