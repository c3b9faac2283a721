package privsep

import (
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// greeting is what one worker was told of the keys.
type greeting struct {
	worker *worker

	mu       sync.Mutex
	keeper   *spawn.Process // whose channel it has
	pair     uint32         // number of the certificates it shows
	round    uint32         // of the tickets' keys
	set      uint32         // number of the key set
	keyRound uint32         // of the token key whose verdicts it may remember
}

// news is what workers should know now.
type news struct {
	keeper   *spawn.Process
	pair     *pair // nil: none
	tickets  [][32]byte
	round    uint32
	set      keySet
	keyRound uint32
}

// hello tells a worker that is ready all that it needs to know of keys, before its first connection.
func (k *keyring) hello(w *worker) error {
	g := &greeting{worker: w}
	k.mu.Lock()
	g.keyRound = k.keyRound // it has nothing to forget
	k.greeted[w.Number] = g
	k.mu.Unlock()
	go func() {
		<-w.Dead
		k.mu.Lock()
		delete(k.greeted, w.Number)
		k.mu.Unlock()
	}()
	return k.tell(g)
}

// tellAll tells every worker what has changed, and waits for none: one that does not read its
// channel has its own watch.
func (k *keyring) tellAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.greeted {
		go func() { _ = k.tell(g) }()
	}
}

// tell tells a worker what it does not know yet.
func (k *keyring) tell(g *greeting) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, err := k.news()
	if err != nil {
		return err
	}
	defer now.close()
	for _, say := range []func(*news) error{g.introduce, g.show, g.giveTickets, g.giveKeySet, g.sayKeyChanged} {
		if err := say(now); err != nil {
			return err
		}
	}
	return nil
}

// news is for the caller to close: its files may be replaced while they are on their way to a worker.
func (k *keyring) news() (n *news, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = &news{keeper: k.keeper.presented(), tickets: k.tickets, round: k.round, set: k.set, keyRound: k.keyRound}
	if n.set.file, err = k.set.content(); err != nil {
		return nil, err
	}
	if k.pair != nil {
		n.pair, err = k.pair.public()
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *news) close() {
	if n.pair != nil {
		n.pair.close()
	}
	if n.set.file != nil {
		n.set.file.Close()
	}
}

// introduce makes a channel between the keeper and the worker; nothing of it stays here. When the
// keeper can't be told it is dying, and the worker will hear of the next one.
func (g *greeting) introduce(now *news) error {
	if now.keeper == nil || g.keeper == now.keeper || g.worker.Channel.Phase() != ipc.Serving {
		return nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a channel between the keeper and a worker")
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	_ = now.keeper.Channel.Send(g.worker.card(), fds[0])
	g.keeper = now.keeper
	return g.worker.Channel.Send(&ipc.ServiceFD{Service: ipc.Keeper}, fds[1])
}

// show gives the worker the certificates. The authorities of clients come before them: nobody is let
// in unasked in between.
func (g *greeting) show(now *news) error {
	p, to := now.pair, g.worker.Channel
	if p == nil || g.pair == p.number {
		return nil
	}
	if p.tls.ClientCA != "" {
		if err := to.Send(new(ipc.ClientCA), int(p.authorities.Fd())); err != nil {
			return err
		}
	}
	g.pair = p.number
	return to.Send(&ipc.Certificate{Number: p.number, TLS12: p.tls.TLS12}, int(p.certificates.Fd()))
}

func (g *greeting) giveTickets(now *news) error {
	if g.round == now.round {
		return nil
	}
	g.round = now.round
	return g.worker.Channel.Send(&ipc.Tickets{Keys: now.tickets})
}

func (g *greeting) giveKeySet(now *news) error {
	if g.set == now.set.number {
		return nil
	}
	g.set = now.set.number
	return g.worker.Channel.Send(now.set.message(), int(now.set.file.Fd()))
}

func (g *greeting) sayKeyChanged(now *news) error {
	if g.keyRound == now.keyRound {
		return nil
	}
	g.keyRound = now.keyRound
	return g.worker.Channel.Send(new(ipc.KeyChanged))
}
