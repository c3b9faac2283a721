package pool

import (
	"log/slog"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Generation holds everything that the workers of one generation are started
// with. It belongs to the loop.
type Generation struct {
	Config
	ID        uint32
	Greet     func(worker *work.Client, to *ipc.Channel) error // gives a ready worker what it needs for connections; it may block
	Audit     Auditor
	End       func() // called when nothing uses it any more
	Replacing bool   // a service has exited, and the next generation is being built
	users     int    // the pools, and the creator
}

// Config configures the workers of a generation, and sets the time limits of
// their steps.
type Config struct {
	Setup       work.Setup
	Workers     int // of a pool
	Connections int
	Threads     int           // of all workers of a pool
	Wear        uint64        // connections after which Pool.WornOut is called
	StartLimit  time.Duration // for a worker to send Ready
	HandLimit   time.Duration // how long a connection waits while no worker can take it
	Silence     time.Duration // a worker that answers no Ping for this time is killed
	Farewell    time.Duration // a retired worker that has connections is asked to finish after it
	LogBurst    int           // lines that a worker may log at once
	LogRate     int           // … and per second
	DialBurst   int           // connections to daemons that a worker may ask for at once
	DialRate    int           // … and per second
	Log         *slog.Logger
}

// Auditor receives which worker has which connection. It does not block.
type Auditor interface {
	Given(worker uint32, c *ipc.Connection)
	Gone(id uint64)
	Exited(worker uint32, status string)
}

// NewGeneration returns g with one user, which must call Release.
func NewGeneration(g Generation) *Generation {
	g.users = 1
	return &g
}

// Hold adds a user of g, which must call Release.
func (g *Generation) Hold() { g.users++ }

// Release ends g when its last user calls it. The services end when no worker
// can use them.
func (g *Generation) Release() {
	if g.users--; g.users == 0 && g.End != nil {
		g.End()
	}
}
