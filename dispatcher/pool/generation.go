package pool

import (
	"log/slog"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Generation holds everything from which the workers of one generation are
// started. It belongs to the loop.
type Generation struct {
	Config
	ID        uint32
	Provision func(worker *work.Client, to *ipc.Channel) error // gives a ready worker its channels and keys; may block
	Audit     Auditor
	OnUnused  func() // called when the generation has no more users
	Replacing bool   // a service has exited, and the next generation is being built
	refs      int    // number of users of the generation: its pools and its creator
}

// Config configures the workers of a generation, and limits the time of each of
// their steps, such as the start.
type Config struct {
	Setup       work.Setup
	Workers     int // number of workers in a pool
	Connections int
	Threads     int           // of all workers of a pool together
	RotateAfter uint64        // Pool.OnRotate is called after this number of connections
	StartLimit  time.Duration // limit on the time until a worker sends Ready
	WaitLimit   time.Duration // how long a connection waits while no worker can take it
	Silence     time.Duration // a worker that does not answer a Ping for this time is killed
	RetireLimit time.Duration // after this time, a retired worker that still has connections is asked to finish
	LogBurst    int           // lines that a worker may log at once
	LogRate     int           // … and per second
	DialBurst   int           // connections to daemons that a worker may request at once
	DialRate    int           // … and per second
	Log         *slog.Logger
}

// Auditor is informed about connections and their workers. Its methods do not
// block.
type Auditor interface {
	ConnAssigned(worker uint32, c *ipc.Connection)
	ConnClosed(id uint64)
	WorkerExited(worker uint32, status string)
}

// NewGeneration returns a copy of g. The caller is its first user, and must
// call Release.
func NewGeneration(g Generation) *Generation {
	g.refs = 1
	return &g
}

// Hold adds one to the user count of g. The new user must call Release.
func (g *Generation) Hold() { g.refs++ }

// Release ends g when the last user of g calls it. The services of g end as
// well, because no worker can use them any more.
func (g *Generation) Release() {
	if g.refs--; g.refs == 0 && g.OnUnused != nil {
		g.OnUnused()
	}
}
