// Package privsep is the parent: the only process of the gateway that may be root, and
// the one that never reads a byte of what comes from the network.
//
// It judges who may serve, opens the listeners, drops what capabilities it can, and
// starts the workers. From then on it accepts, asks the kernel who is at the other
// end, hands the descriptor to a worker, and keeps count. A worker is taken for
// captured: what it says is held against the book of package ipc, and whoever breaks
// that is killed and logged, not answered.
//
// It refuses to parse HTTP, JSON or tokens, to dial anything, and to open what a
// worker names. Of ours it imports become, errs, guard, ipc, security
// and socket, and nothing else. The way in is Run.
package privsep

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/security"
)

// Run serves until a signal comes, and returns nil when all that was being answered
// then was answered. A second signal ends it at once.
func Run(signals <-chan os.Signal, c Config) error {
	signal.Ignore(syscall.SIGPIPE)
	if err := security.MarkCloseOnExec(); err != nil {
		return err
	}
	c, err := c.complete()
	if err != nil {
		return err
	}
	who, err := identify(c)
	if err != nil {
		return err
	}
	c.Setup = c.setup(who)
	program, err := openProgram(c.Program, who)
	if err != nil {
		return err
	}
	defer program.Close()
	listeners, err := listenAll(c, who)
	if err != nil {
		return err
	}
	slots := newSlots(c.Connections, c.Log)
	door := newDoor(listeners, slots, c.Log)
	defer door.close()
	keeper, err := newKeeper(c, who, listeners)
	if err != nil {
		return err
	}
	spawner, err := startSpawner(c, who.root, program)
	if err != nil {
		return err
	}
	defer spawner.stop()
	if err := dropCapabilities(who); err != nil {
		return err
	}
	p := newPool(c, who.Identity, spawner, slots)
	announce(c, who, spawner, listeners)
	if err := keeper.start(spawner); err != nil {
		return err
	}
	defer keeper.stop()
	p.hello = keeper.hello
	if err := p.start(); err != nil {
		return err
	}
	door.open(p)
	c.Log.Info("serving", "listen", names(listeners))
	notifyReady()

	first := <-signals
	notifyStopping()
	c.Log.Info("draining", "signal", first.String())
	door.close()
	return p.finish(first, signals)
}

// finish lets the workers end what they are answering, unless a second signal comes.
func (p *pool) finish(first os.Signal, signals <-chan os.Signal) error {
	p.drain()
	done := make(chan struct{})
	go func() { p.running.Wait(); close(done) }()
	// A captured worker need not keep its own limit.
	late := time.AfterFunc(p.config.Setup.Limits.Drain+lastWords, func() { p.end("it did not end in time") })
	defer late.Stop()
	// A terminal and some supervisors send the same signal twice at once: to the process
	// and to its group. That is one wish.
	same := time.Now().Add(sameSignal)
	for {
		select {
		case <-done:
			p.log.Info("stopped")
			return nil
		case s := <-signals:
			if s == first && time.Now().Before(same) {
				continue
			}
			p.end("a second signal came")
			<-done
			return errs.New(errs.Unavailable, "stopped by a second signal (%s) before all was answered", s)
		}
	}
}

// sameSignal is how close together two of a kind count as one.
const sameSignal = 500 * time.Millisecond

// dropCapabilities drops what the parent no longer needs. As root it keeps SETUID and SETGID, for
// the workers to come, and KILL, to end them; the namespaces and the bounding set
// are kept by the spawning thread, so that SYS_ADMIN and SETPCAP can go. Otherwise
// nothing stays: CAP_NET_BIND_SERVICE, if a unit gave it, is used by now.
func dropCapabilities(who service) error {
	var keep security.Capabilities
	if who.root {
		keep = security.Caps(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL)
	}
	kept, err := security.KeepCapabilities(keep)
	if err != nil {
		return err
	}
	if kept != keep {
		return errs.New(errs.Denied, "root without the capabilities to start and end workers (%s of %s)", kept, keep).
			WithHint("CAP_SETUID, CAP_SETGID and CAP_KILL are needed; or start as the serving user without -u")
	}
	return security.HideFromNeighbours()
}

// announce logs, once, who will serve and what of the cage can't be had.
func announce(c Config, who service, s *spawner, listeners []*listener) {
	c.Log.Info("starting workers", "user", who.Name, "uid", who.UID, "gid", who.GID,
		"workers", c.Workers, "connections", c.Connections, "listen", names(listeners))
	missing := s.missing
	if !who.root && len(who.Groups) > 0 {
		missing = append(missing, "dropping of supplementary groups")
	}
	if len(missing) > 0 {
		c.Log.Warn("part of the workers' confinement can't be had by this start", "left_out", missing)
	}
	if c.Switches.DisableUserCheck {
		c.Log.Warn("the identity check is off (disable_user_check): whoever captures a worker acts as its user", "uid", who.UID)
	}
}
