// Package keys opens the keys of one generation, and checks which users can
// read and write their files. The parent does not parse any of them. A secret
// key goes to the keeper as an open file. Public files are copied unchanged to
// memory files that no process can change. So every worker uses exactly the
// certificates that the keeper has accepted, even if the original files change
// meanwhile.
//
// The files from the top: keys.go has all keys of a generation; entry.go has
// one key; files.go opens files; rules.go says which files may be used.
package keys

import (
	"cmp"
	"os"
	"slices"
	"time"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
)

// Keys holds the keys of one generation as open files. If a file is replaced
// later, the new file belongs to the next generation.
type Keys struct {
	Stamp   string // stamp of all files, before the first was opened
	options Options
	pair    entry // a private key, its certificates and the clients' authorities; none without https://
	token   entry // the key of HS256 tokens
	set     entry // the key set of RS256 tokens
	empty   entry // stands for a file that does not exist
}

// Judge rejects unprotected files. It is called before privileges are dropped,
// because the parent may not be able to examine them later.
func Judge(o Options) error {
	if o.HTTPS {
		if err := checkTLS(o.TLS); err != nil {
			return err
		}
	}
	return cmp.Or(o.tokenKey().judge(), o.keySet().judge())
}

// Open opens the keys that o names. The parent has dropped its capabilities
// before the first call. So it can open renewed files later with the same
// privileges as the first ones. The argument before has the keys in use, or
// none. If a new file can't be used, the key that it replaces stays in use.
// With strict, an error about certificates is returned instead. The caller
// closes the keys even if there is an error.
func Open(o Options, before *Keys, strict bool) (k *Keys, err error) {
	k = &Keys{options: o, Stamp: Stamp(o.Secrets)}
	none, err := sealedCopy("", guard.Rule{What: "empty file"})
	if err != nil {
		return k, err
	}
	k.empty.files = []*os.File{none}
	if !o.JWT { // no key is used then, but an unprotected one is refused all the same
		if err = Judge(o); err != nil {
			return k, err
		}
		k.options.Tokens = ipc.Tokens{}
	}
	if k.token, err = k.options.tokenKey().entry(before.token); err != nil {
		return k, err
	}
	if k.set, err = k.options.keySet().entry(before.set); err != nil || !o.HTTPS {
		return k, err
	}
	return k, k.openPair(before, strict)
}

// Stamp returns a text that changes when one of the files that s names changes.
func Stamp(s ipc.Secrets) string {
	return guard.Stamp(s.TLS.Key, s.TLS.Certificate, s.TLS.ClientCA, s.Tokens.Key, s.Tokens.JWKS)
}

// openPair opens the private key with its certificates. If nothing has changed,
// the files that were open before stay in use. They also stay in use if the new
// files can't be used, unless strict is set.
func (k *Keys) openPair(before *Keys, strict bool) (err error) {
	o := k.options
	if err := checkTLS(o.TLS); err != nil {
		return err
	}
	k.pair.stamp = guard.Stamp(o.TLS.Key, o.TLS.Certificate, o.TLS.ClientCA) // a change during the read is noticed next time
	same := before.options.TLS == o.TLS && before.pair.files != nil
	if same && before.pair.stamp == k.pair.stamp {
		k.pair.keep(before.pair, before.pair.newest)
		return nil
	}
	k.pair.files, err = o.openPair()
	switch {
	case err == nil:
		k.pair.newest = true
	case !same || strict:
		return err
	default:
		k.keepPair(before, err)
	}
	return nil
}

// keepPair makes k use the private key and the certificates that were in use
// before, and logs the reason.
func (k *Keys) keepPair(before *Keys, why error) {
	k.options.Log.Error("new certificates rejected; keeping the old ones", errs.LogAttrs(errs.HintOf(why), "error", why)...)
	k.pair.keep(before.pair, false)
}

// Refused handles a key that the keeper has rejected: the token key if token is
// set, otherwise the private key of the certificates. It replaces the key by
// the one used before, as Open does for a file that can't be opened. If the
// keeper rejects that token key too, k continues without a token key. An error
// means that k can't be used. Without an error, the caller sends k to the
// keeper again.
func (k *Keys) Refused(token bool, why error, before *Keys, strict bool) error {
	o := k.options
	switch {
	case token && k.token.newest:
		why = errs.New(errs.Invalid, "key file %s: %v", k.token.path, why).WithHint("%s", newTokenKey(k.token.files[0]))
		if before.token.path != k.token.path {
			return why
		}
		o.tokenKey().fallBack(&k.token, before.token, why)
	case token && k.token.files != nil: // the file was overwritten
		o.Log.Error("keeper has no key of HS256 tokens; the daemons verify them", errs.LogAttrs(newTokenKey(k.token.files[0]), "error", why)...)
		k.token.keep(entry{}, false)
	case token || k.pair.files == nil:
		return why
	default:
		why = o.refusedPair(why)
		if before.pair.files == nil || strict || before.options.TLS != o.TLS || !k.pair.newest {
			return why
		}
		k.keepPair(before, why)
	}
	return nil
}

// RefuseSet records in k that workers can't use the key set of next. k holds
// the keys in force. Later generations then use the key set of k, until the
// file changes again. If the key set of next is not newer than that of k,
// RefuseSet records nothing and returns false. The caller makes sure that no
// Open uses k at the same time.
func (k *Keys) RefuseSet(next *Keys) bool {
	if k.set.path != next.set.path || k.set.stamp == next.set.stamp || !next.set.newest {
		return false
	}
	k.set.refused = next.set.stamp
	return true
}

// Announce logs which files are newly in use, and warns if workers can read the
// key of HS256 tokens.
func (k *Keys) Announce(before *Keys) {
	log := k.options.Log
	isNew := func(now, then entry) bool { return now.newest && (now.path != then.path || now.stamp != then.stamp) }
	if isNew(k.token, before.token) {
		log.Info("key of HS256 tokens in use", "file", k.token.path)
	}
	if !k.options.Root && k.token.files != nil && before.token.path != k.token.path {
		log.Warn("a compromised worker can read the key of HS256 tokens: without root, workers run as the user who started the gateway",
			"file", k.token.path, "uid", k.options.Worker.UID, "hint", "start as root with -u; or name no jwt_key= that "+k.options.Worker.Name+" can read, and the daemons verify tokens")
	}
	if isNew(k.set, before.set) {
		log.Info("key set of RS256 tokens in use", "file", k.set.path)
	}
	if k.pair.newest && (k.pair.stamp != before.pair.stamp || before.options.TLS != k.options.TLS) {
		log.Info("certificate in use", "file", k.options.TLS.Certificate, "client_certificates", k.options.TLS.ClientCA != "")
	}
}

// IsAtRest reports whether every file with token keys is at rest: if it has
// changed since Open, its last write was at least the given time ago. Half a
// token key is a valid key, so a file must not be used while it is being
// written. Half a certificate is invalid, and the keeper rejects it.
func (k *Keys) IsAtRest(still time.Duration) bool {
	for _, e := range []entry{k.token, k.set} {
		if e.path != "" && guard.Stamp(e.path) != e.stamp && !guard.Rests(e.path, still) {
			return false
		}
	}
	return true
}

// NeedKeeper reports whether k has a secret key.
func (k *Keys) NeedKeeper() bool { return k.options.HTTPS || k.token.files != nil }

// file returns the descriptor of the i-th file of e, or of the empty file if e
// has none.
func (k *Keys) file(e entry, i int) int {
	if e.files == nil {
		e, i = k.empty, 0
	}
	return int(e.files[i].Fd())
}

// ForWorker returns the message that tells a worker about k, and the files to
// send with it.
func (k *Keys) ForWorker() (*ipc.PublicKeys, []int) {
	tls := k.pair.files != nil
	return &ipc.PublicKeys{Followed: k.set.newest, TLS: tls, TLS12: tls && k.options.TLS.TLS12, Authorities: tls && k.options.TLS.ClientCA != ""},
		[]int{k.file(k.pair, 1), k.file(k.pair, 2), k.file(k.set, 0)}
}

// ForKeeper returns the message that tells the keeper about k, and the files to
// send with it.
func (k *Keys) ForKeeper() (*ipc.SecretKeys, []int) {
	tls := k.pair.files != nil
	return &ipc.SecretKeys{Token: k.token.files != nil, Followed: k.token.newest, TLS: tls, TLS12: tls && k.options.TLS.TLS12},
		[]int{k.file(k.pair, 0), k.file(k.pair, 1), k.file(k.pair, 2), k.file(k.token, 0)}
}

func (k *Keys) entries() []entry { return []entry{k.pair, k.token, k.set, k.empty} }

// Close closes the files of k, except those that are also in the keys inUse.
func (k *Keys) Close(inUse *Keys) {
	for i, e := range k.entries() {
		for _, f := range slices.Concat(e.unused, e.files) {
			if !slices.Contains(inUse.entries()[i].files, f) {
				f.Close()
			}
		}
	}
}
