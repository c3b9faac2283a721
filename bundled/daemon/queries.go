package daemon

import (
	"context"
	"runtime"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// NewQueries returns a semaphore that limits how many long answers are computed
// concurrently, in total and for each user. One user's queries don't occupy all
// processors.
func NewQueries() *semaphore.Semaphore[uint32] {
	return semaphore.New[uint32](limit.DaemonQueries.WithShare(min(max(1, runtime.GOMAXPROCS(0)/2), limit.DaemonQueries.Share)))
}

// ListHandler returns a handler for a request whose answer grows with the
// number of records. The handler first waits for a slot of the semaphore, and
// fails if the client closes its connection meanwhile. When it has a slot, the
// handler calls h, which decodes the request and returns the answer. Finally,
// the handler encodes the answer.
func ListHandler(queries *semaphore.Semaphore[uint32], h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		slot, err := queries.Acquire(ctx, r.Identity.UID)
		if err != nil {
			return 0, nil, errs.Wrap(err, errs.TooMany, "too many concurrent queries")
		}
		defer slot.Release()
		t, body, err := h(ctx, r)
		if err != nil {
			return 0, nil, err
		}
		body, err = r.Spool(t, body)
		return t, body, err
	}
}
