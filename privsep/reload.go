package privsep

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"schedrestd/errs"
	"schedrestd/notify"
)

// hangUp is the signal that asks for a reload.
const hangUp = syscall.SIGHUP

// renewals has workers replaced: by those of a configuration that was reread, or because they
// are worn. New ones are ready before the old ones are retired, and no connection is dropped.
type renewals struct {
	config Config
	who    service
	audit  *audit
	worn   chan struct{} // gets a token when workers have served enough
	over   atomic.Bool   // the end has begun
	early  bool          // a SIGHUP came while the first workers started
}

func newRenewals(c Config, who service, audit *audit) *renewals {
	return &renewals{config: c, who: who, audit: audit, worn: make(chan struct{}, 1)}
}

// ask asks for new workers in place of worn ones.
func (r *renewals) ask() {
	select {
	case r.worn <- struct{}{}:
	default:
	}
}

// started starts the first workers of h. A signal ends the wait for them, which a worker that hangs can
// make long: nobody is served yet, and workers end with their channels. A wish to reread is kept.
func (r *renewals) started(h host, signals <-chan os.Signal) (stopped os.Signal, err error) {
	done := make(chan error, 1)
	go func() { done <- h.start() }()
	for {
		select {
		case err := <-done:
			return nil, err
		case s := <-signals:
			if s != hangUp {
				return s, nil
			}
			r.audit.renew()
			r.early = true
		}
	}
}

// until renews whenever it is asked to, and returns with the first signal that asks for the end.
// That need not wait for a renewal.
func (r *renewals) until(signals <-chan os.Signal, h host, secrets func(Config) error) os.Signal {
	age := time.NewTicker(r.config.Age)
	defer age.Stop()
	wishes := make(chan bool, 1) // true: reread; a wish that comes while one is fulfilled is kept
	defer close(wishes)
	defer r.over.Store(true)
	go func() {
		for reread := range wishes {
			r.renew(reread, h, secrets)
		}
	}()
	wish := func(reread bool) {
		select {
		case wishes <- reread:
		default:
			if reread {
				select { // rereading is renewing, too
				case <-wishes:
				default:
				}
				wishes <- true
			}
		}
	}
	if r.early {
		wish(true)
	}
	for {
		select {
		case s := <-signals:
			if s != hangUp {
				return s
			}
			r.audit.renew() // whatever becomes of the rest
			wish(true)
		case <-r.worn:
			wish(false)
		case <-age.C:
			wish(false)
		}
	}
}

// renew replaces the workers, and what they are told when reread is set.
func (r *renewals) renew(reread bool, h host, secrets func(Config) error) {
	c, begun := r.config, time.Now()
	if !reread {
		if err := h.renew(c); err != nil {
			c.Log.Error("worn workers stay: new ones can't serve", about(errs.HintOf(err), "error", err)...)
		}
		return
	}
	notify.Reloading()
	defer func() {
		if !r.over.Load() {
			notify.Ready()
		}
	}()
	if err := r.reread(&c, h, secrets); err != nil {
		c.Log.Error("nothing is changed: the configuration that was reread can't be used", about(errs.HintOf(err), "error", err)...)
		return
	}
	r.config = c
	if is, ok := c.Reload.(interface{ Accepted() }); ok {
		is.Accepted()
	}
	c.Log.Info("configuration is reread", "took", time.Since(begun).Round(time.Millisecond))
}

// reread asks for the configuration of now, and has it used or changes nothing.
func (r *renewals) reread(c *Config, h host, secrets func(Config) error) error {
	if c.Reload == nil {
		return errs.New(errs.Unsupported, "there is nothing that could be reread")
	}
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
		if err := c.suitsBecoming(r.who.root); err != nil {
			return err
		}
	}
	if err := secrets(*c); err != nil {
		return err
	}
	if err := h.renew(*c); err != nil {
		if back := secrets(r.config); back != nil {
			c.Log.Error("the keys of before can't be used any more", "error", back)
		}
		return err
	}
	return nil
}
