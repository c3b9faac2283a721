package privsep

import (
	"cmp"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
	"schedrestd/socket"
)

// Config configures Run. The zero value of a field below the first group means
// the default.
type Config struct {
	Listen          []ipc.Listen
	Metrics         []ipc.Listen // for scrapes; empty: nothing is counted
	Netns           string       // network namespace of TCP listeners, by name or path; "" is the starter's
	ControllerNetns string       // … of connections to controllers and accounting daemons
	Service         ipc.Service  // identity to serve with; the zero value keeps the starter's identity, which root may not
	Switches        ipc.Switches
	Setup           ipc.Setup // for the workers; see there what is filled in here
	Log             *slog.Logger

	Workers     int           // size of the pool
	Connections int           // --max-connections
	PerSource   int           // connections of one source (see there); 0 is no limit, with become_user half of Connections
	Identities  int           // become_user: most identities that have a worker concurrently
	Threads     int           // -t, divided among the workers: the number of cpus
	SocketMode  fs.FileMode   // of UNIX sockets
	SocketGroup *uint32       // of UNIX sockets; nil is the serving group
	Audit       ipc.Audit     // where changes are recorded, and Idempotency-Keys are
	Subuids     []ipc.Subuids // ranges of subordinate uids, in ascending order

	ipc.Secrets
	Watch     time.Duration // how often newer keys and certificates are looked for
	Still     time.Duration // … and for how long a key of tokens must not have been written before it is used
	Activated []*os.File    // listening sockets that the service manager passed; they come before Listen
	Reload    Reloader      // for SIGHUP

	Argv       map[ipc.Role][]string // arguments of processes; tests have hostile ones started with it
	StartLimit time.Duration         // for a worker to say Ready
	Silence    time.Duration         // a worker that answers no Ping for so long is killed

	kernelTells bool // the kernel reports the peer's identity on at least one listener
}

// The defaults of fields of Config.
const (
	DefaultConnections = 124
	defaultIdentities  = 64
)

// complete fills in the defaults and rejects values that can't work.
func (c Config) complete() (Config, error) {
	if len(c.Listen) == 0 && len(c.Activated) == 0 && !c.Setup.Inetd {
		return c, errs.New(errs.Invalid, "nothing to listen on").
			WithHint("name an address, as 127.0.0.1:6820, :6820 or unix:/run/schedrestd/socket")
	}
	c.Connections = cmp.Or(c.Connections, DefaultConnections)
	if c.Connections > ipc.MaxConnections || c.Identities > ipc.MaxConnections || min(c.Connections, c.Threads, c.PerSource, c.Identities) < 0 {
		return c, errs.New(errs.Invalid, "%d connections, %d of a source, %d identities, %d threads: not from 0 to %d",
			c.Connections, c.PerSource, c.Identities, c.Threads, ipc.MaxConnections)
	}
	if c.Switches.BecomeUser && c.PerSource == 0 && !c.Setup.Inetd {
		// Users can stop their own worker, and with it each of their
		// connections.
		c.PerSource = max(1, c.Connections/2)
	}
	c.Threads = cmp.Or(c.Threads, runtime.NumCPU())
	c.Identities = cmp.Or(c.Identities, defaultIdentities)
	// A worker that may have no connection, or no thread of its own, is
	// useless.
	c.Workers = min(cmp.Or(c.Workers, 2), c.Connections, c.Threads) // two, because a worker may crash
	c.StartLimit = cmp.Or(c.StartLimit, 20*time.Second)
	c.Silence = cmp.Or(c.Silence, 10*time.Second)
	c.Watch = cmp.Or(c.Watch, 10*time.Second)
	c.Still = cmp.Or(c.Still, 2*time.Second)
	return c, c.checkFiles()
}

// setup returns the setup of the workers, completed with what only the parent
// knows.
func (c Config) setup(who identity.Service) ipc.Setup {
	s := c.Setup
	s.Files = uint32(c.files())
	s.Requests = uint32(c.Connections) // of all workers together; each receives its share
	s.SchedUID, s.Privileged = who.SchedUID, who.Names
	s.Audit, s.Claims = c.Audit.Path != "", c.Audit.Claims != ""
	s.Sockets = s.Local && c.kernelTells
	c.Setup = s
	s.Seal = c.seal()
	return s
}

// listenOptions returns where to listen. The sockets belong to who.
func (c Config) listenOptions(who identity.Service) listen.Options {
	owner := &socket.Owner{UID: who.UID, GID: who.GID}
	if c.Switches.BecomeUser { // its users come from outside, and root listens
		*owner = socket.Owner{}
	}
	if c.SocketGroup != nil {
		owner.GID = *c.SocketGroup
	}
	return listen.Options{Passed: c.Activated, Addresses: c.Listen, Netns: c.Netns, UnixOnly: c.Switches.BecomeUser,
		Unix: socket.Options{Mode: c.SocketMode, Owner: owner, Private: become.PrivateGroup}}
}

// seal returns how a worker closes its sandbox. A worker that runs as its
// client's user connects UNIX sockets by itself and is permitted only that. No
// other worker can even create such a socket.
func (c Config) seal() (s ipc.Seal) {
	if c.Switches.RequireConfinement {
		s |= ipc.SealRequire
	}
	if c.Switches.AuditConfinement {
		s |= ipc.SealAudit
	}
	if c.Setup.Local && c.kernelTells && c.Setup.Reach&(ipc.ReachUnix|ipc.ReachMunge) != 0 {
		s |= ipc.SealUnix
	}
	return s
}

// files returns a worker's limit of open descriptors. Each connection may wait
// for one call to a controller, and needs one more descriptor while it is
// handed over. The rest covers sixteen sessions with accounting daemons, which
// wait without a descriptor. docs/TRUST.md explains the total.
func (c Config) files() uint64 { return 3*uint64(c.Connections) + 64 + 4*ipc.DialBatchSize }

// mostWaiting bounds the connections that are accepted and wait, as
// net.core.somaxconn bounds those in the kernel's queue. They are accepted
// because the kernel does not report the owners of connections in its queue,
// which one client could fill.
const mostWaiting = 4096

// waiting returns how many connections may wait for a slot. The parent needs a
// descriptor for each, in addition to those that files allows for.
func (c Config) waiting() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Max < c.files() {
		return c.Connections
	}
	return int(min(mostWaiting, max(uint64(c.Connections), l.Max-c.files())))
}

func (c Config) checkFiles() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return errs.Wrap(err, errs.Internal, "read the limit of open files")
	}
	if c.files() > l.Max {
		return errs.New(errs.Invalid, "%d connections need %d open files, and the limit is %d", c.Connections, c.files(), l.Max).
			WithHint("a smaller --max-connections, or LimitNOFILE=%d in the service's unit", c.files())
	}
	return nil
}

// otherThreads is how many threads of a process usually wait concurrently.
const otherThreads = 16

// mostPIDs returns the limit of processes and threads in the PID namespace of
// workers and keeper, where the kernel enforces one. It suffices for several
// generations of workers, and keeps compromised ones from using up the limit of
// the service (TasksMax=), which the parent needs too.
func (c Config) mostPIDs() int {
	workers := 4 * (c.Threads + c.Workers*otherThreads)
	lazy := min(c.Threads, 2) + otherThreads
	switch {
	case c.Switches.WorkerPerConnection:
		workers = (c.Connections + 1) * lazy
	case c.Switches.BecomeUser:
		workers = (2*c.Identities + 1) * lazy
	}
	services := 2*(c.Threads+otherThreads) + 4*(1+otherThreads) // keeper, auditor and exporter
	return workers + services + (ipc.DeathTests+2)*otherThreads // death tests with the process that starts them, and the namespace init
}

// mostProcesses returns how many processes the dispatcher may have at a time: those
// of a full gateway and of the generations before it that still finish.
func (c Config) mostProcesses() int { return 2*(c.Connections+c.Identities+c.Workers) + 100 }

// anyWorker returns the identity of death tests, and of workers whose client is
// not known yet.
func (c Config) anyWorker(who identity.Service) security.Identity {
	if c.Switches.BecomeUser {
		// No user has connected yet, and no single user may decide whether
		// others are served.
		return security.Identity{Name: "nobody", UID: become.Overflow, GID: become.Overflow}
	}
	return who.Identity
}

// spawnOptions returns the options of a spawner of processes for who.
func (c Config) spawnOptions(who identity.Service, programs program.Set) spawn.Options {
	worker, keeper := programs[ipc.Worker], programs[ipc.Keeper]
	return spawn.Options{Root: who.Root, Identity: c.anyWorker(who), Switches: c.Switches, Seal: c.seal(), OneClient: c.Setup.Inetd, PIDs: c.mostPIDs(),
		StartLimit: c.StartLimit, Worker: worker.File, Argv: worker.Argv, Keeper: keeper.File, Log: c.Log}
}

// identityOptions returns the options that determine the workers' identity.
func (c Config) identityOptions() identity.Options {
	return identity.Options{Switches: c.Switches, Service: c.Service, JWT: c.Setup.JWT, Local: c.Setup.Local, Listen: c.Listen}
}

// keyOptions returns the options with which a generation opens its keys.
func (c Config) keyOptions(who identity.Service, https bool) keys.Options {
	return keys.Options{Secrets: c.Secrets, HTTPS: https, JWT: c.Setup.JWT, Root: who.Root, Worker: who.Identity,
		SchedUID: who.SchedUID, SchedGID: who.SchedGID, Log: c.Log}
}

// serviceSetup returns the setup that the services receive.
func (c Config) serviceSetup() ipc.ServiceSetup {
	return ipc.ServiceSetup{LogLevel: c.Setup.LogLevel, Log: c.Setup.Log, Seal: c.Setup.Seal &^ ipc.SealUnix}
}

// dispatch returns what a dispatcher needs to know of this run.
func (c Config) dispatch(who identity.Service) *ipc.Dispatch {
	worker := c.anyWorker(who)
	return &ipc.Dispatch{Switches: c.Switches, Name: worker.Name, UID: worker.UID, GID: worker.GID,
		Connections: uint32(c.Connections), PerSource: uint32(c.PerSource), Identities: uint32(c.Identities), Workers: uint32(c.Workers), Threads: uint32(c.Threads),
		LogLevel: c.Setup.LogLevel, Waiting: uint32(c.waiting()), StartLimit: c.StartLimit, Silence: c.Silence, Audit: c.Audit, Netns: c.Netns, ControllerNetns: c.ControllerNetns}
}
