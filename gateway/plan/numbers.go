package plan

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// Defaults of the plan's numbers.
const (
	DefaultConnections = 124
	DefaultIdentities  = 64
	maxWorkers         = 2 // so that one remains if the other crashes
)

// maxWaiting limits the number of accepted connections that wait until a worker
// may serve them. It equals the usual value of net.core.somaxconn, which limits
// the kernel's own queue. The gateway does not leave connections in the
// kernel's queue: one client could fill that queue, and the kernel does not
// report whose connections are in it.
const maxWaiting = 4096

// maxWatching limits the number of connections that wait for a change, or follow
// changes, in addition to those that are served. Each takes a descriptor of its
// worker.
const maxWatching = 4096

// Complete sets the numbers of p that the administrator did not set, and
// everything that depends on the mode. It returns an error if this machine
// permits too few open files for the number of connections.
func Complete(p *ipc.Plan, s *ipc.Setup, listen *[]ipc.Listen) error {
	switch p.Mode {
	case ipc.ModeInetd:
		s.Inetd = true
		p.Connections, p.Workers, p.Threads = 1, 1, 1
	case ipc.ModeCheck: // a check connects to no daemon and serves no client
		p.ControllerNetns, p.Audit, p.Workers = "", ipc.Audit{}, 1
		if len(*listen) == 0 {
			*listen = sampleListeners(p.Switches.BecomeUser)
		}
	case ipc.ModeRead:
		if len(*listen) == 0 { // the service manager opens the listeners, perhaps one for https
			*listen = sampleListeners(p.Switches.BecomeUser)
			if p.Secrets.TLS.Key != "" && !p.Switches.BecomeUser {
				*listen = append(*listen, ipc.Listen{Text: "https://127.0.0.1:0", Network: ipc.TCP, TLS: true})
			}
		}
	}
	// In check mode, the gateway must report the results of the check, so a
	// worker must start even if its confinement is incomplete.
	if p.Switches.RequireConfinement && p.Mode != ipc.ModeCheck {
		s.Sandbox |= ipc.SandboxRequire
	}
	if p.Switches.AuditConfinement {
		s.Sandbox |= ipc.SandboxAudit
	}
	s.Audit, s.Claims = p.Audit.Path != "" && p.Mode != ipc.ModeRead, p.Audit.Claims != "" && p.Mode != ipc.ModeRead
	p.Connections = cmp.Or(p.Connections, DefaultConnections)
	if p.Switches.BecomeUser && p.PerSource == 0 && !s.Inetd {
		// With become_user, a worker runs as the connecting user, who can
		// suspend it with SIGSTOP. A suspended worker keeps its connections
		// open, so no user may have all of the gateway's connections.
		p.PerSource = max(1, p.Connections/2)
	}
	// A worker gets at least two threads. If the kernel suspends one of them for
	// a while, the other one still serves requests.
	p.Threads = cmp.Or(p.Threads, uint32(max(2, runtime.NumCPU())))
	p.Identities = cmp.Or(p.Identities, DefaultIdentities)
	// On two processors, two workers would compete: while one of them runs, the
	// other and all its connections wait for 10 ms or more
	// (docs/PERFORMANCE.md).
	workers := max(1, min(maxWorkers, p.Threads/2))
	// Each worker needs at least one connection and one thread.
	p.Workers = min(cmp.Or(p.Workers, workers), p.Connections, p.Threads)
	p.PIDs = maxPIDs(p)
	shareTokenKey(&p.Secrets.Tokens, p.Service)
	if err := limitFiles(p, s); err != nil {
		return err
	}
	if p.Mode == ipc.ModeCheck {
		p.Facts = facts(p, s, *listen)
		p.Switches.RequireConfinement = false // a worker that refuses to start could not be described on the page
	}
	return nil
}

// limitFiles sets the numbers that depend on how many open files this machine
// permits.
func limitFiles(p *ipc.Plan, s *ipc.Setup) error {
	s.Files = fileLimit(p.Connections)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return errs.Wrap(err, errs.Internal, "read the limit of open files")
	}
	if uint64(s.Files) > l.Max {
		return errs.New(errs.Invalid, "%d connections need %d open files, and the limit is %d", p.Connections, s.Files, l.Max).
			WithHint("use a smaller --max-connections, or set LimitNOFILE=%d in the service's unit (in a shell, as root: ulimit -n %[1]d)", s.Files)
	}
	s.Watching = uint32(min(maxWatching, (l.Max-uint64(s.Files))/2))
	s.Files += s.Watching
	// The dispatcher needs as many descriptors as a worker, and one more for
	// each waiting connection.
	p.Waiting = uint32(min(maxWaiting, max(uint64(p.Connections), l.Max-uint64(s.Files))))
	return nil
}

// warnFewFiles warns if this machine permits enough open files for the number of
// connections, but few for the requests that wait for changes in addition.
func warnFewFiles(p *query.WholePlan, log *slog.Logger) {
	s := &p.Setup
	if p.Mode != ipc.ModeServe || s.Watching >= p.Connections {
		return
	}
	log.Warn("few open files for requests that wait for changes", "requests", s.Watching, "connections", p.Connections,
		"hint", fmt.Sprintf("set LimitNOFILE=%d in the service's unit, or use a smaller --max-connections", s.Files-s.Watching+3*p.Connections))
}

// sampleListeners returns one address of each type that the switches permit.
// The addresses are never opened, and the socket has no path, so that nothing
// checks its directory.
func sampleListeners(becomeUser bool) []ipc.Listen {
	list := []ipc.Listen{{Text: "unix:/check", Network: ipc.Unix}}
	if !becomeUser {
		list = append(list, ipc.Listen{Text: "127.0.0.1:0", Network: ipc.TCP})
	}
	return list
}

// facts returns facts about the configuration for the page that
// --check-confinement prints.
func facts(p *ipc.Plan, s *ipc.Setup, listen []ipc.Listen) (list []string) {
	add := func(cond bool, fact string) {
		if cond {
			list = append(list, fact)
		}
	}
	local := s.Local && hasNetwork(listen, ipc.Unix)
	add(p.Switches.RequireConfinement, query.FactRequired)
	add(p.Switches.BecomeUser, query.FactBecome)
	add(local, query.FactLocal)
	add(local && s.Reach&ipc.ReachMunge != 0, query.FactMunge)
	add(p.Secrets.TLS.Key != "", query.FactTLS)
	add(p.Secrets.Tokens.Key != "", query.FactTokens)
	add(s.Reach&ipc.ReachTCP != 0, fmt.Sprintf("%s=%d", query.FactDial, s.Files))
	return list
}

func hasNetwork(list []ipc.Listen, n ipc.Network) bool {
	return slices.ContainsFunc(list, func(l ipc.Listen) bool { return l.Network == n })
}

// fileLimit returns the limit on a worker's open descriptors. Each connection
// needs three: its own, one for a call to a daemon, and one while the worker
// receives the connection. The other descriptors are for spare sockets and for
// the sixteen idle sessions with accounting daemons that a worker may keep.
// docs/design/TRUST.md describes what a compromised worker can do with all of them.
func fileLimit(connections uint32) uint32 { return 3*connections + 64 + 4*ipc.DialBatchSize }

// waitingThreads is the number of threads of a process that usually wait at the
// same time.
const waitingThreads = 16

// maxPIDs returns the limit on processes and threads in the PID namespace of
// the workers and the keeper. Only kernels that support a limit per namespace
// enforce this limit (since Linux 6.14). The limit is high enough for several
// generations of workers. It prevents compromised workers from using up the
// limit of the whole service (TasksMax=), so the parent can still start
// processes.
func maxPIDs(p *ipc.Plan) uint32 {
	workers := 4 * (p.Threads + p.Workers*waitingThreads)
	perWorker := min(p.Threads, 2) + waitingThreads
	switch {
	case p.Switches.WorkerPerConnection:
		workers = (p.Connections + 1) * perWorker
	case p.Switches.BecomeUser:
		workers = (2*p.Identities + 1) * perWorker
	}
	services := 2*(p.Threads+waitingThreads) + 4*(1+waitingThreads) // keeper, auditor and exporter
	deathTests := uint32(ipc.DeathTests+2) * waitingThreads         // includes the process that starts the death tests, and the namespace init
	return workers + services + deathTests
}
