package privsep

import (
	"fmt"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// settle gives a keeper that has just begun the pair that was in use, or else what the files
// have now, and then tells the workers where it is.
func (k *keeper) settle() error {
	k.changing.Lock()
	defer k.changing.Unlock()
	k.mu.Lock()
	old, t := k.pair, k.tls
	k.mu.Unlock()
	var err error
	if old == nil || k.offer(old) != nil {
		err = k.load(t)
	}
	if err == nil {
		k.tellAll()
	}
	return err
}

// reload takes over t, on a signal. When its files can't be used all stays as it is.
func (k *keeper) reload(t TLS) error {
	if k == nil {
		return nil
	}
	if err := t.check(); err != nil {
		return err
	}
	k.changing.Lock()
	defer k.changing.Unlock()
	k.mu.Lock()
	same := k.pair != nil && t == k.pair.tls && t.stamp() == k.seen
	k.mu.Unlock()
	if same {
		return nil
	}
	if err := k.load(t); err != nil {
		return err
	}
	k.tellAll()
	return nil
}

// lookForRenewed takes over files that are other ones than those that were tried last.
func (k *keeper) lookForRenewed() {
	k.changing.Lock()
	defer k.changing.Unlock()
	k.mu.Lock()
	t, ready := k.tls, k.ready
	same := t.stamp() == k.seen
	k.mu.Unlock()
	if same || !ready {
		return
	}
	if err := k.load(t); err != nil {
		k.log.Error("renewed certificates are not used, those before them stay", "error", err, "hint", errs.HintOf(err))
		return
	}
	k.tellAll()
}

// load opens the files of t and has the keeper take them. From then on they are the ones in use;
// until then nothing changes. k.changing is held.
func (k *keeper) load(t TLS) error {
	seen := t.stamp() // before they are opened: what changes while they are read is seen next time
	k.mu.Lock()
	if t == k.tls {
		k.seen = seen
	}
	k.number++
	number := k.number
	k.mu.Unlock()
	p, err := openPair(t, k.who)
	if err != nil {
		return err
	}
	p.number = number
	if err := k.offer(p); err != nil {
		p.close()
		return errs.Wrap(err, errs.KindOf(err), "key file %s, certificate file %s", t.Key, t.Certificate)
	}
	k.mu.Lock()
	old := k.pair
	k.pair, k.tls, k.seen = p, t, seen
	k.mu.Unlock()
	if old != nil {
		old.close()
	}
	k.log.Info("certificate is in use", "file", t.Certificate, "number", number, "client_certificates", t.ClientCA != "")
	return nil
}

// offer gives p to the keeper and waits for its word; k.changing is held.
func (k *keeper) offer(p *pair) error {
	k.mu.Lock()
	if !k.ready {
		k.mu.Unlock()
		return errs.New(errs.Unavailable, "there is no keeper at this moment")
	}
	process := k.process
	select {
	case <-k.kept: // one that came too late
	default:
	}
	k.offered = p.number
	err := process.channel.TrySend(&ipc.KeyFD{Number: p.number, TLS12: p.tls.TLS12},
		int(p.key.Fd()), int(p.certificates.Fd()), int(p.authorities.Fd()))
	k.mu.Unlock()
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "give the keeper its key")
	}
	select {
	case m := <-k.kept:
		if !m.OK {
			return errs.New(errs.Invalid, "%s", printable(m.Reason))
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.process == process {
			k.settled = process
		}
		return nil
	case <-process.dead:
		return errs.New(errs.Unavailable, "the keeper died when it got the key")
	case <-time.After(k.config.StartLimit):
		return errs.New(errs.Unavailable, "the keeper has not read the key within %s", k.config.StartLimit)
	}
}

// hearKept takes the answer to the pair that was offered, and no other.
func (k *keeper) hearKept(m *ipc.Kept) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.offered == 0 || m.Number != k.offered {
		return fmt.Errorf("it said Kept of key %d, which it was not offered", m.Number)
	}
	k.offered = 0
	k.kept <- m
	return nil
}
