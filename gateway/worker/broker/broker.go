// Package broker asks other processes to do what a worker can't do: it may open
// no connections and no files, and has no secret keys. The keeper signs and
// verifies, the resolver looks up names, the auditor records changes, and the
// dispatcher opens connections to the site's daemons.
//
// Each of these processes has a file of its own here, and a type that owns the
// channel to it. If a process does not answer, its callers get an error after a
// time limit, or at once if it has exited. Broker joins the types.
package broker

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/handlers/rest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
	"schedrestd/security"
)

// A Broker asks other processes to do what the worker's sandbox forbids. A nil
// Broker stands for a process that has no dispatcher and no sandbox. Such a
// process dials by itself and looks up no names.
type Broker struct {
	dialer   dialer
	auditor  *auditor
	resolver *resolver
	output   *Outputs
}

// New returns a Broker that calls send for each message to the
// dispatcher.
func New(send func(ipc.Message, ...int) error) *Broker {
	return &Broker{dialer: dialer{dispatcher: newDispatcher(send)}, auditor: newAuditor(), resolver: newResolver(), output: newOutputs(uint32(os.Getuid()), send)}
}

// Deliver handles an answer from the dispatcher.
func (b *Broker) Deliver(r ipc.Received) {
	switch m := r.Message.(type) {
	case *work.DialedBatch:
		b.dialer.pool.put(m.DialBatch, r.FDs, ipc.NoID, m.At, time.Now())
	case *work.NoOutput:
		b.output.refuse(m)
	case *work.ConnectedBatch:
		b.dialer.pool.put(m.DialBatch, r.FDs, m.Server, m.At, time.Now())
	default:
		b.dialer.dispatcher.deliver(r)
	}
}

// Connect makes the descriptor fd this worker's channel to the resolver, the
// auditor, or a process that reads output.
func (b *Broker) Connect(m *work.ServiceChannel, fd int) error {
	switch m.Service {
	case ipc.Resolver:
		return b.resolver.service.connect(fd)
	case ipc.Auditor:
		return b.auditor.service.connect(fd)
	case ipc.Output:
		return b.output.connect(m.Client, fd)
	}
	_ = unix.Close(fd)
	return fmt.Errorf("channel to an unknown service: %s", m.Service)
}

// Dialer returns a function that dials the daemons of a list in the worker's
// Setup. The first daemon of the list may also have a UNIX socket. If b is nil,
// or this process has no sandbox, Dialer returns nil: the process can dial by
// itself.
func (b *Broker) Dialer(upstream work.Upstream, addresses []work.Address, socket string) func(context.Context, client.Address) (net.Conn, error) {
	if b == nil || !security.Sandboxed {
		return nil
	}
	return list{&b.dialer, upstream, addresses, socket}.dial
}

// Munge returns a MUNGE client, or nil if MUNGE is not configured.
func (b *Broker) Munge(m work.Munge, upstream work.Upstream, socket string) *munge.Client {
	if b == nil {
		return nil
	}
	return b.dialer.munge(m, upstream, socket)
}

// Sack returns a client that requests auth/slurm credentials, or nil if
// auth/slurm is not configured. The argument sched is the uid of the
// scheduler's user.
func (b *Broker) Sack(sockets []string, sched uint32) *sack.Client {
	if b == nil {
		return nil
	}
	return b.dialer.sack(sockets, sched)
}

// Users returns the look-ups of users and groups. Each call returns a new cache.
func (b *Broker) Users() *Users {
	if b == nil {
		return newUsers(nil)
	}
	return newUsers(b.resolver)
}

// Audit returns the client that asks for permission before each change. If
// logged is false, there is no audit log, and the client asks only before
// changes with an Idempotency-Key, which it refuses if keys is false.
func (b *Broker) Audit(logged, keys bool) rest.Audit {
	if b == nil || !logged && !keys {
		return rest.NoWorker{}
	}
	return changes{b.auditor, logged, keys}
}

// Output returns what reads output files: those of this process's user, or, with a
// keeper, those of the users of tokens.
func (b *Broker) Output(k *Keeper) *Outputs {
	b.output.keeper = k
	return b.output
}

// AuditCounts returns the counts of changes, which grow while the worker runs.
func (b *Broker) AuditCounts() *AuditCounts { return &b.auditor.counts }
