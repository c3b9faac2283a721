package privsep

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// settlePair gives a keeper that has just begun the pair that was in use, or else what the files
// have now. k.changing is held, here and below.
func (k *keyring) settlePair() error {
	k.mu.Lock()
	old, t := k.pair, k.tls
	k.mu.Unlock()
	if old != nil && k.offerPair(old) == nil {
		return nil
	}
	return k.load(t)
}

// reloadPair takes over t. When its files can't be used all stays as it is.
func (k *keyring) reloadPair(t TLS) error {
	if err := t.check(); err != nil {
		return err
	}
	k.mu.Lock()
	same := k.pair != nil && t == k.pair.tls && t.stamp() == k.seen
	k.mu.Unlock()
	if same {
		return nil
	}
	return k.load(t)
}

// lookForRenewed takes over files that are other ones than those that were tried last.
func (k *keyring) lookForRenewed() {
	k.mu.Lock()
	t := k.tls
	same := t.stamp() == k.seen
	k.mu.Unlock()
	if same {
		return
	}
	if err := k.load(t); err != nil {
		k.config.Log.Error("renewed certificates are not used, those before them stay", "error", err, "hint", errs.HintOf(err))
	}
}

// load opens the files of t and has the keeper take them. From then on they are the ones in use;
// until then nothing changes.
func (k *keyring) load(t TLS) error {
	seen := t.stamp() // before they are opened: what changes while they are read is seen next time
	k.mu.Lock()
	if t == k.tls {
		k.seen = seen
	}
	k.mu.Unlock()
	p, err := openPair(t, k.who)
	if err != nil {
		return err
	}
	p.number = k.next()
	if err := k.offerPair(p); err != nil {
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
	k.config.Log.Info("certificate is in use", "file", t.Certificate, "number", p.number, "client_certificates", t.ClientCA != "")
	return nil
}

// offerPair gives p to the keeper.
func (k *keyring) offerPair(p *pair) error {
	return k.keeper.offer(p.number, &ipc.KeyFD{Number: p.number, TLS12: p.tls.TLS12}, p.key, p.certificates, p.authorities)
}

// rotate makes a new key for session tickets; tickets of the two before it are still read.
func (k *keyring) rotate() error {
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
