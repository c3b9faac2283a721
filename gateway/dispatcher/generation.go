package dispatcher

import (
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/auditlog"
	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/service"
	"schedrestd/gateway/dispatcher/tokenfile"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A generation holds all processes that serve one configuration: the services,
// and the workers in the pools. It also holds the keys for its workers. Once a
// generation is built, its services and keys are never replaced. Instead, if
// the configuration changes or a service exits, the next generation is built
// alongside the current one. The next generation takes over when its workers
// have proved that they can serve.
type generation struct {
	*pool.Generation
	announced
	publicKeys *work.Keys // each worker gets these keys, with publicFDs
	publicFDs  []int
	keeper     *service.Process // nil: there are no secret keys
	resolver   *service.Process // nil: none is started
	audit      *auditlog.Feed   // nil: there is no audit log
	moved      bool             // renewKeeper will look at it; the loop owns this
}

// announced holds the configuration that the parent sends for a generation of
// workers and services.
type announced struct {
	ipc.BuildGeneration
	ranges  []ipc.Subuids
	setup   work.Setup
	invalid error // why workers can't serve with the setup, or nil
}

// newGeneration returns a generation without services.
func (d *dispatcher) newGeneration(a announced) *generation {
	g := &generation{announced: a}
	g.Generation = pool.NewGeneration(pool.Generation{Config: d.poolConfig(a.setup), ID: a.ID,
		Provision: g.provision, Audit: g.audit})
	if d.config.Switches.Output {
		g.Output, g.TokenOutput = d.startOutput(g), g.setup.TokenOutput
	}
	if d.config.Switches.Credentials && a.Keeper { // a reload can remove the key, and the parent would end this process
		g.Credential, g.NoCredential = d.startCredential(g), d.refuseCredential(g)
	}
	g.OnUnused = func() {
		if !d.ended { // a generation that could not be built ends with this process: WaitGroup permits no Go during Wait
			d.closing.Go(func() { g.close(); d.parent.Send(&ipc.GenerationReleased{ID: g.ID}) })
		}
	}
	return g
}

// poolConfig returns the configuration of a pool whose workers get the given
// setup.
func (d *dispatcher) poolConfig(setup work.Setup) pool.Config {
	c, l := d.config, d.limits
	return pool.Config{Setup: setup, Workers: int(c.Workers), Connections: int(c.Connections), Threads: int(c.Threads),
		RotateAfter: l.RotateAfter, StartLimit: c.StartLimit, WaitLimit: l.WaitLimit, PingTimeout: c.PingTimeout, RetireLimit: l.RetireLimit,
		Quota: d.quota, DialBurst: l.DialBurst, DialRate: l.DialRate, Hosts: d.hosts, Log: d.log}
}

// build starts the services of a new generation, and gets the keys for its
// workers.
func (d *dispatcher) build(a announced) (g *generation, err error) {
	g = d.newGeneration(a)
	if err = a.invalid; err == nil {
		err = d.startServices(g)
	}
	if err == nil {
		err = d.getKeys(g)
	}
	if err != nil {
		d.Do(g.Release)
		return nil, err
	}
	return g, nil
}

// startServices starts the resolver and the auditor of g.
func (d *dispatcher) startServices(g *generation) (err error) {
	if g.BuildGeneration.Resolver {
		hooks := service.Hooks{Report: d.reportViolation, Handle: d.handleNames}
		if g.resolver, err = d.resolver.Start(d.starter, g.BuildGeneration.ID, hooks); err != nil {
			return err
		}
	}
	if g.BuildGeneration.Audit {
		if g.audit, err = d.audit.Start(g.BuildGeneration.ID, d.reportViolation); err != nil {
			return err
		}
		g.Generation.Audit = g.audit
	}
	return nil
}

// getKeys gets from the parent the public keys that the workers will use.
// Before that, the keeper loads the secret keys. If it can't use one of them,
// the parent abandons g or chooses other keys. In the latter case, getKeys
// starts a new keeper with those keys.
func (d *dispatcher) getKeys(g *generation) error {
	for {
		kept := &ipc.KeysResult{OK: true}
		if g.BuildGeneration.Keeper {
			var err error
			if kept, err = d.startKeeper(g); err != nil {
				return err
			}
		}
		if g.setup.Register != "" && kept.OK && !kept.Token && !d.serves.Load() { // later, the tokens of the cluster are more important
			return errs.New(errs.Invalid, "gateway tokens can't be accepted, because the gateway can't read the key of the cluster").
				WithHint("the log has the reason, and a command that lets root read the key; or remove SCHEDRESTD_TOKEN_REGISTER")
		}
		d.parent.Send(&ipc.SecretKeysResult{KeysResult: *kept})
		switch r := <-d.replies; m := r.Message.(type) {
		case *ipc.PublicKeys:
			g.publicKeys, g.publicFDs = &work.Keys{PublicKeys: *m}, r.FDs
			return nil
		case *ipc.CheckResult:
			if err := m.Err(); err != nil {
				return err
			}
			g.keeper.Stop()
			g.keeper = nil
		}
	}
}

// makeTickets makes a new key for session tickets. It also keeps the two newest
// keys of the previous generation, so that workers accept tickets made with
// them.
func (g *generation) makeTickets(previous *generation) {
	if !g.publicKeys.TLS {
		return
	}
	var key [32]byte
	rand.Read(key[:])
	g.publicKeys.Tickets = [][32]byte{key}
	if previous != nil {
		list := previous.publicKeys.Tickets
		g.publicKeys.Tickets = append(g.publicKeys.Tickets, list[:min(2, len(list))]...)
	}
}

// startKeeper starts the keeper of g. The parent sends the keys directly to the
// keeper. startKeeper returns the keeper's answer.
func (d *dispatcher) startKeeper(g *generation) (*ipc.KeysResult, error) {
	kept := make(chan *ipc.KeysResult, 1)
	var started atomic.Pointer[service.Process] // getKeys may replace g.keeper meanwhile
	handle := func(m ipc.Message) (bool, error) {
		switch m := m.(type) {
		case *work.RegisterMoved:
			p := started.Load()
			if p == nil {
				return true, errors.New("sent RegisterMoved for a register that it was not given")
			}
			d.Do(func() { d.renewKeeper(g, p) })
		case *ipc.KeysResult:
			select {
			case kept <- m:
			default:
				return true, errors.New("sent KeysResult for keys that it was not given")
			}
		default:
			return false, nil
		}
		return true, nil
	}
	var err error
	hooks := service.Hooks{Report: d.reportViolation, Handle: handle}
	if g.keeper, err = d.keeper.Start(d.starter, g.BuildGeneration.ID, hooks); err != nil {
		return nil, err
	}
	started.Store(g.keeper)
	select {
	case answer := <-kept:
		kept <- nil // keeps the buffer full, so that a second answer is rejected
		if !answer.OK {
			return answer, nil
		}
		return answer, d.followTokens(g)
	case <-g.keeper.Done:
		return nil, g.keeper.Err()
	case <-time.After(d.config.StartLimit):
		return nil, errs.New(errs.Unavailable, "the keeper did not read the keys within %s", d.config.StartLimit)
	}
}

// renewKeeper replaces p, the keeper of g, by one that can append to the register of
// gateway tokens that is now in use. A file that is replaced again and again must not
// cause more than one generation a second, and a compromised keeper that reports this
// again and again must not use up this process's memory.
func (d *dispatcher) renewKeeper(g *generation, p *service.Process) {
	if g.moved {
		return
	}
	g.moved = true
	d.After(time.Second, func() {
		g.moved = false
		switch {
		case d.current == g:
			d.renew()
		case !p.Exited(): // g is not in use yet, or no longer
			d.renewKeeper(g, p)
		}
	})
}

// startOutput returns a function that starts a process that reads output for a
// worker of g, as the user of one of the worker's connections, or as a user for whom
// the keeper has vouched.
func (d *dispatcher) startOutput(g *generation) func(uint64, *work.WorkerChannel, *ipc.Channel) (pool.OutputProcess, error) {
	return func(client uint64, worker *work.WorkerChannel, to *ipc.Channel) (pool.OutputProcess, error) {
		if client == 0 && d.config.Switches.BecomeUser { // the parent would end this process
			return nil, errs.New(errs.Unavailable, "no connection of the user is open")
		}
		reportOwn := func(number uint32, reason string) { // users must not have the workers of others killed
			if number == worker.Number {
				d.reportViolation(number, reason)
			}
		}
		p, err := d.output.StartFor(d.starter, g.BuildGeneration.ID, client, service.Hooks{Report: reportOwn})
		if err != nil {
			return nil, err
		}
		var token uint64 // as the worker has named the user
		if g.setup.TokenOutput {
			token = client
		}
		if err := p.IntroduceFor(token, worker, to); err != nil {
			go p.Stop()
			return nil, err
		}
		return p, nil
	}
}

// startCredential returns a function that starts a process that gets the credentials of
// a user for whom the keeper of g has vouched.
func (d *dispatcher) startCredential(g *generation) func(uint64) (pool.OutputProcess, error) {
	return func(client uint64) (pool.OutputProcess, error) {
		p, err := d.credential.StartFor(d.starter, g.BuildGeneration.ID, client, service.Hooks{})
		if err != nil {
			return nil, err
		}
		if err := ipc.IgnoreClosed(p.Channel.Send(&work.CredentialSetup{Credentials: g.setup.Credentials})); err != nil {
			go p.Stop()
			return nil, err
		}
		return p, nil
	}
}

// refuseCredential returns a function that tells the keeper of g why there is no process
// that gets the credentials of a user.
func (d *dispatcher) refuseCredential(g *generation) func(uint64, string) {
	return func(client uint64, reason string) {
		if err := ipc.IgnoreClosed(g.keeper.Channel.TrySend(&work.NoCredential{Client: client, Reason: ipc.TruncateReason(reason)})); err != nil { // the worker waits longer
			d.log.Warn("keeper not told that there is no process of a user", "error", err)
		}
	}
}

// followTokens gives the keeper of g the register of gateway tokens, if there is
// one, and follows the file until the keeper exits. A register that can't be used
// prevents the start. Later, it must not keep a new key from being used, or a keeper
// from being replaced.
func (d *dispatcher) followTokens(g *generation) error {
	if g.setup.Register == "" {
		return nil
	}
	f := &tokenfile.Follower{Path: g.setup.Register, Owners: []uint32{g.setup.SchedUID}, Send: g.keeper.Channel.Send, Log: d.log,
		Rules: work.TokenRegister{Cluster: g.setup.Cluster, MinUID: g.setup.MinUID, SchedUID: g.setup.SchedUID, Privileged: g.setup.Privileged, Lifetime: uint32(g.setup.TokenLifetime / time.Second)}}
	if d.serves.Load() { // an editor may have emptied the file, and the running keepers know more
		f.Settle()
	}
	if err := f.Start(); err != nil {
		if !d.serves.Load() {
			return err
		}
		f.Refuse(err)
	}
	go f.Run(g.keeper.Done)
	return nil
}

// services returns the processes of the services of g.
func (g *generation) services() (list []*service.Process) {
	for _, p := range []*service.Process{g.resolver, g.keeper} {
		if p != nil {
			list = append(list, p)
		}
	}
	if g.audit != nil {
		list = append(list, g.audit.Process)
	}
	return list
}

// provision sends a ready worker its channels to the services, and then its
// keys. The worker must get all of them before its first connection.
func (g *generation) provision(worker *work.WorkerChannel, to *ipc.Channel) error {
	for _, p := range g.services() {
		if err := p.Introduce(worker, to); err != nil && err != error(service.ErrExiting) { // its exit ends the generation
			return err
		}
	}
	keys := *g.publicKeys // a Walker writes to what it sends, and several workers get these keys at the same time
	return ipc.IgnoreClosed(to.Send(&keys, g.publicFDs...))
}

// onServiceExit calls f with the first service of g that exits. It does not
// block, because it waits in goroutines.
func (g *generation) onServiceExit(f func(*service.Process)) {
	var first sync.Once
	for _, p := range g.services() {
		go func() {
			<-p.Done
			first.Do(func() { f(p) })
		}()
	}
}

// isBroken reports whether a service of g has exited.
func (g *generation) isBroken() bool {
	for _, p := range g.services() {
		if p.Exited() {
			return true
		}
	}
	return false
}

// handleNames handles an answer of the resolver.
func (d *dispatcher) handleNames(m ipc.Message) (handled bool, err error) {
	return d.hosts.Handle(m) || d.names.Handle(m), nil
}

// askResolver sends m to the resolver.
func (g *generation) askResolver(m ipc.Message, fds ...int) error {
	if g == nil || g.resolver == nil {
		return errs.New(errs.Unavailable, "no resolver is running")
	}
	return g.resolver.Channel.TrySend(m, fds...)
}

// logCounters makes the services of g log their counters.
func (g *generation) logCounters() {
	for _, p := range g.services() {
		p.LogCounters()
	}
}

// close stops the services and closes the key files.
func (g *generation) close() {
	g.keeper.Stop()
	g.resolver.Stop()
	g.audit.Stop()
	for _, fd := range g.publicFDs {
		unix.Close(fd)
	}
}
