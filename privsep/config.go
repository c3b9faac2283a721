package privsep

import (
	"io/fs"
	"log/slog"
	"os"
	"time"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Config configures Run. It consists of a Plan and of fields that only the
// parent has.
type Config struct {
	ipc.PackedPlan
	Log       *slog.Logger
	Level     *slog.LevelVar                  // of Log
	Activated []*os.File                      // listening sockets that the service manager passed; they come before Listen
	Reread    func() (*ipc.PackedPlan, error) // makes a Plan from the current configuration, on SIGHUP
	Limits    Limits
	Argv      map[ipc.Role][]string // additional arguments for processes; only tests set it

	hasPeerCreds bool // the kernel identifies some or all clients
}

// Limits holds times that the parent waits. Tests set shorter ones.
type Limits struct {
	Start     time.Duration // how long a process may take to send Ready
	Ping      time.Duration // a process that answers no Ping for this long is killed
	KeyCheck  time.Duration // how often the parent looks for newer keys and certificates
	Settle    time.Duration // how long a file with token keys must stay unchanged before it is used
	Stop      time.Duration // how long the dispatcher may take to exit after a signal to stop; an honest one takes at most the workers' limit Drain (60 s), twice the auditor's limit (12 s), and a little more
	PeerCheck time.Duration // how often the parent removes closed connections, and ends the workers of absent users; an honest dispatcher does both earlier
	Absence   time.Duration // a user without a connection for this long is absent
}

// Defaults are the limits of the gateway.
var Defaults = Limits{Start: 20 * time.Second, Ping: 10 * time.Second, KeyCheck: 10 * time.Second, Settle: 2 * time.Second, Stop: 90 * time.Second,
	PeerCheck: 30 * time.Second, Absence: 3 * time.Minute}

// checkNumbers rejects limits with which no gateway can run. Only a compromised
// schedrestd-config sends such limits.
func (c Config) checkNumbers() error {
	n := c.Numbers
	if max(n.Connections, n.PerSource, n.Identities, n.Workers, n.Threads, n.Waiting) > ipc.MaxConnections || min(n.Connections, n.Identities, n.Workers, n.Threads) == 0 {
		return errs.New(errs.Invalid, "limits must be from 1 to %d, or 0 for PerSource and Waiting: %+v", ipc.MaxConnections, n)
	}
	return nil
}

// workerSetup returns the setup of the workers, including the settings that
// only the parent knows. If the kernel identifies the gateway's clients, each
// worker connects to the UNIX sockets of munged and of daemons itself, so that
// munged and the daemons see the worker's user. In that case the sandbox
// permits workers to create UNIX sockets, but only if the configuration names
// the socket of munged or of a daemon.
func (c Config) workerSetup() ipc.Setup {
	s := c.Setup
	s.SchedUID, s.Privileged = c.Service.SchedUID, c.Service.Privileged
	s.Sockets = s.Local && c.hasPeerCreds
	if s.Sockets && s.Reach&(ipc.ReachUnix|ipc.ReachMunge) != 0 {
		s.Sandbox |= ipc.SandboxUnix
	}
	return s
}

// listenOptions returns the options for the listeners. UNIX sockets belong to
// root if become_user is set, and otherwise to the service identity.
func (c Config) listenOptions(service identity.Service) listen.Options {
	owner := &socket.Owner{UID: service.UID, GID: service.GID}
	if c.Switches.BecomeUser { // any local user may connect, and root listens
		*owner = socket.Owner{}
	}
	if c.HasSocketGroup {
		owner.GID = c.SocketGID
	}
	return listen.Options{Activated: c.Activated, Addresses: c.Listen, Netns: c.Netns, UnixOnly: c.Switches.BecomeUser,
		Unix: socket.Options{Mode: fs.FileMode(c.SocketMode) & fs.ModePerm, Owner: owner, PrivateGroup: become.PrivateGroup}}
}

// maxProcesses returns the maximum number of the dispatcher's processes: those
// of a gateway at its limits, and older processes that are still finishing
// requests. Some processes act for the users of tokens (limit.OutputProcesses,
// CredentialProcesses).
func (c Config) maxProcesses() int { return 2*int(c.Connections+c.Identities+c.Workers) + 700 }

// defaultIdentity returns the identity of processes that are not started for
// one particular user: some workers, and the processes of the death tests.
func (c Config) defaultIdentity(service identity.Service) security.Identity {
	if c.Switches.BecomeUser {
		// No user has connected yet. If these processes ran as one of the
		// users, that user could stop them, and so keep the gateway from
		// serving other users.
		return service.Users[ipc.Worker]
	}
	return service.Identity
}

// spawnOptions returns the options of a Spawner that starts the gateway's
// processes.
func (c Config) spawnOptions(service identity.Service, programs program.Set) spawn.Options {
	worker := programs[ipc.Worker]
	return spawn.Options{Root: service.Root, Identity: c.defaultIdentity(service), Switches: c.Switches, Sandbox: c.Setup.Sandbox, OneClient: c.Setup.Inetd, PIDs: int(c.PIDs),
		StartLimit: c.Limits.Start, Worker: worker.File, Argv: worker.Argv, Log: c.Log}
}

// keyOptions returns the options for the keys of a generation of workers and
// services.
func (c Config) keyOptions(service identity.Service, https bool) keys.Options {
	return keys.Options{Secrets: c.Secrets, HTTPS: https, JWT: c.Setup.JWT, Root: service.Root, Worker: service.Identity, SchedUID: service.SchedUID, Log: c.Log}
}

// serviceSetup returns the setup that the services receive.
func (c Config) serviceSetup() ipc.ServiceSetup {
	return ipc.ServiceSetup{LogLevel: c.Setup.LogLevel, Log: c.Setup.Log, Sandbox: c.Setup.Sandbox &^ ipc.SandboxUnix}
}

// reread replaces the configuration with the result of Reread. The files and
// listeners that the parent opened at its start stay open, and dropped
// capabilities stay dropped.
func (c *Config) reread(service identity.Service) error {
	next, err := c.Reread()
	if err != nil {
		return err
	}
	if next.ReplaceSubuids { // otherwise the ranges could not be read, and the previous ones stay
		c.Ranges = next.Ranges
	}
	c.Setup, c.Secrets, c.LogLevel = next.Setup, next.Secrets, next.LogLevel
	c.Setup = c.workerSetup()
	if c.Switches.BecomeUser {
		return identity.CheckBecomeUser(&c.PackedPlan, service.Root)
	}
	return nil
}
