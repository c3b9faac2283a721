package feed

import (
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
)

// Shares divides what feeds use among users, so that a user with many feeds does
// not delay the passes of others.
type Shares struct {
	turns *semaphore.Semaphore[string] // a place is a pass; keys are users
	feeds *semaphore.Semaphore[string] // a place is a narrow feed, limit.WholeList of them a whole one
}

// NewShares returns Shares of which nothing is used.
func NewShares() *Shares {
	return &Shares{
		turns: semaphore.New[string](limit.Passes),
		feeds: semaphore.New[string](limit.Feeds),
	}
}

// errTooMany refuses a client that would need another feed.
var errTooMany = errs.New(errs.TooMany, "server busy: too many lists are read for this user to find changes").
	WithHint("follow fewer lists with different flags or tokens, or send the request without wait")
