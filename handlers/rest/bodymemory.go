package rest

import (
	"schedrestd/handlers/feed"
	"schedrestd/internal/errs"
)

// The body of a request takes memory from its worker's budget. (Stored answers
// use the same budget.) Without a budget, one user with a token could make a
// worker use gigabytes, by sending many long bodies.

const (
	freeBody  = 1 << 20  // uncounted bytes per body; most bodies are shorter
	stepBody  = 4 << 20  // bytes that are reserved at a time
	largeBody = 64 << 10 // minimum length of a large body; only a few large bodies are parsed at a time, because parsing takes many times a body's memory
)

// MaxBody returns the maximum length of a body, for a budget of the given
// number of bytes. One client may use half of the budget (client.Budget), and a
// body reserves memory in steps.
func MaxBody(memory int64) int64 { return max(freeBody, memory/2-stepBody) }

// Reserve returns an empty reservation of memory, which counts for the user of the
// request. The caller must free what it reserves.
func (q *request) Reserve() feed.Reservation { return q.server.Worker.Memory(q.cred) }

// growBody reserves memory for a body of n bytes, or fails at once if there is not
// enough. It does not wait, because two bodies that each have half of the
// memory would wait for each other.
func (q *request) growBody(n int64) error {
	if n <= freeBody {
		return nil
	}
	if q.memory == nil {
		q.memory = q.Reserve()
	}
	for n > freeBody+int64(q.memory.Size()) {
		if !q.memory.Grow(stepBody) {
			return errs.New(errs.Unavailable, "server busy: too many large request bodies are being read")
		}
	}
	return nil
}

// reserveParsed reserves memory for a body together with the values that are
// parsed from it, n bytes in all. A short text can contain so many values that
// they take a hundred times its length.
func (q *request) reserveParsed(n int64) error {
	if q.server.MaxParsed > 0 && n > q.server.MaxParsed+freeBody {
		return errs.New(errs.TooLarge, "the body contains too many values").
			WithHint("send several requests, or increase SCHEDRESTD_ANSWER_MEMORY")
	}
	return q.growBody(n)
}

// releaseBody returns the memory of the body.
func (q *request) releaseBody() {
	if q.memory != nil {
		q.memory.Shrink(q.memory.Size())
	}
}

// parse calls the function f to parse a body of n bytes. A long body first
// waits for its turn, because only a few long bodies are parsed at a time, and
// users take turns.
func (q *request) parse(n int, f func() error) error {
	if n >= largeBody {
		place, err := q.server.parsing.Acquire(q.r.Context(), q.client.User())
		if err != nil {
			return cancelled(err)
		}
		defer place.Release()
	}
	return f()
}

// cancelled returns the error for a request that was cancelled before it was
// carried out.
func cancelled(err error) error { return errs.Wrap(err, errs.Unavailable, "request cancelled") }
