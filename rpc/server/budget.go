package server

import (
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
)

// A budget limits either how many bytes of requests are stored in memory, or
// how many bytes of answers are stored on disk. It has a limit for the total
// and a limit for each user. Bytes are counted before they are stored.
type budget struct {
	bytes      *semaphore.Semaphore[uint32] // a place is a byte
	maxPerUser int
	super      func(uid uint32) bool // the limits do not apply to these users
	resource   string                // kind of bytes, for the error
}

// newBudget returns a budget with the bytes of a row.
func newBudget(row semaphore.Row, super func(uid uint32) bool, resource string) budget {
	return budget{semaphore.New[uint32](row), row.Share, super, resource}
}

// A reservation is the part of a budget that a request or an answer uses.
type reservation struct {
	*semaphore.Place[uint32]
	resource string
}

// reservation returns a reservation of no bytes for the user with this uid.
func (b *budget) reservation(uid uint32) reservation {
	if b.super(uid) {
		return reservation{semaphore.Unlimited[uint32](), b.resource}
	}
	return reservation{b.bytes.Empty(uid), b.resource}
}

// grow reserves n more bytes.
func (r reservation) grow(n int) error {
	if !r.Grow(n) {
		return errs.New(errs.TooMany, "too many concurrent %s", r.resource)
	}
	return nil
}
