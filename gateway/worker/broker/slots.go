package broker

import (
	"context"

	"schedrestd/internal/semaphore"
)

// The type slots limits how many questions of a kind are pending. While clients
// of several users or sources wait, they take turns, and one of them gets at most
// half of the slots.
type slots struct{ *semaphore.Semaphore[string] }

func newSlots(row semaphore.Row) slots { return slots{semaphore.New[string](row)} }

// acquire waits for a free slot, or until ctx ends. The key is a user or a source.
// The caller must call release.
func (s slots) acquire(ctx context.Context, key string) (release func(), err error) {
	place, err := s.Acquire(ctx, key)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	return place.Release, nil
}
