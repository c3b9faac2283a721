package daemon

import (
	"runtime"
	"time"

	"schedrestd/semaphore"
)

// MaxQueries is how many long answers a daemon computes concurrently. Others wait.
const MaxQueries = 8

// MaxUserQueries returns how many of them are of one user: no user's queries
// occupy all processors.
func MaxUserQueries() int { return min(max(1, runtime.GOMAXPROCS(0)/2), MaxQueries/2) }

// queryPatience is how long a query waits for its turn.
const queryPatience = 30 * time.Second

// NewQueries returns a semaphore for the long answers that a daemon computes
// concurrently, so that they fit into memory and no user has all of them.
func NewQueries() *semaphore.Semaphore[uint32] {
	return semaphore.New[uint32](MaxQueries, MaxUserQueries(), queryPatience)
}
