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
	super      func(uid uint32) bool
	resource   string // kind of bytes, for the error
}

func newBudget(total, perUser int, super func(uid uint32) bool, resource string) budget {
	return budget{semaphore.New[uint32](total, perUser, 0), perUser, super, resource}
}

// reserve counts n bytes as used by the user with this uid, until the caller
// calls release.
func (b *budget) reserve(uid uint32, n int) (release func(), err error) {
	if b.super(uid) {
		return func() {}, nil
	}
	if ok, _ := b.bytes.Empty(uid).Grow(n, 0); !ok {
		return nil, errs.New(errs.TooMany, "too many concurrent %s", b.resource)
	}
	return func() { b.release(uid, n) }, nil
}

// release stops counting n bytes for uid.
func (b *budget) release(uid uint32, n int) {
	if !b.super(uid) {
		b.bytes.Free(uid, n)
	}
}
