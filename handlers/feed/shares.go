package feed

import (
	"math"

	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
)

// Shares divides what feeds use among users, so that a user with many feeds does
// not delay the passes of others.
type Shares struct {
	turns *semaphore.Semaphore[string] // a place is a pass; keys are users
	feeds *semaphore.Semaphore[string] // a place is a narrow feed, wholeWeight of them a whole one
}

const (
	// maxPasses bounds the processors that passes use, and the requests for long
	// lists that others have to wait for, however many users wait for changes.
	// When a pass ends, the user with the fewest comes next. Since one user never
	// has all of them, another one does not wait for the end of a long pass.
	maxPasses     = 3
	maxUserPasses = 2

	// maxWhole limits the whole lists that are read for one user. Each of them
	// takes memory and its turn, and the controller sends it again and again.
	maxWhole    = 32
	wholeWeight = 8 // number of narrow feeds that cost as much as a whole one
)

// NewShares returns Shares of which nothing is used.
func NewShares() *Shares {
	return &Shares{
		turns: semaphore.New[string](maxPasses, maxUserPasses, semaphore.Forever),
		feeds: semaphore.New[string](math.MaxInt, maxWhole*wholeWeight, 0),
	}
}

// errTooMany refuses a client that would need another feed.
var errTooMany = errs.New(errs.TooMany, "server busy: too many lists are read for this user to find changes").
	WithHint("follow fewer lists with different flags or tokens, or send the request without wait")
