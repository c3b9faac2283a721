// Package privsep is the parent: the only process of the gateway that may be root, and
// the one that reads no byte that comes from the network.
//
// It judges which identity may serve, opens the listeners, drops what capabilities it can, and
// starts the other processes. From then on it accepts, asks the kernel who the peer is,
// hands the descriptor to a worker, and keeps count. A worker is assumed to be
// compromised: what it sends is checked against the protocol table of package ipc, and one that breaks
// the protocol is killed and logged, not answered.
//
// It refuses to parse HTTP, JSON or tokens, to connect to a UNIX socket for a worker, and to connect to
// or open what a worker names: it connects to the daemons of the configuration, by their index.
//
// Its packages import only downwards, and none of them imports this one:
//
//   - planner runs schedrestd-config and returns its Plan;
//   - identity determines who the workers run as;
//   - dispatch accepts connections and finds the pool of workers for each;
//   - pool has the loop, the slots, and the workers of each identity;
//   - inetd serves the one client of an inetd run;
//   - auditlog opens the audit log and feeds the auditor;
//   - keys opens the files with keys;
//   - service starts keeper, resolver and auditor;
//   - listen binds, accepts, and asks the kernel about peers;
//   - dial connects to daemons for workers;
//   - admission decides which connection is served, and starts nothing;
//   - spawn starts processes, confined and without privileges;
//   - netns and thread enter network namespaces and keep threads.
//
// The way in is Run, or Inetd.
package privsep

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/notify"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/dispatch"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/service"
	"schedrestd/privsep/spawn"
	"schedrestd/privsep/thread"
	"schedrestd/security"
)

// Run serves until a signal arrives, and returns nil when every request that
// was being answered then has been answered. A second signal ends it at once.
// SIGHUP makes it read the configuration again through Config.Reload.
func Run(signals <-chan os.Signal, c Config) error {
	// Each connection costs a few system calls. On several threads each call
	// would first wake another thread, which costs more than the calls: a tenth
	// of a request's total processor time.
	runtime.GOMAXPROCS(1)
	signal.Ignore(syscall.SIGPIPE)
	c, who, program, err := prepare(c)
	if err != nil {
		return err
	}
	defer program.Close()
	audit, err := c.openAudit(who)
	if err != nil {
		return err
	}
	if err := c.checkListen(); err != nil {
		return err
	}
	listeners, err := listen.Open(c.listenOptions(who))
	if err != nil {
		return err
	}
	c = c.with(listeners, who)
	makers, err := newMakers(c, who, listeners, audit)
	if err != nil {
		return err
	}
	defer makers.close()
	m := newParent(c, makers)
	in := dispatch.NewAcceptor(c.dispatchOptions(who, m.names), m.Slots, listeners)
	defer in.Close()
	defer m.stop()
	if err := m.begin(c, who, program, makers.keeper.Program); err != nil {
		return err
	}
	thread.Reserve(thread.Spare)
	announce(c, who, listeners)
	sealed, err := m.Spawner.ProveDeath()
	if err != nil {
		return err
	}
	m.Spawner.Announce(sealed)
	c.announceRules()
	err = work(signals, c, m, in, listeners)
	if err == nil && m.Spawner.InUse().IsLost() {
		err = errs.New(errs.Unavailable, "%s", spawn.Loss{})
	}
	return err
}

// newMakers opens the programs and files that generations are made from, and
// checks the key files, while all capabilities are available.
func newMakers(c Config, who identity.Service, listeners []*listen.Listener, audit *auditlog.Log) (*makers, error) {
	m := &makers{who: who, audit: audit, https: slices.ContainsFunc(listeners, func(l *listen.Listener) bool { return l.TLS })}
	if err := keys.Judge(c.keyOptions(who, m.https)); err != nil {
		return nil, err
	}
	var err error
	if m.keeper, err = service.New(c.serviceOptions(ipc.Keeper, who, c.Keeper, c.KeeperArgv)); err == nil {
		m.resolver, err = service.New(c.serviceOptions(ipc.Resolver, who, c.Resolver, c.ResolverArgv))
	}
	return m, err
}

// close closes the programs and the audit log.
func (m *makers) close() {
	m.keeper.Close()
	m.resolver.Close()
	m.audit.Close()
}

// prepare completes the configuration, determines the identity that serves, and
// opens the workers' program.
func prepare(c Config) (Config, identity.Service, *os.File, error) {
	if err := security.CloseInherited(); err != nil {
		return c, identity.Service{}, nil, err
	}
	c, err := c.complete()
	if err != nil {
		return c, identity.Service{}, nil, err
	}
	if err := spawn.CheckCapabilities(); err != nil {
		return c, identity.Service{}, nil, err
	}
	who, err := identity.Determine(c.identityOptions())
	if err != nil {
		return c, who, nil, err
	}
	program, err := spawn.OpenWorker(c.Program, who.Identity, who.Root)
	return c, who, program, err
}

// work serves the connections that in accepts until a signal ends it.
func work(signals <-chan os.Signal, c Config, m parent, in *dispatch.Acceptor, listeners []*listen.Listener) error {
	r := newRenewals(c, m)
	signals = spawn.WithLoss(signals, m.Spawner, c.Log, func() { r.wish(wishLost) })
	defer r.stop()
	defer onRequest(func() { m.Do(r.logCounters) })()
	m.Do(func() { m.Watch(c.Silence / 4) })
	if stopped, err := r.started(signals); stopped != nil || err != nil {
		if stopped != nil {
			c.Log.Info("stopped before it served", "signal", stopped.String())
		}
		return err
	}
	in.Start()
	c.Log.Info("serving", where(c, listeners)...)
	notify.Ready()
	go notify.Watchdog(context.Background(), func() { m.Spawner.InUse().Answer() })

	first := r.until(signals)
	notify.Stopping()
	if first == (spawn.Loss{}) {
		c.Log.Info("draining", "because", first.String())
	} else {
		c.Log.Info("draining", "signal", first.String())
	}
	in.Close()
	m.Do(r.dispatcher.Stop)
	return m.finish(first, signals, c)
}

// dropCapabilities drops what the parent no longer needs. As root it keeps
// SETUID and SETGID, to start further workers of one or many identities, and
// KILL, to end them. The spawning thread holds the namespaces and the bounding
// set, so SYS_ADMIN and SETPCAP can be dropped. Otherwise nothing stays:
// CAP_NET_BIND_SERVICE, if a unit granted it, has been used by now. SETUID and
// SETGID are passed to the program that the parent executes, which is itself,
// to start processes as other users (become/stage).
func dropCapabilities(who identity.Service) error {
	var keep security.Capabilities
	if who.Root {
		keep = security.Caps(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL)
	}
	kept, err := security.KeepCapabilities(keep, spawn.ToBecome)
	if err != nil {
		return err
	}
	if kept != keep {
		return errs.New(errs.Internal, "of the capabilities %s only %s were kept", keep, kept)
	}
	return security.HideFromNeighbours()
}

// onRequest calls show on each SIGUSR1, until the returned function is called.
func onRequest(show func()) (stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			show()
		}
	}()
	return func() {
		signal.Stop(asked)
		signal.Ignore(syscall.SIGUSR1) // a late one must not end a draining process
		close(asked)
	}
}
