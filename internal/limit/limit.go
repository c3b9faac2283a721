// Package limit is the table of all limits on what clients, users and processes
// share: places that they hold for a while (places.go), rates at which they may
// use something (rates.go) and penalties (penalties.go). Each limit is a row. The
// constructors of the three engines, packages semaphore, rate and penalty, take
// only rows, and a test fails if a row is made elsewhere. Only the rows of the
// parent are in package privsep, because the parent must not link this table; a
// test compares them.
//
// The table is the source of docs/generated/LIMITS.md. It answers the question
// that matters for each row: whether one user can take all of it (AllPlaces,
// AllTokens).
package limit

import (
	"fmt"

	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
)

// AllPlaces returns who can hold all places of a row.
func AllPlaces(r semaphore.Row) string {
	switch {
	case r.Shared != "":
		return "anyone: " + r.Shared
	case r.Lends:
		return fmt.Sprintf("each %s, while no other waits", r.Key)
	case r.Parts > 1 || r.Share > 0 && r.Share < r.Total:
		return "none"
	case r.Displaces:
		return fmt.Sprintf("each %s, until others need them", r.Key)
	}
	return fmt.Sprintf("each %s, but then others have their turn", r.Key)
}

// Counted returns the counts of all rows of workers that have some, in the order
// of the table. The metrics show them.
func Counted() (list []*semaphore.Counts) {
	for _, r := range Places {
		if r.Counts != nil {
			list = append(list, r.Counts)
		}
	}
	return list
}

// AllTokens returns who can use up a bucket of a row.
func AllTokens(r rate.Row) string {
	if r.Shared != "" {
		return "anyone: " + r.Shared
	}
	return "none"
}
