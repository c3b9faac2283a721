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

// preparePair has the keeper know the pair of t, which is not in use yet; nil when that one is in use already.
func (k *keyring) preparePair(t TLS) (*pair, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	k.mu.Lock()
	same := k.pair != nil && t == k.pair.tls && t.stamp() == k.seen
	k.mu.Unlock()
	if same {
		return nil, nil
	}
	return k.openAndOffer(t)
}

// withdraw forgets a pair that was prepared. The keeper forgets the oldest first: it is given the one in use again.
func (k *keyring) withdraw(p *pair) {
	p.close()
	k.mu.Lock()
	old := k.pair
	if p.tls == k.tls {
		k.seen = "" // a look uses it yet: its files are in the place of the ones in use
	}
	k.mu.Unlock()
	if old == nil {
		return
	}
	if err := k.offerPair(old); err != nil { // it was written over, and the keeper knows it still
		k.config.Log.Debug("the certificates in use can't be given again", "error", err)
	}
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
		k.config.Log.Error("renewed certificates are not used, those before them stay", about(errs.HintOf(err), "error", err)...)
	}
}

// load has the files of t used. When they can't be nothing changes.
func (k *keyring) load(t TLS) error {
	p, err := k.openAndOffer(t)
	if err == nil {
		k.usePair(p)
	}
	return err
}

// openAndOffer opens the files of t and has the keeper take them.
func (k *keyring) openAndOffer(t TLS) (*pair, error) {
	seen := t.stamp() // before they are opened: what changes while they are read is seen next time
	k.mu.Lock()
	if t == k.tls {
		k.seen = seen
	}
	k.mu.Unlock()
	p, err := openPair(t, k.who)
	if err != nil {
		return nil, err
	}
	p.number, p.seen = k.next(), seen
	if err := k.offerPair(p); err != nil {
		p.close()
		return nil, t.refused(err)
	}
	return p, nil
}

// usePair has workers show p, which the keeper knows.
func (k *keyring) usePair(p *pair) {
	k.mu.Lock()
	old := k.pair
	k.pair, k.tls, k.seen = p, p.tls, p.seen
	k.mu.Unlock()
	if old != nil {
		old.close()
	}
	k.config.Log.Info("certificate is in use", "file", p.tls.Certificate, "number", p.number, "client_certificates", p.tls.ClientCA != "")
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
