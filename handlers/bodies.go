package handlers

import (
	"context"

	"schedrestd/errs"
)

// bodyMemory is the memory that the body of one request takes from its worker's
// budget. (Stored answers take memory from the same budget.) A body may have
// MaxBody bytes, and many requests may be in progress. Without the budget, one
// user with a token could make a worker use gigabytes.
type bodyMemory struct {
	call     *call
	reserved int
}

const (
	freeBody  = 1 << 20  // uncounted bytes per body; most bodies are shorter
	stepBody  = 4 << 20  // bytes that are reserved at a time
	largeBody = 64 << 10 // only a few longer bodies are parsed at a time, because parsing takes many times their memory
)

// MaxBody returns the maximum length of a body if the budget is the given
// number of bytes. One client may use half of the budget (client.Budget), and a
// body reserves it in steps of stepBody.
func MaxBody(memory int64) int64 { return max(freeBody, memory/2-stepBody) }

// grow makes sure that s has memory for a body of n bytes. If there is not
// enough memory, it fails at once. If it waited, two bodies that each hold half
// of the memory would wait for each other.
func (s *bodyMemory) grow(n int64) error {
	m := s.call.h.Memory
	for m != nil && n > freeBody+int64(s.reserved) {
		if !m.Hold(s.call.cred, stepBody) {
			return errs.New(errs.Unavailable, "server busy: too many large request bodies are being read")
		}
		s.reserved += stepBody
	}
	return nil
}

// release returns the memory.
func (s *bodyMemory) release() {
	if s.reserved > 0 {
		s.call.h.Memory.Release(s.call.cred, s.reserved)
		s.reserved = 0
	}
}

// parse calls f, which parses a body of n bytes. If the body is long, parse
// first waits while too many other long bodies are being parsed.
func (h *handler) parse(ctx context.Context, n int, f func() error) error {
	if n < largeBody {
		return f()
	}
	select {
	case h.parseSlots <- struct{}{}:
		defer func() { <-h.parseSlots }()
		return f()
	case <-ctx.Done():
		return cancelled(ctx.Err())
	}
}

// cancelled returns the error of a request that ended before its body could be
// parsed.
func cancelled(err error) error {
	return errs.Wrap(err, errs.Unavailable, "request cancelled before its body was parsed")
}
