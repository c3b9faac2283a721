// Package dispatcher implements the process that manages the gateway's workers.
// The process decides which connection is served, hands it to a worker, and
// keeps workers and services running.
//
// It has no privileges. The parent, which may be root, opens the listeners and
// asks the kernel which user is at the other end of a UNIX socket. The parent
// sends each accepted connection to the dispatcher. At the dispatcher's
// request, the parent also starts and ends processes. The dispatcher names the
// role of a new process. For a worker, it can also name the connection whose
// user the worker runs as. It can't choose a program or a uid.
//
// Workers are assumed to be compromised. Their messages are checked against the
// protocol table of package ipc, and a worker that breaks the protocol is
// killed.
//
// Each of the dispatcher's packages imports only packages below it in this
// list:
//
//   - dispatch finds the pool of workers for each connection;
//   - pool contains the loop, the slots, and the workers of each identity;
//   - inetd serves the only client of an inetd run;
//   - auditlog sends facts about connections to the auditor;
//   - tokenfile gives a keeper the register of gateway tokens;
//   - service starts keeper, resolver, auditor and exporter;
//   - dial connects to daemons for workers;
//   - admission decides which connection is served, and starts nothing;
//   - process asks the parent for processes;
//   - relay copies the log lines of processes.
//
// The entry point is Main.
package dispatcher

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/gateway/dispatcher/auditlog"
	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/gateway/dispatcher/dispatch"
	"schedrestd/gateway/dispatcher/inetd"
	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/gateway/dispatcher/service"
	servicemain "schedrestd/gateway/service"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/loglevel"
	"schedrestd/internal/sockdiag"
	"schedrestd/internal/thread"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename gives the process its name. Call it from an init function.
func Rename() { self.Rename("schedrestd-disp") }

// Main runs the dispatcher and returns its exit status.
func Main() int {
	return Run(nil, new(slog.LevelVar), Defaults)
}

// Limits holds the limits on workers.
type Limits struct {
	RotateAfter uint64        // the shared workers are replaced after this number of connections
	Age         time.Duration // all workers, all services and the key for session tickets are replaced after this time
	IdleLimit   time.Duration // become_user: a worker without connections is retired after this time
	RetireLimit time.Duration // after this time, a retired worker that still has connections is asked to finish
	WaitLimit   time.Duration // a connection that no worker takes within this time is turned away
	LogBurst    int           // lines that a worker may log in one burst
	LogRate     int           // lines that a worker may log per second
	DialBurst   int           // connections to daemons that a worker may request in one burst
	DialRate    int           // connections to daemons that a worker may request per second
}

// Defaults are the limits of the gateway.
var Defaults = Limits{RotateAfter: 200_000, Age: 12 * time.Hour, IdleLimit: time.Minute, RetireLimit: time.Hour, WaitLimit: limit.Slots.Wait,
	LogBurst: int(limit.LogBytes.Burst) / limit.LogLineSize, LogRate: int(limit.LogBytes.PerSecond) / limit.LogLineSize,
	DialBurst: int(limit.WorkerDials.Burst), DialRate: int(limit.WorkerDials.PerSecond)}

// Run does the same as Main, with the given limits. If log is nil, the parent
// chooses the format and destination of this process's log.
func Run(log *slog.Logger, level *slog.LevelVar, limits Limits) int {
	out := relay.Text(os.Stderr)
	var enforced sandbox.Layers
	prepare := func(setup ipc.ServiceSetup) (sandbox.Layers, error) {
		if setup.Log != "" {
			out = relay.Open(setup.Log, os.Stderr)
		}
		if log == nil {
			log = newLog(setup.Log, out, level)
			slog.SetDefault(log)
		}
		var err error
		enforced, err = confine(setup.Sandbox)
		return enforced, err
	}
	return servicemain.Main(ipc.Dispatcher, prepare, func(channel *ipc.Channel) servicemain.Service {
		parent := process.NewParent(channel)
		return &dispatcher{parent: parent, sandbox: enforced, limits: limits, log: log, level: level, starter: process.NewStarter(parent, out),
			replies: make(chan ipc.Received, 1), finishing: make(chan struct{})}
	})
}

// newLog returns the logger of this process. With journald or syslog, the lines
// go through out, like those of the other processes.
func newLog(to string, out *relay.Log, level *slog.LevelVar) *slog.Logger {
	if to == "" || to == "text" || to == "json" {
		return loglevel.New(to, os.Stderr, level)
	}
	return loglevel.New("text", out, level)
}

// confine enters the sandbox, in which this process can't change files, signal
// processes, start programs or connect to UNIX sockets.
func confine(s ipc.SandboxOptions) (sandbox.Layers, error) {
	return sandbox.Close(sandbox.Options{Kind: sandbox.Dispatcher, Audit: s&ipc.SandboxAudit != 0}, s&ipc.SandboxRequire != 0)
}

// A dispatcher holds the state of the process. Fields declared after Set belong
// to the loop of Set.
type dispatcher struct {
	parent  *process.Parent
	sandbox sandbox.Layers // of this process
	log     *slog.Logger
	level   *slog.LevelVar
	starter *process.Starter
	config  ipc.DispatcherSetup
	limits  Limits

	listeners []ipc.Listening // listeners that the parent has opened

	resolver, keeper, exporter, output, credential *service.Spec
	quota                                          *relay.Quota // limits the log lines of workers
	audit                                          *auditlog.Log
	names                                          *dispatch.Names
	hosts                                          *dial.Hosts
	incoming                                       announced         // the part of the next generation's configuration that has been received
	replies                                        chan ipc.Received // the parent's answers for the goroutine that builds a generation
	finishing                                      chan struct{}     // closed when the gateway shuts down
	closing                                        sync.WaitGroup    // generations that are being closed
	accepting                                      sync.WaitGroup    // goroutines that receive connections from the parent
	violations                                     chan string       // inetd: reasons why the worker, which broke a service's protocol, must be killed

	*pool.Set
	acceptor     *dispatch.Acceptor
	router       dispatch.Dispatcher
	subuids      []ipc.Subuids // current ranges of subordinate uids
	current      *generation   // serves new connections; nil: the first generation is being built
	builtAt      time.Time     // when current became the current generation
	ageTimer     *time.Timer   // fires when current reaches its maximum age
	failures     int           // how many times in a row a generation lost a service soon after its start, or could not be replaced
	renewPending bool          // the parent was asked for a generation, and the outcome is not known yet
	renewTimer   *time.Timer   // limits the wait for the parent to announce a generation; nil: not waiting
	stopped      bool
	ended        bool // finish waits only for generations whose close has begun

	serves atomic.Bool // a generation has become the current one
}

// Handle handles a message of the parent.
func (d *dispatcher) Handle(m ipc.Received) (handled bool, err error) {
	if handled, err = d.starter.Handle(m); handled || err != nil {
		return handled, err
	}
	switch msg := m.Message.(type) {
	case *ipc.DispatcherSetup:
		d.configure(*msg)
	case *ipc.LogFileResult:
		d.audit.PassAnswer(msg)
	case *ipc.Listening:
		d.listeners = append(d.listeners, *msg)
	case *ipc.ArrivalChannel:
		err = d.accept(m.FDs[0], m.FDs[1])
	case *ipc.BuildGeneration:
		d.incoming = announced{BuildGeneration: *msg}
	case *ipc.SubuidRanges:
		d.incoming.ranges = append(d.incoming.ranges, msg.Ranges...)
	case *ipc.GenerationSetup:
		if d.incoming.setup, d.incoming.invalid = work.Unpack(msg.Setup); d.incoming.invalid == nil {
			d.incoming.invalid = checkScopes(d.incoming.setup, d.listeners)
		}
		if !msg.Setup.Inetd {
			d.createPools(d.incoming)
			go d.replace(d.incoming)
		}
	case *ipc.PublicKeys, *ipc.CheckResult:
		d.replies <- m
	case *ipc.StdioConnection:
		go d.serveInetd(d.incoming, &inetd.Client{Connection: msg.Connection, In: m.FDs[0], Out: m.FDs[1]})
	case *ipc.LogCounters:
		if d.Set != nil { // otherwise there is nothing to log yet
			d.Do(d.logCounters)
		}
	case *ipc.ReloadResult:
		if d.Set != nil {
			d.Do(func() { d.SetReloadRejected(msg.Rejected) })
		}
	case *ipc.Shutdown:
		close(d.finishing)
		if d.router != nil {
			go d.finish()
		}
	default:
		return false, nil
	}
	return true, err
}

// configure sets up what all generations of workers and services have in
// common.
func (d *dispatcher) configure(c ipc.DispatcherSetup) {
	d.config = c
	d.level.Set(slog.Level(c.LogLevel))
	d.log.Info("dispatcher confined", "pid", os.Getpid(), "sandbox", d.sandbox.String())
	dial.Check(d.log)
	d.resolver, d.keeper, d.exporter, d.output, d.credential = d.spec(ipc.Resolver), d.spec(ipc.Keeper), d.spec(ipc.Exporter), d.spec(ipc.Output), d.spec(ipc.Credential)
	d.quota = d.newQuota()
	d.hosts = dial.NewHosts(d.log)
	d.audit = auditlog.New(d.spec(ipc.Auditor), d.starter, d.parent)
}

// newQuota returns a limit on the log lines of processes.
func (d *dispatcher) newQuota() *relay.Quota {
	return relay.NewQuota(float64(d.limits.LogBurst), float64(d.limits.LogRate))
}

// spec returns the settings for starting the processes of a service.
func (d *dispatcher) spec(role ipc.Role) *service.Spec {
	c := d.config
	o := service.Options{Role: role, Threads: 1, Quota: d.newQuota(),
		StartLimit: c.StartLimit, PingTimeout: c.PingTimeout, Log: d.log}
	switch role {
	case ipc.Keeper: // signing needs a processor
		o.Threads = int(c.Threads)
	case ipc.Auditor:
		o.ExitLimit = auditlog.ExitLimit
	}
	return service.New(o)
}

// createPools creates the pools for the first generation of workers. For later
// generations, it does nothing.
func (d *dispatcher) createPools(a announced) {
	if d.Set != nil {
		return
	}
	// If root did not start the gateway, this process runs as the same user as
	// the workers. It must keep running even if a worker uses up the user's
	// limit on processes and threads, so it creates spare threads now.
	thread.Reserve(thread.SpareCount)
	c := d.config
	d.Set = pool.NewSet(pool.Options{Admission: a.setup.Admission, Connections: int(c.Connections), PerSource: int(c.PerSource),
		Waiting: int(c.Waiting), Watching: int(a.setup.Watching), WaitLimit: d.limits.WaitLimit, Metrics: a.setup.Metrics, Log: d.log})
	d.Set.Starter = d.starter
	d.names = dispatch.NewNames(d.Loop)
	d.names.Send = func(m ipc.Message, fds ...int) error { return d.current.askResolver(m, fds...) }
	d.hosts.Send = func(m *work.HostLookup) error {
		return d.Call(func() error { return d.current.askResolver(m) })
	}
	d.router = dispatch.New(d.dispatchOptions(a), d.Set, d.renew)
	d.Slots.Admit = d.router.Dispatch
	d.acceptor = dispatch.NewAcceptor(d.dispatchOptions(a), d.Slots, d.parent.Send)
	d.subuids = a.ranges
	d.announceStart()
	d.announceConfinement(a, c.Sandbox)
	d.announceRules(a.setup)
	d.announceUncheckedIdentity()
	d.Do(func() { d.Watch(c.PingTimeout / 4) })
}

// dispatchOptions returns the options for package dispatch.
func (d *dispatcher) dispatchOptions(a announced) dispatch.Options {
	c := d.config
	identity := security.Identity{Name: c.Name, UID: c.UID, GID: c.GID}
	return dispatch.Options{Switches: c.Switches, Admission: a.setup.Admission, Worker: identity, Standby: identity,
		Identities: int(c.Identities), IdleLimit: d.limits.IdleLimit, WaitLimit: d.limits.WaitLimit,
		OwnerOf: d.ownerOf, Names: d.names, Log: d.log}
}

// ownerOf returns the user who owns a subordinate uid. For any other uid, it
// returns the uid itself.
func (d *dispatcher) ownerOf(uid uint32) uint32 { return ipc.OwnerOf(d.subuids, uid) }

// accept starts the acceptor. The parent sends accepted connections over the
// channel at descriptor fd. diag is a netlink socket for asking the kernel
// about these connections.
func (d *dispatcher) accept(fd, diag int) error {
	from, err := ipc.Open(fd, ipc.Dispatcher, ipc.Acceptor)
	if err != nil {
		return err
	}
	d.announceServing()
	d.accepting.Go(func() { d.acceptor.Run(from, sockdiag.NewSocket(diag)) })
	return nil
}

// replace builds the generation of workers and services that the parent has
// announced. It makes this generation the current one, and reports the result
// to the parent. If replace fails, the current generation stays.
func (d *dispatcher) replace(a announced) {
	d.Do(d.stopRenewTimer)
	g, err := d.build(a)
	d.Do(func() {
		if err != nil {
			d.reportResult(a.ID, err)
			return
		}
		g.makeTickets(d.current)
		d.router.Renew(g.Generation, func(err error) { d.reportResult(a.ID, d.activate(g, err)) })
	})
}

// reportResult informs the parent whether the workers of generation id can
// serve, and if not, why.
func (d *dispatcher) reportResult(id uint32, err error) {
	d.renewPending = false
	d.stopRenewTimer()
	d.parent.Send(&ipc.GenerationResult{ID: id, Result: ipc.ResultOf(err)})
	if err != nil {
		d.retryRenew()
	}
}

// activate makes g the current generation. If err is not nil, the workers of g
// can't serve. In that case, activate only releases g and returns err.
func (d *dispatcher) activate(g *generation, err error) error {
	if err != nil {
		g.Release()
		return err
	}
	if d.current != nil {
		d.current.Release()
	}
	if g.keeper != nil && g.keeper.Identity.UID == d.config.UID && (d.current == nil || d.current.keeper == nil) {
		d.log.Warn("keeper has the uid of the workers; it gets its own uid if root starts the gateway", "uid", d.config.UID)
	}
	if d.current == nil && g.setup.Metrics {
		d.closing.Go(d.export)
	}
	d.current, d.builtAt = g, time.Now()
	d.serves.Store(true)
	d.hosts.Configure(&g.setup)
	d.CountGeneration()
	d.level.Set(slog.Level(g.setup.LogLevel))
	d.subuids = g.ranges
	g.onServiceExit(func(p *service.Process) { d.Do(func() { d.serviceExited(g, p) }) })
	if d.ageTimer != nil {
		d.ageTimer.Stop() // otherwise the timer would keep the previous generation in memory until it fires
	}
	d.ageTimer = d.renewAfter(d.limits.Age)
	return nil
}

// serviceExited asks the parent for a new generation of workers and services,
// because the service p of generation g has exited.
func (d *dispatcher) serviceExited(g *generation, p *service.Process) {
	if g != d.current || d.stopped {
		return
	}
	d.names.Fail()
	d.hosts.Fail()
	if time.Since(d.builtAt) > 2*pool.Backoff(d.failures) {
		d.failures = 0
	}
	wait := pool.Backoff(d.failures)
	d.failures++
	d.log.Error(p.Role().String()+" exited", errs.LogAttrs(errs.HintOf(p.Err()), "because", p.Err(), "pause", wait)...)
	g.Replacing = wait == 0 // if true, connections wait for the next generation; it is false after several failures in a row
	d.renewAfter(wait)
}

// retryRenew handles the case that a new generation could not replace the
// current one. If a service of the current generation has exited, retryRenew
// asks for another generation of workers and services after a pause. Until a
// new generation takes over, the current workers serve without the service that
// has exited.
func (d *dispatcher) retryRenew() {
	if d.current == nil || !d.current.isBroken() {
		return
	}
	d.current.Replacing = false
	d.ServeWaiting()
	d.failures++
	d.renewAfter(pool.Backoff(d.failures))
}

// renewAfter asks the parent for a new generation after the given time, unless
// the current generation has been replaced by then.
func (d *dispatcher) renewAfter(wait time.Duration) *time.Timer {
	g := d.current
	return d.After(wait, func() {
		if d.current == g {
			d.renew()
		}
	})
}

// renew asks the parent for a new generation of workers and services. The
// parent might not announce one, for example because it can't open the key
// files. In that case, if a service of the current generation has exited, renew
// asks again later.
func (d *dispatcher) renew() {
	if d.renewPending || d.stopped {
		return
	}
	d.renewPending = true
	d.parent.Send(&ipc.RenewGeneration{ID: d.current.ID})
	if d.ageTimer != nil { // if the current generation stays, its session ticket keys must not stay for good
		d.ageTimer.Reset(d.limits.Age)
	}
	var timer *time.Timer
	timer = d.After(renewTimeout, func() {
		if d.renewTimer == timer { // otherwise the timer was stopped too late
			d.renewTimer, d.renewPending = nil, false
			d.retryRenew()
		}
	})
	d.renewTimer = timer
}

// stopRenewTimer records that the parent has announced a generation of workers,
// so that renew does not ask for it again.
func (d *dispatcher) stopRenewTimer() {
	if d.renewTimer != nil {
		d.renewTimer.Stop()
		d.renewTimer = nil
	}
}

// renewTimeout is how long the dispatcher waits for the parent to announce a
// new generation of workers before it asks again.
const renewTimeout = 5 * time.Second

// logCounters makes all processes log their counters. The counters of requests
// are in the workers, because only workers read requests.
func (d *dispatcher) logCounters() {
	d.LogCounters()
	if d.current != nil {
		d.current.logCounters()
	}
}

// finish first dispatches the connections that the parent has already sent.
// Then it drains all workers, and ends the process.
func (d *dispatcher) finish() {
	d.accepting.Wait()
	d.Do(func() {
		d.stopped = true
		d.router.Stop()
		d.Slots.Close()
		d.Set.Close()
	})
	drain := 10 * time.Second
	_ = d.Call(func() error {
		if d.current != nil {
			drain = d.current.setup.Limits.Drain
		}
		return nil
	})
	// Workers observe the drain limit themselves, but a compromised worker may
	// ignore it.
	timer := d.After(drain+process.ExitGrace, func() { d.Kill("did not exit in time") })
	defer timer.Stop()
	<-d.Done
	_ = d.Call(func() error {
		if d.current != nil {
			d.current.Release()
		}
		d.ended = true
		return nil
	})
	d.closing.Wait()
	d.parent.Close()
}

// reportViolation kills a worker that broke the protocol of a service. It may
// be called in any goroutine.
func (d *dispatcher) reportViolation(worker uint32, reason string) {
	if d.violations == nil {
		d.ReportViolation(worker, reason)
		return
	}
	select {
	case d.violations <- reason:
	default:
	}
}

// serveInetd serves the only client of an inetd run.
func (d *dispatcher) serveInetd(a announced, client *inetd.Client) {
	err := d.runInetd(a, client)
	d.parent.Send(&ipc.InetdResult{Result: ipc.ResultOf(err)})
	d.parent.Close()
}

func (d *dispatcher) runInetd(a announced, client *inetd.Client) error {
	if a.invalid != nil {
		return a.invalid
	}
	c := d.config
	d.level.Set(slog.Level(a.setup.LogLevel))
	d.names = dispatch.NewNames(pool.NewLoop())
	d.violations = make(chan string, 1)
	serviceExits := make(chan string)
	g := d.newGeneration(a)
	defer g.close()
	d.hosts.Send = func(m *work.HostLookup) error { return g.askResolver(m) }
	if err := d.getKeys(g); err != nil {
		return err
	}
	return inetd.Serve(inetd.Options{
		Client:  client,
		Starter: d.starter,
		Worker:  ipc.StartProcess{Role: ipc.Worker, Generation: a.ID, Client: client.ID, Threads: c.Threads, Requests: 1},
		Quota:   d.quota,
		Setup:   a.setup,
		Dial:    dial.Options{Hosts: d.hosts, Burst: d.limits.DialBurst, Rate: d.limits.DialRate, Counts: new(dial.Counters)},
		Services: func() error {
			if err := d.startServices(g); err != nil {
				return err
			}
			d.hosts.Configure(&a.setup)
			g.onServiceExit(func(p *service.Process) {
				serviceExits <- p.Err().Error() // blocks forever when the run is over
				d.log.Error(p.Role().String()+" exited", "because", p.Err())
			})
			return nil
		},
		Provision:    func(p *process.Process) error { return g.provision(pool.Describe(p, 1), p.Channel) },
		Audit:        func(m ipc.Message) { g.audit.Send(m) },
		Violations:   d.violations,
		ServiceExits: serviceExits,
		Finish:       d.finishing,
		StartLimit:   c.StartLimit,
		PingTimeout:  c.PingTimeout,
		Ready: func(enforced ipc.Ready) {
			d.parent.Send(&ipc.GenerationResult{ID: a.ID, Result: ipc.ResultOf(nil)})
			d.announceConfinement(a, enforced)
			d.announceRules(a.setup)
		},
	})
}

// Serve does nothing, because the dispatcher is not a service for workers.
func (d *dispatcher) Serve(*servicemain.Client) {}

// Counters returns nothing. On SIGUSR1, the parent sends LogCounters instead,
// which makes the dispatcher log its counters.
func (d *dispatcher) Counters() []any { return nil }

// Close does nothing: when the parent is gone, no process can be started or
// ended.
func (d *dispatcher) Close() {}
