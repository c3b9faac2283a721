package keys

import (
	"log/slog"
	"os"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// entry describes one key and its open files. If it has no files, there is no
// key.
type entry struct {
	path         string     // path in the configuration
	stamp        string     // stamp of the files at the entry's paths, taken before they were opened
	files        []*os.File // entries of several generations may share them
	unused       []*os.File // files that were opened and are no longer used; Close closes them
	refusedStamp string     // stamp of a newer file that workers can't use
	newest       bool       // the paths still lead to these files; if not, tokens may be signed with a newer key
}

// reuse makes e use the files of an earlier entry. If newest is true, the paths
// of e still lead to those files.
func (e *entry) reuse(previous entry, newest bool) {
	e.unused = append(e.unused, e.files...)
	e.files, e.newest = previous.files, newest && previous.files != nil
}

// tokenFile describes a file with token keys, as configured.
type tokenFile struct {
	name          string // its name in the log
	option        string // its name in the configuration
	path          string // "": there is no such file
	open          func() (*os.File, error)
	unlockCommand func(path string) string // returns a command that lets the parent read the file, or "" if the parent should not read it
	log           *slog.Logger
}

func (o Options) tokenKey() tokenFile {
	return tokenFile{"key of HS256 tokens", "jwt_key", o.Tokens.Key, o.openTokenKey, o.unlockTokenKeyCommand, o.Log}
}

func (o Options) keySet() tokenFile {
	return tokenFile{"key set of RS256 tokens", "jwks", o.Tokens.JWKS, o.openKeySet, unlockPublicCommand, o.Log}
}

// check returns an error if the file gives other users access that the rules
// forbid. A missing or unreadable file is not an error.
func (t tokenFile) check() error {
	if t.path == "" {
		return nil
	}
	f, err := t.open()
	if err == nil {
		f.Close()
	}
	if isAbsent(err) {
		return nil
	}
	return err
}

// openEntry opens the file. The argument previous is the entry in use. If
// previous has the same path and the file has not changed, openEntry reuses the
// open file of previous. If the file has changed and the new one can't be used,
// openEntry also reuses the old one.
//
// If the path is new, a missing or unreadable file means that there is no key.
// Any other problem with such a file is an error.
func (t tokenFile) openEntry(previous entry) (e entry, err error) {
	e = entry{path: t.path, stamp: guard.Stamp(t.path)}
	samePath := previous.path == t.path
	switch {
	case t.path == "":
		return e, nil
	case samePath && (previous.stamp == e.stamp || previous.refusedStamp == e.stamp):
		e.reuse(previous, previous.newest && previous.stamp == e.stamp)
		return e, nil
	}
	f, err := t.open()
	switch {
	case err == nil:
		e.files, e.newest = []*os.File{f}, true
	case samePath && previous.files == nil && isAbsent(err): // still no key
	case samePath:
		t.fallBack(&e, previous, err)
	case isAbsent(err):
		hint := ""
		if errs.KindOf(err) == errs.Denied {
			hint = t.unlockCommand(t.path)
		}
		t.log.Info("no "+t.name+"; the daemons verify such tokens", errs.LogAttrs(hint, "file", t.path, "because", err)...)
	default:
		return e, err
	}
	return e, nil
}

// fallBack makes e use the file of the previous entry, because the new file
// can't be used. It logs the reason, err.
func (t tokenFile) fallBack(e *entry, previous entry, err error) {
	hint := errs.HintOf(err)
	switch errs.KindOf(err) {
	case errs.NotFound:
		hint = "ls -l " + guard.Quote(t.path) + "  # put another file there with mv; or take " + t.option + "= out of the configuration, and reload"
	case errs.Denied:
		hint = t.unlockCommand(t.path)
	}
	t.log.Error("new "+t.name+" rejected; keeping the old one, if any", errs.LogAttrs(hint, "error", err)...)
	e.reuse(previous, false)
}

// isAbsent reports whether err only means that the file is missing, or that
// this process may not read it.
func isAbsent(err error) bool {
	kind := errs.KindOf(err)
	return err != nil && (kind == errs.NotFound || kind == errs.Denied)
}
