package privsep

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
)

// keys holds the keys of one generation as open files. They never change: a file that was changed is
// of the next generation. What is secret goes to the keeper, and what is public to
// the workers.
type keys struct {
	https   bool
	pair    *pair // nil without https
	token   keyFile
	set     keyFile
	tickets [][32]byte // keys of TLS session tickets, the newest first
	empty   *os.File   // stands for a file that there is not
	stamp   string     // of all files, before the first was opened
}

// keyFile is a file with a key of tokens, or none.
type keyFile struct {
	keyKind
	path     string
	stamp    string
	file     *os.File // nil: none
	followed bool     // the newest file at the path is in use; else a signature that it does not verify may be the newer one's
}

// keyKind describes the files with one kind of token key.
type keyKind struct {
	what   string                              // for the log
	used   string                              // … and what becomes of it
	option string                              // its name in the configuration
	open   func(path string) (*os.File, error) // nil for no path
	unlock func(path string) string            // the command that lets this process read one that it can't; "": it is not meant to
}

func tokenKeyKind(who service) keyKind {
	return keyKind{what: "key of HS256 tokens", used: "in use", option: "jwt_key", unlock: who.unlockTokenKey,
		open: func(path string) (*os.File, error) { return openTokenKey(path, who) }}
}

func keySetKind(who service) keyKind {
	return keyKind{what: "key set of RS256 tokens", used: "handed to the workers", option: "jwks", unlock: unlockPublic,
		open: func(path string) (*os.File, error) { return openKeySet(path, who) }}
}

// judgeKeys refuses files that are not protected, while the start has all its rights: it may not be able
// to look at them later.
func judgeKeys(c Config, who service, https bool) error {
	if https {
		if err := c.TLS.check(); err != nil {
			return err
		}
	}
	tokens, err := c.tokens(who)
	if err == nil {
		err = judged(openTokenKey(tokens.Key, who))
	}
	if err == nil {
		err = judged(openKeySet(tokens.JWKS, who))
	}
	return err
}

// openKeys opens the keys that c names. It is called when the capabilities are dropped, at the start as
// well: what can be opened now can be opened again when it was renewed. before is
// the keys in use, or nil. A file that has replaced one of them and can't be used
// leaves that in use, unless strict is set: then certificates must be usable.
func openKeys(c Config, who service, https bool, before *keys, strict bool) (k *keys, err error) {
	k = &keys{https: https, stamp: stampOf(c)}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if k.empty, err = sealedCopy("", guard.Rule{What: "empty file"}); err != nil {
		return k, err
	}
	tokens, err := c.tokens(who)
	if err != nil {
		return k, err
	}
	if before == nil {
		before = new(keys)
	}
	if k.token, err = tokenKeyKind(who).openFile(tokens.Key, before.token, c.Log); err != nil {
		return k, err
	}
	if k.set, err = keySetKind(who).openFile(tokens.JWKS, before.set, c.Log); err != nil || !https {
		return k, err
	}
	if k.pair, err = openOrKeep(c, who, before.pair, strict); err != nil {
		return k, err
	}
	k.tickets, err = nextTickets(before.tickets)
	return k, err
}

// stampOf tells one state of the files that c names from another.
func stampOf(c Config) string {
	return guard.Stamp(c.TLS.Key, c.TLS.Certificate, c.TLS.ClientCA, c.Tokens.Key, c.Tokens.JWKS)
}

// isAtRest reports whether no key of tokens that has changed was written a moment ago: half of one is a key. Half of a
// certificate is none, and the keeper refuses it.
func (k *keys) isAtRest(still time.Duration) bool {
	for _, f := range []*keyFile{&k.token, &k.set} {
		if f.path != "" && guard.Stamp(f.path) != f.stamp && !guard.Rests(f.path, still) {
			return false
		}
	}
	return true
}

// openFile opens path. That it is not there, or can't be read, is as good as having none.
func (kind keyKind) openFile(path string, before keyFile, log *slog.Logger) (f keyFile, err error) {
	f = keyFile{keyKind: kind, path: path, stamp: guard.Stamp(path)}
	if path == "" {
		return f, nil
	}
	same := before.path == path
	if same && before.stamp == f.stamp {
		return f, f.keep(before, before.followed)
	}
	f.file, err = kind.open(path)
	switch {
	case err == nil:
		f.followed = true
		return f, nil
	case same && before.file == nil && isAbsent(err): // as before
		return f, nil
	case same:
		return f, f.fallBack(before, err, log)
	case isAbsent(err):
		hint := ""
		if errs.KindOf(err) == errs.Denied {
			hint = kind.unlock(path)
		}
		log.Info("there is no "+kind.what+" for this gateway: such tokens are vouched for by the daemons", about(hint, "file", path, "because", err)...)
		return f, nil
	}
	return f, err
}

// keep has f use the file of before.
func (f *keyFile) keep(before keyFile, followed bool) (err error) {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	if before.file != nil {
		f.file, err = another(before.file)
	}
	f.followed = followed && f.file != nil
	return err
}

// fallBack has f use the file of before, since what is at its path now can't be used for that reason.
func (f *keyFile) fallBack(before keyFile, why error, log *slog.Logger) error {
	hint := errs.HintOf(why)
	switch errs.KindOf(why) {
	case errs.NotFound:
		hint = "ls -l " + guard.Quote(f.path) + "  # put another one there, by mv; or take " + f.option + "= out of the configuration, and reload"
	case errs.Denied:
		hint = f.unlock(f.path)
	}
	log.Error("the new "+f.what+" is not used; the one before it, if any, stays", about(hint, "error", why)...)
	return f.keep(before, false)
}

// sayUsed logs that another file is in use.
func (f *keyFile) sayUsed(before keyFile, log *slog.Logger) {
	if f.file != nil && f.followed && (f.path != before.path || f.stamp != before.stamp) {
		log.Info("the "+f.what+" is "+f.used, "file", f.path)
	}
}

// isAbsent reports whether err means no more than that there is nothing for this process.
func isAbsent(err error) bool {
	kind := errs.KindOf(err)
	return err != nil && (kind == errs.NotFound || kind == errs.Denied)
}

// needKeeper reports whether one of k is secret.
func (k *keys) needKeeper() bool { return k.https || k.token.file != nil }

// orEmpty returns f, or the empty file when there is none.
func (k *keys) orEmpty(f *os.File) int {
	if f == nil {
		f = k.empty
	}
	return int(f.Fd())
}

// forWorker returns what a worker gets of k, with its files.
func (k *keys) forWorker() (*ipc.Keys, []int) {
	m, p := &ipc.Keys{Followed: k.set.followed, Tickets: k.tickets}, new(pair)
	if k.pair != nil {
		p, m.TLS, m.TLS12, m.Authorities = k.pair, true, k.pair.tls.TLS12, k.pair.tls.ClientCA != ""
	}
	return m, []int{k.orEmpty(p.certificates), k.orEmpty(p.authorities), k.orEmpty(k.set.file)}
}

// forKeeper returns what the keeper gets of k, with its files.
func (k *keys) forKeeper() (*ipc.SecretKeys, []int) {
	m, p := &ipc.SecretKeys{Token: k.token.file != nil, Followed: k.token.followed}, new(pair)
	if k.pair != nil {
		p, m.TLS, m.TLS12 = k.pair, true, k.pair.tls.TLS12
	}
	return m, []int{k.orEmpty(p.key), k.orEmpty(p.certificates), k.orEmpty(p.authorities), k.orEmpty(k.token.file)}
}

func (k *keys) close() {
	if k.pair != nil {
		k.pair.close()
	}
	for _, f := range []*os.File{k.token.file, k.set.file, k.empty} {
		if f != nil {
			f.Close()
		}
	}
}

// nextTickets makes a new key for session tickets; tickets of the two before it are still read.
func nextTickets(before [][32]byte) ([][32]byte, error) {
	var key [32]byte
	if n, err := unix.Getrandom(key[:], 0); n != len(key) {
		return nil, errs.Wrap(errors.Join(err, io.ErrUnexpectedEOF), errs.Internal, "make a key for session tickets")
	}
	return append([][32]byte{key}, before[:min(2, len(before))]...), nil
}

// about adds the hint, if there is one, to what a line of the log says.
func about(hint string, args ...any) []any {
	if hint != "" {
		args = append(args, "hint", hint)
	}
	return args
}
