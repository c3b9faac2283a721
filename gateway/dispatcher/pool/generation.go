package pool

import (
	"log/slog"
	"time"

	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A Generation holds everything that is needed to start the workers of one
// generation. It must be used only in the loop.
type Generation struct {
	Config
	ID           uint32
	Provision    func(worker *work.WorkerChannel, to *ipc.Channel) error // gives a ready worker its channels and keys; may block
	Audit        Auditor
	TokenOutput  bool                                                                                    // Output needs a client for whom the keeper has vouched
	Output       func(client uint64, worker *work.WorkerChannel, to *ipc.Channel) (OutputProcess, error) // starts a process that reads output for a worker, and connects them; may block
	Credential   func(client uint64) (OutputProcess, error)                                              // starts a process that gets credentials of a user for whom the keeper has vouched; may block
	NoCredential func(client uint64, reason string)                                                      // tells the keeper why there is no such process
	OnUnused     func()                                                                                  // called after the last Release
	Replacing    bool                                                                                    // a service has exited, and the next generation is being built
	refs         int                                                                                     // number of Release calls that are still to come
}

// Config configures the workers of a generation.
type Config struct {
	Setup       work.Setup
	Workers     int // number of workers in a pool
	Connections int
	Threads     int           // total number of threads of a pool's workers
	RotateAfter uint64        // Pool.OnRotate is called after this number of connections
	StartLimit  time.Duration // a worker that is not ready after this time is killed
	WaitLimit   time.Duration // a connection that no worker takes within this time is turned away
	PingTimeout time.Duration // a worker that does not answer a Ping within this time is killed
	RetireLimit time.Duration // after this time, a retired worker that still has connections is asked to finish
	Quota       *relay.Quota  // limits the lines that workers may log (Quota.Of)
	DialBurst   int           // connections to daemons that a worker may request at once
	DialRate    int           // connections to daemons that a worker may request per second
	Hosts       *dial.Hosts   // has the addresses of the daemons' hosts
	Log         *slog.Logger
}

// An Auditor gets facts about connections and workers. Its methods do not
// block.
type Auditor interface {
	ConnAssigned(worker uint32, c *ipc.Connection)
	ConnClosed(id uint64)
	WorkerExited(worker uint32, status string)
}

// An OutputProcess reads the output files of a user, or gets credentials.
type OutputProcess interface {
	Stop() // ends the process, and waits until it has exited
	Wait() // waits until it has exited
	Exited() bool
	User() uint32 // its uid
}

// NewGeneration returns a copy of g. The caller must call Release when it no
// longer needs the generation.
func NewGeneration(g Generation) *Generation {
	g.refs = 1
	return &g
}

// Hold keeps g in use until a matching call of Release.
func (g *Generation) Hold() { g.refs++ }

// Release undoes NewGeneration or one call of Hold. The last Release ends the
// generation and its services.
func (g *Generation) Release() {
	if g.refs--; g.refs == 0 && g.OnUnused != nil {
		g.OnUnused()
	}
}
