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
	"schedrestd/security"
)

// keeper is the process that holds the private key of https:// listeners, as the parent sees it,
// and what workers are told about TLS. A nil one is that of a gateway without such a listener.
type keeper struct {
	config  Config
	who     service             // the workers'
	self    []security.Identity // the keeper's own, the best first
	program *os.File
	spawner *spawner
	log     *slog.Logger
	quit    chan struct{} // closed when the gateway stops
	running sync.WaitGroup

	changing sync.Mutex // over what is longer than one message: one pair is offered at a time

	mu      sync.Mutex
	tls     TLS      // where the files are
	seen    string   // their stamp when they were last tried
	pair    *pair    // the one in use; nil before the first
	number  uint32   // of the last pair
	process *process // nil while there is none
	ready   bool
	settled *process       // the one that has the pair in use; nil while none has
	offered uint32         // number of the pair that waits for Kept; 0 when none does
	kept    chan *ipc.Kept // gets it
	ending  string         // why the parent ended it
	asked   uint64         // number of the last Ping
	waiting time.Time      // since when that one is unanswered
	tickets [][32]byte     // the newest first
	round   uint32         // of the tickets
	greeted map[uint32]*greeting
}

// newKeeper opens the keeper's program when a listener needs it.
func newKeeper(c Config, who service, listeners []*listener) (*keeper, error) {
	needed := false
	for _, l := range listeners {
		needed = needed || l.tls
	}
	if !needed {
		return nil, nil
	}
	if err := c.TLS.check(); err != nil {
		return nil, err
	}
	k := &keeper{config: c, who: who, log: c.Log, tls: c.TLS, quit: make(chan struct{}),
		kept: make(chan *ipc.Kept, 1), greeted: map[uint32]*greeting{}}
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
	k.program, err = openAs("keeper", c.Keeper, keeperName, self, self.UID, who.UID)
	return k, err
}

// check refuses https without its files.
func (t TLS) check() error {
	if t.Certificate == "" || t.Key == "" {
		return errs.New(errs.Invalid, "https:// without a certificate and a key").
			WithHint("TLSParameters=restd_cert_file=…,restd_cert_key_file=… in the configuration names them")
	}
	return nil
}

// start starts the keeper and returns when it has a key.
func (k *keeper) start(s *spawner) error {
	if k == nil {
		return nil
	}
	k.spawner = s
	if err := k.rotate(); err != nil {
		return err
	}
	first := make(chan error, 1)
	k.running.Go(func() { k.keep(first) })
	if err := <-first; err != nil {
		k.stop()
		return err
	}
	if !k.who.root {
		k.log.Warn("the keeper has the workers' uid: a start as root gives it one of its own", "uid", k.who.UID)
	}
	k.running.Go(k.watch)
	return nil
}

// stop ends the keeper.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	k.mu.Lock()
	close(k.quit)
	if k.process != nil {
		k.process.channel.Close()
	}
	k.mu.Unlock()
	k.running.Wait()
	k.changing.Lock() // a reload may be at it still: it finds no keeper to offer anything to
	defer k.changing.Unlock()
	k.program.Close()
	if k.pair != nil {
		k.pair.close()
	}
}

// keep has a keeper running until the gateway stops. The pause before the next one grows while they
// die young. A first one that does not come to have a key ends the start.
func (k *keeper) keep(first chan<- error) {
	failures := 0
	for {
		began := time.Now()
		err := k.live(&first)
		select {
		case <-k.quit:
			return
		default:
		}
		if first != nil {
			first <- err
			return
		}
		failures++
		if time.Since(began) > 2*pause(failures) {
			failures = 1
		}
		k.log.Error("keeper is gone: clients that connect over TLS wait for the next one", "because", err,
			"hint", errs.HintOf(err), "pause", pause(failures))
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
	k.process, k.ready, k.ending, k.waiting, k.offered = p, false, "", time.Time{}, 0
	stale := k.isStopped()
	k.mu.Unlock()
	if stale {
		p.channel.Close()
	}
	late := time.AfterFunc(k.config.StartLimit, func() {
		k.end(p, fmt.Sprintf("it was not ready within %s", k.config.StartLimit), func() bool { return !k.ready })
	})
	defer late.Stop()
	settled := make(chan error, 1)
	heard := make(chan error, 1)
	go func() { heard <- k.serveChannel(p, settled) }()
	var why error
	select {
	case why = <-heard:
	case err := <-settled:
		if err != nil { // without a key it is of no use; the next one finds what the files have then
			k.end(p, err.Error(), nil)
			<-heard
			k.bury(p, 0)
			return err
		}
		if *first != nil {
			*first <- nil
			*first = nil
		}
		why = <-heard
	}
	patience := lastWords
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	status := k.bury(p, patience)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.ending != "":
		return errs.New(errs.Unavailable, "the keeper was ended: %s", k.ending)
	case errors.Is(why, io.EOF):
		return errs.New(errs.Internal, "the keeper died: %s", status).WithHint("its last words are in the log above")
	}
	return why
}

func (k *keeper) bury(p *process, patience time.Duration) string {
	k.mu.Lock()
	k.process, k.ready, k.settled = nil, false, nil
	k.mu.Unlock()
	return p.bury(patience)
}

func (k *keeper) isStopped() bool {
	select {
	case <-k.quit:
		return true
	default:
		return false
	}
}

// spawn starts a keeper process and tells it what to expect.
func (k *keeper) spawn() (p *process, err error) {
	var as security.Identity
	for _, as = range k.self {
		p, err = k.spawner.launch(birth{
			role: ipc.Keeper, program: k.program, who: as,
			argv: append([]string{keeperName}, k.config.KeeperArgv...), threads: k.config.Threads,
		}, k.log, newBudget(k.config.LogBurst, k.config.LogRate, time.Now()))
		if !errors.Is(err, unix.EINVAL) { // EINVAL: no such id in this user namespace
			break
		}
	}
	if err != nil {
		return nil, err
	}
	files := k.config.files()
	expect := k.spawner.expect(as, files)
	setup := ipc.KeeperSetup{Book: ipc.BookVersion, Files: uint32(files), LogLevel: k.config.Setup.LogLevel}
	for _, m := range []ipc.Message{&setup, &expect} {
		if err := p.channel.TrySend(m); err != nil {
			p.bury(0)
			return nil, errs.Wrap(err, errs.Internal, "tell the keeper what it needs")
		}
	}
	return p, nil
}

// serveChannel hears a keeper until its channel closes. settled gets whether it has a key, when it
// is ready.
func (k *keeper) serveChannel(p *process, settled chan<- error) error {
	for {
		m, err := p.channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			k.mu.Lock()
			k.ready = true
			k.mu.Unlock()
			k.log.Info("keeper is ready", "keeper", p.number, "pid", p.pid, "took", time.Since(p.started).Round(10*time.Microsecond))
			go func() { settled <- k.settle() }()
		case *ipc.Refused:
			return errs.New(errs.Denied, "the keeper refuses to serve: %s", printable(m.Reason))
		case *ipc.Kept:
			err = k.hearKept(m)
		case *ipc.Pong:
			err = k.hearPong(m.Number)
		default:
			err = fmt.Errorf("%s is in the book, and nobody reads it here", m.Kind())
		}
		if err != nil {
			return err
		}
	}
}

// end kills p for a reason of the parent's own, when it is still the one and still holds.
func (k *keeper) end(p *process, why string, still func() bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process != p || still != nil && !still() {
		return
	}
	if k.ending == "" {
		k.ending = why
	}
	p.kill()
}

// watch asks the keeper whether it still reads, looks for renewed files, and changes the keys of
// session tickets, each in its time.
func (k *keeper) watch() {
	silence, files, tickets := time.NewTicker(k.config.Silence/4), time.NewTicker(k.config.Watch), time.NewTicker(k.config.Rotate)
	defer silence.Stop()
	defer files.Stop()
	defer tickets.Stop()
	for {
		select {
		case <-k.quit:
			return
		case <-silence.C:
			k.ask()
		case <-files.C:
			k.lookForRenewed()
		case <-tickets.C:
			if err := k.rotate(); err != nil {
				k.log.Error("the keys of session tickets stay as they are", "error", err)
			}
			k.tellAll()
		}
	}
}

// ask sends a Ping when the last one was answered, or judges how long it is due.
func (k *keeper) ask() {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.ready:
	case k.waiting.IsZero():
		k.asked++
		k.waiting = time.Now()
		_ = k.process.channel.TrySend(&ipc.Ping{Number: k.asked})
	case time.Since(k.waiting) > k.config.Silence:
		k.ending = fmt.Sprintf("it has not read its channel for %s", k.config.Silence)
		k.process.kill()
	}
}

// hearPong takes the answer to the Ping that waits, and no other.
func (k *keeper) hearPong(number uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting.IsZero() || number != k.asked {
		return fmt.Errorf("it said Pong %d, which nobody asked for", number)
	}
	k.waiting = time.Time{}
	return nil
}

// rotate makes a new key for session tickets; tickets of the two before it are still read.
func (k *keeper) rotate() error {
	var key [32]byte
	if n, err := unix.Getrandom(key[:], 0); n != len(key) {
		return errs.Wrap(errors.Join(err, io.ErrUnexpectedEOF), errs.Internal, "make a key for session tickets")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tickets = append([][32]byte{key}, k.tickets[:min(2, len(k.tickets))]...)
	k.round++
	return nil
}
