// Package keys opens the keys of one generation of workers and services, and
// checks which users can read and write the key files. The parent parses none
// of these files. The keeper gets each secret key as an open file. Public files
// are copied to memory files that no process can change, so that every worker
// uses exactly the certificates that the keeper has accepted.
//
// The file keys.go handles all keys of a generation, entry.go handles one key,
// files.go opens files, and rules.go defines which files may be used.
package keys

import (
	"cmp"
	"os"
	"slices"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/ipc"
)

// Keys holds the keys of one generation of workers and services, as open files.
// If a file is replaced later, the next generation gets the new file.
type Keys struct {
	Stamp    string // stamp of all files, taken before the first was opened
	options  Options
	pair     entry // the private key, its certificates and the certificate authorities for clients; empty without https://
	tokenKey entry // the key of HS256 tokens, and that of credentials
	keySet   entry // the key set of RS256 tokens
	register entry // the register of gateway tokens, for the keeper, which appends to it
	empty    entry // stands for a file that does not exist
}

// CheckFiles returns an error if a key file is not protected against other
// users. Call it before privileges are dropped, because the parent may be
// unable to examine the files later.
func CheckFiles(o Options) error {
	var err error
	if o.HTTPS {
		err = checkTLS(o.TLS)
	}
	return cmp.Or(err, o.tokenKey().check(), o.keySet().check())
}

// Open opens the keys that o names. The argument previous contains the keys in
// use, if any. If a file has changed and the new one can't be used, Open uses
// the key from previous in its place. There are two exceptions. If o names
// another file than before, Open does not use the old key. If requireNewCerts
// is true and new certificates can't be used, Open returns an error. The caller
// must close k even if there is an error.
//
// The parent has dropped its capabilities before the first call. So if the
// first call succeeds, the parent can also open renewed files later.
func Open(o Options, previous *Keys, requireNewCerts bool) (k *Keys, err error) {
	k = &Keys{options: o, Stamp: Stamp(o.Secrets)}
	emptyFile, err := sealedCopy("", guard.Rule{Label: "empty file"})
	if err != nil {
		return k, err
	}
	k.empty.files = []*os.File{emptyFile}
	if !o.JWT { // without JWT no token key is used, but an unprotected one is still refused
		if err = CheckFiles(o); err != nil {
			return k, err
		}
		k.options.Tokens = ipc.Tokens{}
	}
	k.register.files = k.options.openRegister()
	if k.tokenKey, err = k.options.tokenKey().openEntry(previous.tokenKey, false); err != nil {
		return k, err
	}
	if k.keySet, err = k.options.keySet().openEntry(previous.keySet, false); err != nil || !o.HTTPS {
		return k, err
	}
	k.pair, err = o.pair().openEntry(previous.pair, requireNewCerts)
	return k, err
}

// Stamp returns a string that changes when any of the files in s changes.
func Stamp(s ipc.Secrets) string {
	return guard.Stamp(s.TLS.Key, s.TLS.Certificate, s.TLS.ClientCA, s.Tokens.Key, s.Tokens.Signing, s.Tokens.JWKS)
}

// HandleRefusal handles the keeper's refusal of a key. The err argument is the
// keeper's reason. If isTokenKey is true, the keeper has refused the token key.
// Otherwise it has refused the private key or its certificates.
//
// HandleRefusal makes k use the previous key instead, with the same exceptions
// as Open. If the keeper has also refused the previous token key, k continues
// without a token key. If HandleRefusal returns an error, k can't be used.
// Otherwise the caller sends k to the keeper again.
func (k *Keys) HandleRefusal(isTokenKey bool, err error, previous *Keys, requireNewCerts bool) error {
	o := k.options
	switch {
	case isTokenKey && k.tokenKey.newest:
		err = errs.New(errs.Invalid, "key file %s: %v", k.tokenKey.setting, err).WithHint("%s", tokenKeyHint(k.tokenKey.files[0], err))
		return o.tokenKey().reject(&k.tokenKey, previous.tokenKey, err, false)
	case isTokenKey && k.tokenKey.files != nil: // the file was overwritten
		o.Log.Error("keeper has no key of HS256 tokens; the daemons verify them", errs.LogAttrs(tokenKeyHint(k.tokenKey.files[0], err), "error", err)...)
		k.tokenKey.reuse(entry{}, false)
		return nil
	case isTokenKey || k.pair.files == nil:
		return err
	}
	return o.pair().reject(&k.pair, previous.pair, o.explainPairRefusal(err), requireNewCerts || !k.pair.newest)
}

// RefuseKeySet records that workers can't use the key set in next. It records
// this in k, which must be the keys in use. Later generations use the key set
// of k until the file changes again. If the key set in next is not a newer
// version of the file, RefuseKeySet records nothing and returns false. While
// RefuseKeySet runs, no other goroutine may pass k to Open.
func (k *Keys) RefuseKeySet(next *Keys) bool {
	if k.keySet.setting != next.keySet.setting || k.keySet.stamp == next.keySet.stamp || !next.keySet.newest {
		return false
	}
	k.keySet.refusedStamp = next.keySet.stamp
	return true
}

// LogChanges logs which files are used for the first time. It warns if workers
// can read the key of HS256 tokens.
func (k *Keys) LogChanges(previous *Keys) {
	log := k.options.Log
	logNew := func(name string, cur, old entry, attrs ...any) {
		if cur.newest && (cur.setting != old.setting || cur.stamp != old.stamp) {
			log.Info(name+" in use", attrs...)
		}
	}
	logNew("key of HS256 tokens", k.tokenKey, previous.tokenKey, "file", k.tokenKey.setting)
	if !k.options.Root && k.tokenKey.files != nil && previous.tokenKey.setting != k.tokenKey.setting {
		log.Warn("a compromised worker can read the key of HS256 tokens: without root, workers run as the user who started the gateway",
			"file", k.tokenKey.setting, "uid", k.options.Worker.UID, "hint", "start as root with -u; or remove any jwt_key= that "+k.options.Worker.Name+" can read, and the daemons verify tokens")
	}
	logNew("key set of RS256 tokens", k.keySet, previous.keySet, "file", k.keySet.setting)
	logNew("certificate", k.pair, previous.pair, "file", k.options.TLS.Certificate, "client_certificates", k.options.TLS.ClientCA != "")
}

// IsSettled reports whether the files with token keys are complete. It assumes
// that a file is complete if it has not changed since Open, or if its last
// write was at least settleTime ago. An incomplete file must not be used,
// because half a token key is also a valid key. Half a certificate is invalid,
// and the keeper rejects it.
func (k *Keys) IsSettled(settleTime time.Duration) bool {
	changing := func(path string) bool { return !guard.IsSettled(path, settleTime) }
	settled := func(t source, e entry) bool {
		return guard.Stamp(t.paths...) == e.stamp || !slices.ContainsFunc(t.paths, changing)
	}
	return settled(k.options.tokenKey(), k.tokenKey) && settled(k.options.keySet(), k.keySet)
}

// NeedsKeeper reports whether k has a key for the keeper.
func (k *Keys) NeedsKeeper() bool {
	return k.options.HTTPS || k.tokenKey.files != nil || k.options.Tokens.Provider != "" && k.keySet.files != nil
}

// fd returns the descriptor of the file e.files[i]. If e has no files, it
// returns the descriptor of an empty file.
func (k *Keys) fd(e entry, i int) int {
	if e.files == nil {
		e, i = k.empty, 0
	}
	return int(e.files[i].Fd())
}

// WorkerMessage returns the message that tells a worker about k, and the files
// to send with it.
func (k *Keys) WorkerMessage() (*ipc.PublicKeys, []int) {
	tls := k.pair.files != nil
	return &ipc.PublicKeys{Current: k.keySet.newest, TLS: tls, TLS12: tls && k.options.TLS.TLS12, Authorities: tls && k.options.TLS.ClientCA != ""},
		[]int{k.fd(k.pair, 1), k.fd(k.pair, 2), k.fd(k.keySet, 0)}
}

// KeeperMessage returns the message that tells the keeper about k, and the
// files to send with it.
func (k *Keys) KeeperMessage() (*ipc.SecretKeys, []int) {
	tls := k.pair.files != nil
	return &ipc.SecretKeys{Token: k.tokenKey.files != nil, Stamps: k.options.Tokens.Signing != "", Append: k.register.files != nil, Current: k.tokenKey.newest, TLS: tls, TLS12: tls && k.options.TLS.TLS12, Provider: k.options.Tokens.Provider},
		[]int{k.fd(k.pair, 0), k.fd(k.pair, 1), k.fd(k.pair, 2), k.fd(k.tokenKey, 0), k.fd(k.keySet, 0), k.fd(k.register, 0), k.fd(k.tokenKey, 1)}
}

func (k *Keys) entries() []entry { return []entry{k.pair, k.tokenKey, k.keySet, k.register, k.empty} }

// Close closes the files of k, except those that inUse also contains.
func (k *Keys) Close(inUse *Keys) {
	for i, e := range k.entries() {
		for _, f := range slices.Concat(e.unused, e.files) {
			if !slices.Contains(inUse.entries()[i].files, f) {
				f.Close()
			}
		}
	}
}
