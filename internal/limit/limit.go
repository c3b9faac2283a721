// Package limit is the table of all limits on what clients, users and processes
// share: places that they hold for a while (places.go), rates at which they may
// use something (rates.go) and penalties (penalties.go). Each limit is a row. The
// constructors of the three engines, packages semaphore, rate and penalty, take
// only rows, and a test fails if a row is made elsewhere. Only the rows of the
// parent are in package privsep, because the parent must not link this table; a
// test compares them.
//
// The table is the source of docs/generated/LIMITS.md. It answers the question
// that matters for each row: whether one user can take all of it.
package limit

import "schedrestd/internal/semaphore"

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
