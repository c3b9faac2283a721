package privsep

import (
	"cmp"
	"os"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/spawn"
)

// keyring is the keys of the gateway as the parent sees them: where their files are, which are in use, and
// who has them. What is secret is with the keeper, and each worker is told where that is; what is
// public is with the workers.
type keyring struct {
	config  Config
	who     service // the workers'
	https   bool    // a listener needs certificates
	keeper  *keeper
	quit    chan struct{} // closed when the gateway stops
	running sync.WaitGroup

	changing sync.Mutex // over what is longer than one message: one secret is offered at a time
	tokenKey keyFile    // of HS256 tokens, for the keeper
	jwks     keyFile    // of RS256 tokens, for the workers
	saidOpen string     // path of the token key that was last said to be open to workers

	mu       sync.Mutex
	tls      TLS    // where the files are
	seen     string // their stamp when they were last tried
	pair     *pair  // the one in use; nil before the first
	number   uint32 // of what was last offered to the keeper
	set      keySet
	keyRound uint32     // of the token key
	tickets  [][32]byte // the newest first
	round    uint32     // of the tickets
	greeted  map[uint32]*greeting
}

// newKeyring judges the files of tokens' keys as long as all capabilities are there.
func newKeyring(c Config, who service, listeners []*listen.Listener, accuse func(worker uint32, why string)) (*keyring, error) {
	k := &keyring{config: c, who: who, tls: c.TLS, quit: make(chan struct{}), greeted: map[uint32]*greeting{}}
	k.tokenKey = keyFile{what: "key of HS256 tokens", used: "in use", option: "jwt_key", log: c.Log, still: c.Still,
		open: func(path string) (*os.File, error) { return openTokenKey(path, who) }, unlock: who.unlockTokenKey, use: k.useTokenKey}
	k.jwks = keyFile{what: "key set of RS256 tokens", used: "handed to the workers", option: "jwks", log: c.Log, still: c.Still,
		open: func(path string) (*os.File, error) { return openKeySet(path, who) }, unlock: unlockPublic, use: k.useKeySet}
	for _, l := range listeners {
		k.https = k.https || l.TLS
	}
	if k.https {
		if err := c.TLS.check(); err != nil {
			return nil, err
		}
	}
	tokens, err := c.tokens(who)
	if err != nil {
		return nil, err
	}
	if err := k.tokenKey.begin(tokens.Key); err != nil {
		return nil, err
	}
	if err := k.jwks.begin(tokens.JWKS); err != nil {
		return nil, err
	}
	k.keeper, err = newKeeper(c, who, k.settle, accuse)
	return k, err
}

// needsKeeper tells whether there is something to keep.
func (k *keyring) needsKeeper() bool { return k.https || k.tokenKey.file != nil }

// start starts the keeper, if there is something to keep, and returns when it keeps it. The capabilities
// are dropped: what can be opened now can be opened again when it was renewed.
func (k *keyring) start(s *spawn.Spawner) error {
	if err := cmp.Or(k.tokenKey.settle(), k.jwks.settle()); err != nil {
		return err
	}
	if k.needsKeeper() && k.keeper.missing != nil {
		return k.keeper.missing
	}
	if k.jwks.file != nil {
		_ = k.useKeySet(k.jwks.file, k.jwks.followed)
		k.jwks.sayUsed()
	}
	if k.https {
		if err := k.rotate(); err != nil {
			return err
		}
	}
	if err := k.keeper.start(s, k.needsKeeper()); err != nil {
		return err
	}
	k.running.Go(k.watch)
	return nil
}

// stop ends the keeper and closes the files.
func (k *keyring) stop() {
	close(k.quit)
	k.keeper.stop()
	k.running.Wait()
	k.changing.Lock() // a reload may be at it still: it finds no keeper to offer anything to
	defer k.changing.Unlock()
	k.tokenKey.close()
	k.jwks.close()
	if k.pair != nil {
		k.pair.close()
	}
}

// settle gives a keeper that has just begun what was in use, or else what the files have now, and then
// tells the workers where it is. Without certificates it is of no use where there are https:// listeners; without
// the key of tokens the daemons vouch for those, but the first one has to have it.
func (k *keyring) settle(first bool) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	if k.https {
		if err := k.settlePair(); err != nil {
			return err
		}
	}
	err := k.offerTokenKey(k.tokenKey.file, k.tokenKey.followed)
	switch {
	case err != nil && (first || errs.KindOf(err) == errs.Unavailable):
		return err
	case err != nil: // it was written over; a look finds what is there instead
		k.config.Log.Error("the keeper has no key of HS256 tokens: they are vouched for by the daemons", about(errs.HintOf(err), "error", err)...)
	case first && k.tokenKey.file != nil:
		k.tokenKey.sayUsed()
	}
	k.keeper.present()
	k.tellAll()
	return nil
}

// reload takes over the secrets of c, on a signal: all of them or none. All files are opened, and what
// the keeper may refuse is offered to it, before the first is used.
func (k *keyring) reload(c Config) error {
	tokens, err := c.tokens(k.who)
	if err != nil {
		return err
	}
	k.changing.Lock()
	defer k.changing.Unlock()
	defer k.tellAll()
	set, err := k.jwks.prepare(tokens.JWKS)
	if err != nil {
		return err
	}
	if err := k.reloadSecret(c.TLS, tokens.Key); err != nil {
		set.close()
		return err
	}
	return k.jwks.take(set) // which the workers have to like
}

// reloadSecret takes over what is for the keeper, or changes nothing.
func (k *keyring) reloadSecret(t TLS, path string) error {
	key, err := k.tokenKey.prepare(path)
	if err != nil {
		return err
	}
	var p *pair
	if k.https {
		if p, err = k.preparePair(t); err != nil {
			key.close()
			return err
		}
	}
	err = k.tokenKey.take(key)
	k.keeper.need(k.needsKeeper())
	switch {
	case p == nil:
	case err != nil:
		k.withdraw(p)
	default:
		k.usePair(p)
	}
	return err
}

// watch looks for newer files, and changes the keys of session tickets, each in its time.
func (k *keyring) watch() {
	files, tickets := time.NewTicker(k.config.Watch), time.NewTicker(k.config.Rotate)
	defer files.Stop()
	defer tickets.Stop()
	for {
		select {
		case <-k.quit:
			return
		case <-files.C:
			k.look()
		case <-tickets.C:
			if !k.https {
				continue
			}
			if err := k.rotate(); err != nil {
				k.config.Log.Error("the keys of session tickets stay as they are", "error", err)
			}
		}
		k.tellAll()
	}
}

// look takes over files that are other ones than those that were tried last. For those of the keeper
// it waits until there is one.
func (k *keyring) look() {
	k.changing.Lock()
	defer k.changing.Unlock()
	k.jwks.look()
	if k.needsKeeper() && !k.keeper.isReady() {
		return
	}
	if k.https {
		k.lookForRenewed()
	}
	k.tokenKey.look()
	k.keeper.need(k.needsKeeper())
}

// next is the number of what is offered to the keeper next.
func (k *keyring) next() uint32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.number++
	return k.number
}
