package privsep

import (
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// greeting is what one worker knows about TLS.
type greeting struct {
	worker *worker

	mu     sync.Mutex
	keeper *process // whose channel it has
	pair   uint32   // number of the certificates it shows
	round  uint32   // of the tickets' keys
}

// hello tells a worker that is ready all that it needs for TLS, before its first connection.
func (k *keeper) hello(w *worker) error {
	if k == nil {
		return nil
	}
	g := &greeting{worker: w}
	k.mu.Lock()
	k.greeted[w.number] = g
	k.mu.Unlock()
	go func() {
		<-w.dead
		k.mu.Lock()
		delete(k.greeted, w.number)
		k.mu.Unlock()
	}()
	return k.tell(g)
}

// tellAll tells every worker what has changed, and waits for none: one that does not read its
// channel has its own watch.
func (k *keeper) tellAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.greeted {
		go func() { _ = k.tell(g) }()
	}
}

// tell tells a worker what it does not know yet. The authorities of clients come before the
// certificates: nobody is let in unasked in between.
func (k *keeper) tell(g *greeting) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	k.mu.Lock()
	process, tickets, round := k.settled, k.tickets, k.round
	now, err := k.pair.public()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	defer now.close()
	to := g.worker.channel
	if process != nil && g.keeper != process && to.Phase() == ipc.Serving {
		if err := introduce(process, g.worker); err != nil {
			return err
		}
		g.keeper = process
	}
	if g.pair != now.number {
		if now.tls.ClientCA != "" {
			if err := to.Send(new(ipc.ClientCA), int(now.authorities.Fd())); err != nil {
				return err
			}
		}
		m := &ipc.Certificate{Number: now.number, TLS12: now.tls.TLS12}
		if err := to.Send(m, int(now.certificates.Fd())); err != nil {
			return err
		}
		g.pair = now.number
	}
	if g.round != round {
		if err := to.Send(&ipc.Tickets{Keys: tickets}); err != nil {
			return err
		}
		g.round = round
	}
	return nil
}

// introduce makes a channel between the keeper and a worker; nothing of it stays here. When the
// keeper can't be told it is dying, and the worker will hear of the next one.
func introduce(process *process, w *worker) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a channel between the keeper and a worker")
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	_ = process.channel.Send(&ipc.Client{Number: w.number}, fds[0])
	return w.channel.Send(new(ipc.KeeperFD), fds[1])
}
