package daemon

import (
	"runtime"
	"time"

	"schedrestd/semaphore"
)

// MaxQueries is the maximum number of long answers that a daemon computes at a
// time. Further requests wait.
const MaxQueries = 8

// MaxUserQueries returns how many long answers a daemon computes concurrently
// for one user, so that no user's queries occupy all processors.
func MaxUserQueries() int { return min(max(1, runtime.GOMAXPROCS(0)/2), MaxQueries/2) }

// maxQueryWait limits how long a query waits for its turn.
const maxQueryWait = 30 * time.Second

// NewQueries returns a semaphore that limits how many long answers are computed
// concurrently, in total and for each user. Each of them takes memory.
func NewQueries() *semaphore.Semaphore[uint32] {
	return semaphore.New[uint32](MaxQueries, MaxUserQueries(), maxQueryWait)
}
