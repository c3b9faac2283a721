package plan

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// The defaults of numbers.
const (
	DefaultConnections = 124
	DefaultIdentities  = 64
	usualWorkers       = 2 // so that a crash leaves one
)

// mostWaiting bounds the connections that are accepted and wait, as
// net.core.somaxconn bounds those in the kernel's queue. They are accepted
// because the kernel does not report the owners of connections in its queue,
// which one client could fill.
const mostWaiting = 4096

// Complete fills in the numbers of p that were not requested, and everything that
// follows from the mode. It fails when this machine permits fewer open files.
func Complete(p *ipc.Plan, s *ipc.Setup, listen *[]ipc.Listen) error {
	switch p.Mode {
	case ipc.ModeInetd:
		s.Inetd = true
		p.Connections, p.Workers, p.Threads = 1, 1, 1
	case ipc.ModeCheck: // no client and no daemon is connected
		p.ControllerNetns, p.Audit, p.Workers = "", ipc.Audit{}, 1
		if len(*listen) == 0 {
			*listen = anywhere(p.Switches.BecomeUser)
		}
	}
	if p.Switches.RequireConfinement && p.Mode != ipc.ModeCheck { // a worker would refuse to start before the page could describe it
		s.Seal |= ipc.SealRequire
	}
	if p.Switches.AuditConfinement {
		s.Seal |= ipc.SealAudit
	}
	s.Audit, s.Claims = p.Audit.Path != "", p.Audit.Claims != ""
	p.Connections = cmp.Or(p.Connections, DefaultConnections)
	if p.Switches.BecomeUser && p.PerSource == 0 && !s.Inetd {
		// Users can stop their own worker, and with it each of their
		// connections.
		p.PerSource = max(1, p.Connections/2)
	}
	// With two threads for each of two workers, a request does not wait for the one
	// that the kernel has interrupted.
	p.Threads = cmp.Or(p.Threads, uint32(max(4, runtime.NumCPU())))
	p.Identities = cmp.Or(p.Identities, DefaultIdentities)
	// A worker that may have no connection, or no thread of its own, is
	// useless.
	p.Workers = min(cmp.Or(p.Workers, usualWorkers), p.Connections, p.Threads)
	p.PIDs = mostPIDs(p)
	shareTokenKey(&p.Secrets.Tokens, p.Service)
	s.Files = files(p.Connections)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return errs.Wrap(err, errs.Internal, "read the limit of open files")
	}
	if uint64(s.Files) > l.Max {
		return errs.New(errs.Invalid, "%d connections need %d open files, and the limit is %d", p.Connections, s.Files, l.Max).
			WithHint("a smaller --max-connections, or LimitNOFILE=%d in the service's unit", s.Files)
	}
	// The dispatcher needs a descriptor for each that waits, in addition to
	// those of a worker.
	p.Waiting = uint32(min(mostWaiting, max(uint64(p.Connections), l.Max-uint64(s.Files))))
	if p.Mode == ipc.ModeCheck {
		p.Facts = facts(p, s, *listen)
	}
	return nil
}

// anywhere returns addresses that stand for all on which clients may be served. They
// are not opened.
func anywhere(becomeUser bool) []ipc.Listen {
	list := []ipc.Listen{{Text: "unix:/check", Network: ipc.Unix, Path: "/check"}}
	if !becomeUser {
		list = append(list, ipc.Listen{Text: "127.0.0.1:0", Network: ipc.TCP})
	}
	return list
}

// facts returns what the configuration contributes to the page about the
// confinement.
func facts(p *ipc.Plan, s *ipc.Setup, listen []ipc.Listen) (list []string) {
	add := func(so bool, fact string) {
		if so {
			list = append(list, fact)
		}
	}
	local := s.Local && hasNetwork(listen, ipc.Unix)
	add(p.Switches.BecomeUser, ipc.FactBecome)
	add(local, ipc.FactLocal)
	add(local && s.Reach&ipc.ReachMunge != 0, ipc.FactMunge)
	add(p.Secrets.TLS.Key != "", ipc.FactTLS)
	add(p.Secrets.Tokens.Key != "", ipc.FactTokens)
	add(s.Reach&ipc.ReachTCP != 0, fmt.Sprintf("%s=%d", ipc.FactDial, s.Files))
	return list
}

func hasNetwork(list []ipc.Listen, n ipc.Network) bool {
	return slices.ContainsFunc(list, func(l ipc.Listen) bool { return l.Network == n })
}

// files returns a worker's limit of open descriptors. Each connection may wait
// for one call to a controller, and needs one more descriptor while it is
// handed over. The rest covers sixteen sessions with accounting daemons, which
// wait without a descriptor. docs/TRUST.md explains the total.
func files(connections uint32) uint32 { return 3*connections + 64 + 4*ipc.DialBatchSize }

// otherThreads is how many threads of a process usually wait concurrently.
const otherThreads = 16

// mostPIDs returns the limit of processes and threads in the PID namespace of
// workers and keeper, where the kernel enforces one. It suffices for several
// generations of workers, and keeps compromised ones from using up the limit of
// the service (TasksMax=), which the parent needs too.
func mostPIDs(p *ipc.Plan) uint32 {
	workers := 4 * (p.Threads + p.Workers*otherThreads)
	lazy := min(p.Threads, 2) + otherThreads
	switch {
	case p.Switches.WorkerPerConnection:
		workers = (p.Connections + 1) * lazy
	case p.Switches.BecomeUser:
		workers = (2*p.Identities + 1) * lazy
	}
	services := 2*(p.Threads+otherThreads) + 4*(1+otherThreads) // keeper, auditor and exporter
	return workers + services + (ipc.DeathTests+2)*otherThreads // death tests with the process that starts them, and the namespace init
}
