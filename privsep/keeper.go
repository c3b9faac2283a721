package privsep

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// keeper is the process that holds the secret keys, as the parent sees it. It runs while there is
// something to keep, and is started again when it dies.
type keeper struct {
	config  Config
	who     service             // the workers'
	self    []security.Identity // the keeper's own, the best first
	program *os.File
	missing error // why there is no program
	spawner *spawn.Spawner
	log     *slog.Logger
	room    *spawn.Quota           // for what it logs
	settle  func(first bool) error // gives one that is ready its keys
	accuse  func(worker uint32, why string)
	accused *rate.Bucket  // how many workers it may have ended
	quit    chan struct{} // closed when the gateway stops
	wake    chan struct{} // gets a token when it is needed
	running sync.WaitGroup

	mu      sync.Mutex
	needed  bool
	process *spawn.Process // nil while there is none
	ready   bool
	more    chan struct{}  // closed when one is ready, and made anew
	settled *spawn.Process // the one that has its keys; nil while none has
	offered uint32         // number of what waits for Kept; 0 when nothing does
	kept    chan *ipc.Kept // gets it
	warned  sync.Once
	silence silence
}

// mostAccused is how many workers keepers may have ended at once, and accusedRate how many in a second.
const (
	mostAccused = 100
	accusedRate = .1
)

// newKeeper opens the keeper's program. That it can't be is of no account until it is needed.
func newKeeper(c Config, who service, settle func(bool) error, accuse func(uint32, string)) (*keeper, error) {
	k := &keeper{config: c, who: who, log: c.Log, room: c.newQuota(), settle: settle, accuse: accuse, accused: rate.New(mostAccused, accusedRate, time.Now()), quit: make(chan struct{}), wake: make(chan struct{}, 1),
		more: make(chan struct{}), kept: make(chan *ipc.Kept, 1)}
	self := service{Identity: who.Identity, root: who.root}
	if who.root {
		// Another uid than the workers', and nobody's: who captures a worker can neither stop nor
		// trace the keeper.
		for _, id := range become.Strangers() {
			k.self = append(k.self, security.Identity{Name: fmt.Sprintf("uid %d", id), UID: id, GID: id})
		}
		if len(k.self) == 0 {
			return nil, errs.New(errs.Unavailable, "there is no random number to make the keeper's uid of")
		}
		self.Identity = k.self[0]
	} else {
		k.self = []security.Identity{who.Identity}
	}
	var err error
	if k.program, err = spawn.OpenProgram("keeper", c.Keeper, spawn.KeeperName, self.Identity, self.root, self.UID, who.UID); err != nil {
		k.missing = errs.New(errs.Invalid, "%v", err).WithHint("%s", errs.HintOf(err))
	}
	return k, nil
}

// start starts the keeper when it is needed, and returns when it has its keys.
func (k *keeper) start(s *spawn.Spawner, needed bool) error {
	k.spawner = s
	k.needed = needed
	k.running.Go(k.watch)
	if !needed {
		k.running.Go(func() { k.keep(nil) })
		return nil
	}
	first := make(chan error, 1)
	k.running.Go(func() { k.keep(first) })
	if err := <-first; err != nil {
		k.stop()
		return err
	}
	return nil
}

// stop ends the keeper.
func (k *keeper) stop() {
	k.mu.Lock()
	close(k.quit)
	if k.process != nil {
		k.process.Channel.Close()
	}
	k.mu.Unlock()
	k.running.Wait()
	if k.program != nil {
		k.program.Close()
	}
}

// keep has a keeper running for as long as it is needed. The pause before the next one grows while they
// die young. A first one that does not come to have its keys ends the start.
func (k *keeper) keep(first chan<- error) {
	failures := 0
	for k.isNeeded() {
		began := time.Now()
		err := k.live(&first)
		if k.isStopped() {
			return
		}
		if first != nil {
			first <- err
			return
		}
		k.mu.Lock()
		needed := k.needed
		k.mu.Unlock()
		if !needed {
			k.log.Info("keeper is done: there is nothing to keep")
			continue
		}
		failures++
		if time.Since(began) > 2*pause(failures) {
			failures = 1
		}
		k.log.Error("keeper is gone: handshakes wait for the next one, and the daemons vouch for tokens",
			about(errs.HintOf(err), "because", err, "pause", pause(failures))...)
		select {
		case <-k.quit:
			return
		case <-time.After(pause(failures)):
		}
	}
}

// live is the whole life of one keeper: start, listen to it, bury it.
func (k *keeper) live(first *chan<- error) error {
	p, err := k.spawn()
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.process, k.ready, k.silence, k.offered = p, false, silence{}, 0
	stale := k.isStopped() || !k.needed
	k.mu.Unlock()
	if stale {
		p.Channel.Close()
	}
	late := time.AfterFunc(k.config.StartLimit, func() {
		k.end(p, fmt.Sprintf("it was not ready within %s", k.config.StartLimit), func() bool { return !k.ready })
	})
	defer late.Stop()
	why, unsettled := k.hear(p, first)
	patience := spawn.LastWords
	if unsettled != nil || !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := k.bury(p, patience)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case p.Caged:
		return errs.New(errs.Internal, "the keeper was killed by its cage: it made a system call that no keeper makes (%s)", status).WithHint("%s", spawn.CaptureHint)
	case unsettled != nil:
		return unsettled
	case p.Ending != "":
		return errs.New(errs.Unavailable, "the keeper was ended: %s", p.Ending)
	case errors.Is(why, io.EOF):
		return errs.New(errs.Internal, "the keeper died: %s", status).WithHint("its last words are in the log above")
	}
	return why
}

// hear listens to p until its channel closes, and gives it its keys, of which first hears. One that does not
// come to have them is of no use, and is ended: the next one finds what the files have then.
func (k *keeper) hear(p *spawn.Process, first *chan<- error) (why, unsettled error) {
	settled := make(chan error, 1)
	heard := make(chan error, 1)
	begin := func() { settled <- k.settle(*first != nil) }
	go func() { heard <- k.serveChannel(p, begin) }()
	select {
	case why = <-heard:
		return why, nil
	case unsettled = <-settled:
	}
	if unsettled != nil {
		k.end(p, unsettled.Error(), nil)
		return <-heard, unsettled
	}
	k.warned.Do(func() {
		if !k.who.root {
			k.log.Warn("the keeper has the workers' uid: a start as root gives it one of its own", "uid", k.who.UID)
		}
	})
	if *first != nil {
		*first <- nil
		*first = nil
	}
	return <-heard, nil
}

func (k *keeper) bury(p *spawn.Process, patience time.Duration) string {
	k.mu.Lock()
	k.process, k.ready, k.settled = nil, false, nil
	k.mu.Unlock()
	return p.Reap(patience)
}

func (k *keeper) isStopped() bool {
	select {
	case <-k.quit:
		return true
	default:
		return false
	}
}

// spawn starts a keeper process.
func (k *keeper) spawn() (p *spawn.Process, err error) {
	for _, as := range k.self {
		born := spawn.Birth{Role: ipc.Keeper, Program: k.program, Who: as, Argv: append([]string{spawn.KeeperName}, k.config.KeeperArgv...), Threads: k.config.Threads, Files: k.config.files()}
		p, err = k.spawner.Start(born, k.room, func(_ *spawn.Process, tasks uint64) ipc.Message {
			return &ipc.ServiceSetup{Files: uint32(k.config.files()), Tasks: uint32(tasks), LogLevel: k.config.Setup.LogLevel, Seal: k.config.Setup.Seal &^ ipc.SealUnix}
		})
		if !errors.Is(err, unix.EINVAL) { // EINVAL: no such id in this user namespace
			break
		}
	}
	return p, err
}

// serveChannel hears a keeper until its channel closes. settle gives it its keys, when it is ready.
func (k *keeper) serveChannel(p *spawn.Process, settle func()) error {
	for {
		m, err := p.Channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			k.log.Info("keeper is ready", "keeper", p.Number, "pid", p.PID, "sealed", security.Sealed(*m).String(), "took", time.Since(p.Started).Round(10*time.Microsecond))
			k.mu.Lock()
			k.ready = true
			close(k.more)
			k.more = make(chan struct{})
			k.mu.Unlock()
			go settle()
		case *ipc.Refused:
			return errs.New(errs.Denied, "the keeper refuses to serve: %s", spawn.Printable(m.Reason))
		case *ipc.Kept:
			err = k.hearKept(m)
		case *ipc.Breach:
			if !k.accused.Take(time.Now(), 1) { // a captured one could stop the service so
				return errors.New("it said of too many workers that they broke the book")
			}
			k.accuse(m.Number, "to the keeper: "+spawn.Printable(m.Reason))
		case *ipc.Pong:
			err = k.heard(m.Number)
		default:
			err = ipc.Unheard(m)
		}
		if err != nil {
			return err
		}
	}
}

// end kills p for a reason of the parent's own, when it is still the one and still holds.
func (k *keeper) end(p *spawn.Process, why string, still func() bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process == p && (still == nil || still()) {
		p.Condemn(why)
	}
}

// watch listens for silence of the keeper's.
func (k *keeper) watch() {
	silence := time.NewTicker(k.config.Silence / 4)
	defer silence.Stop()
	for {
		select {
		case <-k.quit:
			return
		case <-silence.C:
			k.ask()
		}
	}
}

// ask asks the keeper whether it still reads.
func (k *keeper) ask() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready {
		k.silence.ask(k.process, k.config.Silence)
	}
}

func (k *keeper) heard(number uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.silence.heard(number)
}
