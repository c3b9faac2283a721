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

// Reloader reads the configuration again and checks it. What it returns replaces what Config had, when
// workers can serve by it: then Accepted is called.
type Reloader interface {
	Reload() (ipc.Setup, ipc.Secrets, error)
	Accepted()
}

// renewals has the next generation built when something asks for it: a SIGHUP, a key file that has
// changed, age, wear, or the death of a service or of the namespace's first process.
type renewals struct {
	parent
	dispatcher dispatch.Dispatcher
	config     Config
	wishes     chan wish   // at most one waits while one is fulfilled
	over       atomic.Bool // the end has begun
	busy       sync.WaitGroup
	early      bool // a SIGHUP came while the first workers started

	current *generation // in force; it changes in the loop, while this goroutine waits

	// What follows belongs to the goroutine that builds.
	lost   <-chan *service.Process // gets the first service of the current generation that exits
	built  time.Time               // when the current one was
	home   *spawn.Spawner          // that started processes then
	failed int                     // generations in a row that lost a service soon, or could not replace one that did
	tried  string                  // stamp of the key files when they were last looked at; "": not since the last generation
}

// wish is why a generation is to be built. The greater one includes the others.
type wish int

const (
	wishLost   wish = iota // a service has died, or the first process of the PID namespace
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

// logCounters has all processes write what they counted to the log. Requests are counted by workers, which read them.
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

// replaceLost has the generation in force replaced, of which a service has exited.
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
	r.Do(func() { r.current.Replacing = true }) // connections wait for the next generation; but not for one of many that break
	r.renew(wishLost)
}

// started has the first generation built. A signal ends the wait for it, which a worker that hangs can
// make long: nobody is served yet, and workers end with their channels. A wish to reread is kept.
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

// wish asks for a generation. What waits to be built is built for the greater one of the two wishes.
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

// until renews whenever it is asked to, and returns with the first signal that asks for the end.
// That need not wait for a renewal.
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
		r.makers.audit.Reopen() // whatever becomes of the rest
		r.wish(wishReload)
	}
	return nil
}

// look renews when a key file has changed since it was last tried, and is not being written.
func (r *renewals) look() {
	if keys.Stamp(r.config.Secrets) != r.tried && r.current.keys.IsAtRest(r.config.Still) {
		r.renew(wishKeys)
	}
}

// renew builds the generation that w asks for. When it can't serve, the one in force stays.
func (r *renewals) renew(w wish) {
	if r.over.Load() || w == wishLost && !r.isLost() { // one that is whole was built meanwhile
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

// again has a generation built after a pause when the one in force has lost something.
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

// reread asks for the configuration of now, and puts it in force or changes nothing.
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

// stop lets the generation in force go, and returns when all have ended.
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
