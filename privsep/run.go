// Package privsep is the parent: the only process of the gateway that may be
// root. The parent never reads a byte that comes from the network.
//
// The parent decides which identity may serve, opens the listeners and the
// files with keys, drops the capabilities that it no longer needs, and starts
// the dispatcher, an unprivileged process. From then on, the parent accepts
// connections, asks the kernel about each peer, and sends the connection and
// the kernel's answer to the dispatcher. The dispatcher decides what happens to
// the connection. The parent starts and ends processes when the dispatcher asks
// for that, and opens keys and configuration again when they change.
//
// The parent does not trust the dispatcher. The dispatcher names roles and
// connections, but never a program, a path, or a uid. A worker runs as the
// configured user, or as the user at the other end of a connection that the
// parent itself accepted and checked. A process that reads the output of jobs may also
// run as a user for whom the keeper vouches. The parent kills a dispatcher that sends
// a message that violates the protocol table of package ipc.
//
// The parent consists of these packages, none of which imports package privsep:
//
//   - planner runs schedrestd-config and returns its Plan;
//   - identity determines which user the workers run as;
//   - inetd identifies the client at standard input;
//   - auditlog opens the audit log;
//   - keys opens the files with keys;
//   - listen binds, accepts, and asks the kernel about peers;
//   - program opens the programs of the other processes;
//   - spawn starts processes, confined and without privileges;
//   - netns opens and enters network namespaces.
//
// The entry points are Run, Inetd and Check.
package privsep

import (
	"cmp"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/notify"
	"schedrestd/internal/rate"
	"schedrestd/internal/thread"
	"schedrestd/ipc"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/netns"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
	"schedrestd/security/clients"
)

// Run serves until a signal arrives. Then it finishes the requests in progress
// and returns nil. A second signal makes it return immediately. SIGHUP makes
// Run read the configuration again with Config.Reread, and SIGUSR1 makes all
// processes log their counters.
func Run(signals <-chan os.Signal, c Config) error {
	// Each connection costs a few system calls. With several threads each call
	// would first wake another thread, which costs more than the call itself.
	runtime.GOMAXPROCS(1)
	signal.Ignore(syscall.SIGPIPE)
	service, err := identity.Determine(&c.PackedPlan)
	if err != nil {
		return err
	}
	if service.Root {
		thread.SetNice(thread.AcceptorNice)
	}
	m := newMonitor(c, service)
	defer m.close()
	if m.metricsListeners, err = listen.Open(listen.Options{Addresses: c.Metrics, Unix: c.listenOptions(service).Unix}); err != nil {
		return err
	}
	listeners, err := listen.Open(c.listenOptions(service))
	if err != nil {
		return err
	}
	if err := m.prepare(listeners); err != nil {
		return err
	}
	thread.Reserve(thread.SpareCount)
	if m.workerSandbox, err = m.confinedSpawner.ProveSandbox(); err != nil {
		return err
	}
	m.confinementParts = m.confinedSpawner.Parts()
	go notify.Watchdog(func() { m.postAndWait(func() { m.confinedSpawner.Do(func() {}) }) })
	return m.loop(signals)
}

// CheckStart returns an error if this program was started through a setuid or
// setgid bit, or as root without the capabilities that the parent needs. It
// also closes inherited files, so that no child inherits them. Call CheckStart
// before anything else.
func CheckStart() error {
	return cmp.Or(security.RefuseSetuid(), security.CloseInherited(), spawn.CheckCapabilities())
}

// newMonitor returns a monitor that has opened nothing yet.
func newMonitor(c Config, service identity.Service) *monitor {
	m := &monitor{service: service, restarts: rate.New(restarts, time.Now()), arrivals: rate.NewBuckets[uint32](arrivals), events: make(chan func()), done: make(chan struct{}),
		generations: map[uint32]*generation{}, result: make(chan error, 1)}
	m.current.Store(&generation{config: c, keys: new(keys.Keys)})
	return m
}

// adoptListeners takes over the listeners and checks the key files. It also
// completes the workers' settings, some of which depend on the kinds of
// listeners. The process must still have the capabilities with which it
// started.
func (m *monitor) adoptListeners(listeners []*listen.Listener) error {
	m.listeners = listeners
	m.servesHTTPS = slices.ContainsFunc(listeners, func(l *listen.Listener) bool { return l.TLS })
	c := m.config()
	c.hasPeerCreds = c.hasPeerCreds || slices.ContainsFunc(listeners, func(l *listen.Listener) bool { return l.Network == ipc.Unix })
	c.Setup = c.workerSetup()
	return keys.CheckFiles(c.keyOptions(m.service, m.servesHTTPS))
}

// prepare does everything that needs privileges, and then drops the
// capabilities that are no longer needed. It takes over the listeners, opens
// the programs of all processes and the auditor's files, and starts threads for
// operations that this process may not perform later. Every kind of start calls
// prepare before it starts a worker. If the configuration requires all parts of
// the confinement and one is missing, prepare returns an error.
func (m *monitor) prepare(listeners []*listen.Listener) (err error) {
	if err := cmp.Or(m.config().checkNumbers(), m.adoptListeners(listeners)); err != nil {
		return err
	}
	c := m.config()
	if m.clients, err = clients.New(int(c.Connections+c.Waiting) + maxClientsInTransit); err != nil {
		return err
	}
	if m.programs, err = program.Open(m.service, m.config().Argv); err != nil {
		return err
	}
	if c.Audit != (ipc.Audit{}) {
		if m.auditLog, err = auditlog.Open(auditlog.Options{Audit: c.Audit, Root: m.service.Root, WorkerUID: m.service.UID, PerWorker: c.Switches.BecomeUser, Log: c.Log}); err != nil {
			return err
		}
	}
	if m.confinedSpawner, err = spawn.New(c.spawnOptions(m.service, m.programs)); err != nil {
		return err
	}
	m.prepareSpareSpawners()
	options := c.spawnOptions(m.service, m.programs)
	options.Plain = true
	if m.resolverSpawner, err = spawn.New(options); err != nil {
		return err
	}
	ns, err := netns.Open("SCHEDRESTD_CONTROLLER_NETNS", c.ControllerNetns)
	if err != nil {
		return err
	}
	m.dispatcherSpawner = m.resolverSpawner
	if ns != nil {
		defer ns.Close()
		options.Enter = ns.Enter
		if m.dispatcherSpawner, err = spawn.New(options); err != nil {
			return err
		}
	}
	return cmp.Or(dropCapabilities(m.service), m.confinedSpawner.CheckRequired())
}

// closeListeners stops listening.
func (m *monitor) closeListeners() {
	listen.CloseAll(m.listeners)
	m.listeners = nil
}

// close closes the listeners and stops the spawners, which ends all remaining
// processes.
func (m *monitor) close() {
	close(m.done)
	m.closeListeners()
	listen.CloseAll(m.metricsListeners)
	for _, s := range append(m.spareSpawners, m.confinedSpawner, m.resolverSpawner, m.dispatcherSpawner) {
		if s != nil && (s != m.dispatcherSpawner || s != m.resolverSpawner) {
			s.Stop()
		}
	}
}

// dropCapabilities drops the capabilities that the parent no longer needs.
//
// As root the parent keeps SETUID and SETGID, to start further workers, and
// KILL, to end them. It can drop SYS_ADMIN and SETPCAP, because the spawning
// thread has already entered the namespaces and set the bounding set. To start
// a process as another user, the parent executes its own program again, as a
// stage that changes the ids (become/stage). The stage gets SETUID and SETGID.
//
// Without root the parent keeps no capability. If a unit granted it
// CAP_NET_BIND_SERVICE, the parent has already used it.
func dropCapabilities(service identity.Service) error {
	keep := map[bool]security.Capabilities{true: spawn.ServeCapabilities}[service.Root]
	kept, err := security.KeepCapabilities(keep, spawn.SetIDCapabilities)
	if err != nil {
		return err
	}
	if kept != keep {
		return errs.New(errs.Internal, "only %[2]s of the capabilities %[1]s were kept", keep, kept)
	}
	return security.MakeNonDumpable()
}
