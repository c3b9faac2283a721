package privsep

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
)

// mayOwnTokenKeys are those who may own the files of tokens' keys.
func (s service) mayOwnTokenKeys() []uint32 { return slices.Compact([]uint32{s.schedUID, 0}) }

// openTokenKey opens the key of HS256 tokens, for the keeper; nil for no path. It is not read here.
func openTokenKey(path string, who service) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, _, err := guard.Open(path, guard.Rule{What: "key file", Secret: true, Owners: who.mayOwnTokenKeys()})
	if err != nil || !who.root {
		return f, err
	}
	// With the key, who captures a worker is whom he likes to be. That a worker owns it takes
	// disable_user_check, and was asked for.
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, errs.Wrap(err, errs.Internal, "key file %s", path)
	}
	if st.Gid == who.GID && st.Mode&0o040 != 0 {
		f.Close()
		return nil, errs.New(errs.Invalid, "key file %s: the group of %s, who serves, can read it", path, who.Name).
			WithHint("chmod 0600 %s", guard.Quote(path))
	}
	return f, nil
}

// openKeySet is a sealed copy of the key set of RS256 tokens; nil for no path.
func openKeySet(path string, who service) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	return sealedCopy(path, guard.Rule{What: "key set", Owners: who.mayOwnTokenKeys()})
}

// offerTokenKey has the keeper use f from now on; nil: it needs none. k.changing is held.
func (k *keyring) offerTokenKey(f *os.File, followed bool) error {
	if f == nil {
		return nil
	}
	if err := k.keeper.rouse(); err != nil {
		return err
	}
	number := k.next()
	err := k.keeper.offer(number, &ipc.TokenKeyFD{Number: number, Followed: followed}, f)
	if errs.KindOf(err) == errs.Invalid { // what is there may be needed elsewhere, and be named here by a slip
		return errs.New(errs.Invalid, "key file %s: %v", f.Name(), err).
			WithHint("(umask 077; head -c 32 /dev/urandom >%[1]s)  # then jwt_key=%[1]s", guard.Quote(f.Name()+".new"))
	}
	if err == nil {
		k.warnOpen(f.Name())
	}
	return err
}

// warnOpen says, once for each path, that a keeper keeps from nobody what workers can open themselves.
func (k *keyring) warnOpen(path string) {
	if k.who.root || k.saidOpen == path {
		return
	}
	k.saidOpen = path
	k.config.Log.Warn("whoever captures a worker can read the key of HS256 tokens by its path: without root workers run as who started the gateway",
		"file", path, "uid", k.who.UID, "hint", "start as root with -u; or name no jwt_key= that "+k.who.Name+" can read, and the daemons vouch")
}

// useTokenKey has f verify HS256 tokens in place of the key before it, whose verdicts workers
// forget. k.changing is held.
func (k *keyring) useTokenKey(f *os.File, followed bool) error {
	if f == nil {
		k.keeper.forget(k.https)
	} else if err := k.offerTokenKey(f, followed); err != nil {
		k.keeper.need(k.needsKeeper())
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keyRound++
	return nil
}

// useKeySet has workers verify RS256 tokens with f; nil: with none. k.changing is held.
func (k *keyring) useKeySet(f *os.File, followed bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set = keySet{number: k.set.number + 1, file: f, followed: followed}
	return nil
}

// keySet is what workers verify RS256 tokens with.
type keySet struct {
	number   uint32   // 0: there was none yet
	file     *os.File // nil: none
	followed bool     // a newer one would be noticed
}

// message says it to a worker.
func (s keySet) message() *ipc.JWKSFD { return &ipc.JWKSFD{Followed: s.followed} }

// content is one more descriptor of the file, or an empty one for none; nil when there never was one.
func (s keySet) content() (*os.File, error) {
	switch {
	case s.number == 0:
		return nil, nil
	case s.file == nil:
		return sealedCopy("", guard.Rule{What: "key set"})
	}
	return another(s.file)
}
