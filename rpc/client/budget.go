package client

import (
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// Budget limits the memory for answers whose records have not been passed to
// the caller yet. A daemon sends an answer faster than a slow client reads the
// records. Without a limit, a few dozen slow clients would make one process use
// gigabytes. A Budget is safe for concurrent use.
//
// An answer gets its memory piece by piece while it arrives, and uses less as
// its records are decoded. The first piece of an answer (wire.PieceSize) uses no
// memory of the budget. No answer waits for memory: where memory is short, the
// rest of an answer stays on its connection (see caller.receive). Two rules
// prevent a few users from using all memory:
//
// First, an eighth of the budget is reserved for short answers (see the method
// short). Without it, a few clients that do not read their long answers use all
// memory and all connections for long answers (see gate). Then not one of ten
// lists of 300 jobs is answered in time. With it, each takes 1 ms.
//
// Second, a user gets at most half of the budget, unless they have only one
// answer. All their tokens count together (holderOf).
type Budget struct {
	size int

	reclaim []func(holder string) bool // each frees memory of a holder ("" for any) that is not needed, and returns false if there is none; set before use

	bytes *semaphore.Semaphore[string] // a place is a byte; keys are holders
}

const (
	defaultAnswers = 256 << 20 // size of a Client's own Budget
	maxShort       = 1 << 20   // maximum length of a short answer
)

// NewBudget returns a Budget of size bytes.
func NewBudget(size int) *Budget {
	return &Budget{size: size, bytes: semaphore.New[string](limit.AnswerMemory.Of(size))}
}

// shortReserve returns the number of bytes that long answers may not use.
func (b *Budget) shortReserve() int { return b.size / 8 }

// short reports whether an answer of n bytes may use the reserve.
func (b *Budget) short(n int) bool { return n <= min(maxShort, b.shortReserve()/4) }

// An Allowance is the part of a Budget that one answer uses, or data that this
// package does not store, such as the body of a client's request or of the gateway's
// answer. It counts towards the limit on its user.
type Allowance struct {
	*semaphore.Place[string] // acquire grows it
	budget                   *Budget
	holder                   string
	short                    bool // the answer may use the reserve for short answers
}

// Reserve returns an Allowance of no bytes.
func (b *Budget) Reserve(cred model.Credential) *Allowance { return b.allowance(holderOf(cred)) }

func (b *Budget) allowance(holder string) *Allowance {
	return &Allowance{Place: b.bytes.Empty(holder), budget: b, holder: holder}
}

// acquire reserves n more bytes, if necessary in place of answers that are only
// kept for later (store). If the holder has reached their own limit, these are
// their own answers, because those of others would not help. It does not wait, and
// reports whether it succeeded.
func (r *Allowance) acquire(n int) bool {
	ok, holder := r.tryAcquire(n)
	for _, reclaim := range r.budget.reclaim {
		for !ok && reclaim(holder) {
			ok, holder = r.tryAcquire(n)
		}
	}
	return ok
}

// tryAcquire works like acquire, but frees no memory. Instead, it returns the holder
// whose memory would have to be freed, or "" for any.
func (r *Allowance) tryAcquire(n int) (ok bool, holder string) {
	spare := r.budget.shortReserve()
	if r.short {
		spare = 0
	}
	ok, overShare := r.GrowLeaving(spare, n)
	if overShare {
		holder = r.holder
	}
	return ok, holder
}

// Grow reserves n more bytes for data that is no answer of a daemon. Only a user who
// uses little memory gets the reserve for short answers, because long data may grow
// in small parts. Grow does not wait, and reports whether it succeeded.
func (r *Allowance) Grow(n int) bool {
	r.short = r.budget.short(r.budget.bytes.Held(r.holder) + n)
	return r.acquire(n)
}
