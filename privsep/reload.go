package privsep

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/notify"
	"schedrestd/privsep/dispatch"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/service"
	"schedrestd/privsep/spawn"
)

// hangUp is the signal that asks for a reload.
const hangUp = syscall.SIGHUP

// Reloader reads the configuration again and checks it. The result replaces
// that of Config as soon as workers can serve with it. Then Accepted is called.
type Reloader interface {
	Reload() (ipc.Setup, ipc.Secrets, error)
	Accepted()
}

// renewals builds the next generation when a SIGHUP arrives, a key file has
// changed, the workers have served long enough or enough connections, or a
// service or the namespace init has exited.
type renewals struct {
	parent
	dispatcher dispatch.Dispatcher
	config     Config
	wishes     chan wish   // at most one waits while another is carried out
	over       atomic.Bool // shutdown has begun
	busy       sync.WaitGroup
	early      bool // a SIGHUP came while the first workers started

	current *generation // in force; it changes in the loop, while this goroutine waits

	// The following fields belong to the goroutine that builds.
	lost   <-chan *service.Process // gets the first service of the current generation that exits
	built  time.Time               // when the current one was
	home   *spawn.Spawner          // that started processes then
	failed int                     // generations in a row that lost a service soon, or could not replace one that did
	tried  string                  // stamp of the key files when they were last looked at; "": not since the last generation
}

// wish is the reason to build a generation. A greater one includes the smaller
// ones.
type wish int

const (
	wishLost   wish = iota // a service or the namespace init has exited
	wishYoung              // age or wear
	wishKeys               // a file of a key has changed
	wishReload             // SIGHUP
)

func newRenewals(c Config, m parent) *renewals {
	r := &renewals{parent: m, config: c, wishes: make(chan wish, 1)}
	r.dispatcher = dispatch.New(c.dispatchOptions(m.who, m.names), m.Set, func() { r.wish(wishYoung) })
	m.Slots.Admit, m.names.Send = r.dispatcher.Take, r.ask
	return r
}

// ask sends m to the resolver in force.
func (r *renewals) ask(m ipc.Message, fds ...int) error { return r.current.ask(m, fds...) }

// logCounters makes all processes log their counters. Workers count the
// requests, because only they read them.
func (r *renewals) logCounters() {
	r.LogCounters()
	r.current.show()
}

// replace builds a generation for c and puts it in force, or changes nothing.
func (r *renewals) replace(c Config, strict bool) error {
	r.tried = keys.Stamp(c.Secrets)
	g, err := r.build(c, r.current, strict)
	if err != nil {
		return err
	}
	err = r.Await(func(done func(error)) {
		r.dispatcher.Renew(g.Generation, func(err error) { done(r.replaced(g, err)) })
	})
	if err != nil {
		return err
	}
	r.config, r.tried = c, g.keys.Stamp
	r.built, r.home, r.lost = time.Now(), r.Spawner.InUse(), g.lost()
	return nil
}

// replaced puts g in force, unless its workers can't serve.
func (r *renewals) replaced(g *generation, err error) error {
	if err != nil {
		if errs.KindOf(err) == errs.Denied && r.current != nil && r.current.keys.RefuseSet(g.keys) {
			err = errs.Wrap(err, errs.Denied, "key set %s", r.current.config.Tokens.JWKS)
		}
		g.Release()
		return err
	}
	if r.current != nil {
		r.current.Release()
	}
	r.current = g
	return nil
}

// replaceLost replaces the generation in force, because its service p has
// exited.
func (r *renewals) replaceLost(p *service.Process) {
	r.lost = nil // one is enough
	r.Do(r.names.Fail)
	if time.Since(r.built) > 2*pool.Pause(r.failed) {
		r.failed = 0
	}
	wait := pool.Pause(r.failed)
	r.failed++
	r.config.Log.Error(p.Role().String()+" exited", errs.LogAttrs(errs.HintOf(p.Why()), "because", p.Why(), "pause", wait)...)
	if wait > 0 {
		time.AfterFunc(wait, func() { r.wish(wishLost) })
		return
	}
	r.Do(func() { r.current.Replacing = true }) // connections wait for the next generation, but not if many fail in a row
	r.renew(wishLost)
}

// started builds the first generation. A signal ends the wait for it, which a
// hanging worker can make long: no client is served yet, and workers exit when
// their channels close. A reload that is requested meanwhile is remembered.
func (r *renewals) started(signals <-chan os.Signal) (stopped os.Signal, err error) {
	done := make(chan error, 1)
	go func() { done <- r.replace(r.config, true) }()
	for {
		select {
		case err := <-done:
			return nil, err
		case s := <-signals:
			if s != hangUp {
				return s, nil
			}
			r.makers.audit.Reopen()
			r.early = true
		}
	}
}

// wish requests a generation. If another request is waiting, the greater of the
// two reasons remains.
func (r *renewals) wish(w wish) {
	for !r.over.Load() {
		select {
		case r.wishes <- w:
			return
		default:
		}
		select {
		case other := <-r.wishes:
			w = max(w, other)
		default:
		}
	}
}

// until renews whenever that is requested, and returns the first signal that
// requests the shutdown. It does not wait for a renewal in progress.
func (r *renewals) until(signals <-chan os.Signal) os.Signal {
	age, look := time.NewTicker(r.config.Age), time.NewTicker(r.config.Watch)
	defer age.Stop()
	defer look.Stop()
	defer r.over.Store(true)
	quit := make(chan struct{})
	defer close(quit)
	r.busy.Go(func() {
		for {
			select {
			case <-look.C:
				r.look()
			case <-age.C:
				r.renew(wishYoung)
			case w := <-r.wishes:
				r.renew(w)
			case p := <-r.lost:
				r.replaceLost(p)
			case <-quit:
				return
			}
		}
	})
	if r.early {
		r.wish(wishReload)
	}
	for s := range signals {
		if s != hangUp {
			return s
		}
		r.makers.audit.Reopen() // whether or not the reload succeeds
		r.wish(wishReload)
	}
	return nil
}

// look renews when a key file has changed since it was last tried, and is not
// being written.
func (r *renewals) look() {
	if keys.Stamp(r.config.Secrets) != r.tried && r.current.keys.IsAtRest(r.config.Still) {
		r.renew(wishKeys)
	}
}

// renew builds the generation that w requests. When that can't serve, the one
// in force stays.
func (r *renewals) renew(w wish) {
	if r.over.Load() || w == wishLost && !r.isLost() { // a whole one was built meanwhile
		return
	}
	c, begun := r.config, time.Now()
	if w != wishReload {
		if err := r.replace(c, false); err != nil {
			c.Log.Error("nothing is replaced: new workers can't serve", errs.LogAttrs(errs.HintOf(err), "error", err)...)
			if kind := errs.KindOf(err); kind == errs.Internal || kind == errs.Unavailable { // the files may be all right
				r.tried = ""
			}
			r.again()
			return
		}
		c.Log.Info("workers and services are replaced", "took", time.Since(begun).Round(time.Millisecond))
		return
	}
	notify.Reloading()
	defer func() {
		if !r.over.Load() {
			notify.Ready()
		}
	}()
	if err := r.reread(&c); err != nil {
		c.Log.Error("nothing is changed: the configuration that was reread can't be used", errs.LogAttrs(errs.HintOf(err), "error", err)...)
		r.again()
		return
	}
	c.Reload.Accepted()
	c.Log.Info("configuration is reread", "took", time.Since(begun).Round(time.Millisecond))
}

// isLost reports whether the generation in force has lost a service, or its PID namespace.
func (r *renewals) isLost() bool { return r.current.isBroken() || r.home != r.Spawner.InUse() }

// again schedules another build after a pause if the generation in force has
// lost something.
func (r *renewals) again() {
	if !r.isLost() {
		return
	}
	r.Do(func() {
		r.current.Replacing = false
		r.ServeWaiting()
	})
	r.failed++
	time.AfterFunc(pool.Pause(r.failed), func() { r.wish(wishLost) })
}

// reread reads the configuration and puts it in force, or changes nothing.
func (r *renewals) reread(c *Config) error {
	setup, paths, err := c.Reload.Reload()
	if err != nil {
		return err
	}
	c.Setup = setup
	c.Setup = c.setup(r.who)
	c.Secrets = paths
	if err := setup.Limits.Check(); err != nil {
		return errs.Wrap(err, errs.Internal, "set the workers up")
	}
	if c.Switches.BecomeUser {
		if err := c.identityOptions().CheckBecoming(r.who.Root); err != nil {
			return err
		}
	}
	return r.replace(*c, true)
}

// stop releases the generation in force, and returns when all generations have
// ended.
func (r *renewals) stop() {
	r.busy.Wait()
	_ = r.Call(func() error {
		if r.current != nil {
			r.current.Release()
		}
		return nil
	})
	r.ending.Wait()
}
