package keys

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// entry describes one key and its open files. If it has no files, there is no
// key.
type entry struct {
	setting      string     // the key's settings in the configuration; for files with token keys, their paths
	stamp        string     // stamp of the files at the configured paths, taken before they were opened
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

// source describes the files of one key, as configured.
type source struct {
	name    string // its name in the log
	setting string // see entry; "": no key is configured
	paths   []string
	openers []func(path string) (*os.File, error) // one for each file
	log     *slog.Logger

	// A file with token keys may be missing or unreadable. The other fields are
	// set only for such a file.
	optional bool
	needed   bool   // the gateway must not start without it
	option   string // its name in the configuration
}

func (o Options) tokenKey() source {
	return source{"key of HS256 tokens", strings.TrimSuffix(o.Tokens.Key+", "+o.Tokens.Signing, ", "), []string{o.Tokens.Key, o.Tokens.Signing}, []func(string) (*os.File, error){o.openTokenKey, o.openTokenKey}, o.Log, true, o.Tokens.Register != "", "jwt_key"}
}

func (o Options) keySet() source {
	return source{"key set of RS256 tokens", o.Tokens.JWKS, []string{o.Tokens.JWKS}, []func(string) (*os.File, error){o.openKeySet}, o.Log, true, false, "jwks"}
}

// pair returns the source of the private key, its certificates and the
// certificate authorities for clients.
func (o Options) pair() source {
	return source{name: "certificate", setting: fmt.Sprint(o.TLS), paths: []string{o.TLS.Key, o.TLS.Certificate, o.TLS.ClientCA},
		openers: []func(string) (*os.File, error){o.openPrivateKey, o.openCertificate, o.openAuthorities}, log: o.Log}
}

// open opens the files. If it returns an error, it also returns the files that
// it has opened. The parent has dropped its capabilities before the first call.
// So if the first call succeeds, the parent can open renewed files later, too.
func (t source) open() (files []*os.File, err error) {
	for i, open := range t.openers {
		f, err := open(t.paths[i])
		if errs.KindOf(err) == errs.NotFound && !t.optional {
			err = errs.New(errs.NotFound, "%v", err).WithHint("create it, or set another path in TLSParameters=: restd_cert_file, restd_cert_key_file, restd_ca_file")
		}
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// check returns an error if the file with token keys gives other users access
// that the rules forbid. A missing or unreadable file is not an error.
func (t source) check() error {
	if t.setting == "" {
		return nil
	}
	files, err := t.open()
	for _, f := range files {
		f.Close()
	}
	if isAbsent(err) {
		return nil
	}
	return err
}

// openEntry opens the files. The argument previous is the entry in use. If
// previous has the same settings and the files have not changed, openEntry
// reuses the open files of previous. If the files have changed and the new ones
// can't be used, openEntry also reuses the old ones, unless reject forbids that.
// If mustBeNew is true, it tries files again that it has rejected before.
//
// If the path of a file with token keys is new, a missing or unreadable file
// means that there is no key. Any other problem with such a file is an error,
// and so is the lack of a needed key at the start.
func (t source) openEntry(previous entry, mustBeNew bool) (e entry, err error) {
	e = entry{setting: t.setting, stamp: guard.Stamp(t.paths...)} // the stamp is taken first, so that the next check notices a change during the read
	isSame := previous.setting == t.setting
	switch {
	case t.setting == "":
		return e, nil
	case isSame && (previous.stamp == e.stamp && (previous.newest || !mustBeNew) || previous.refusedStamp == e.stamp):
		e.reuse(previous, previous.newest && previous.stamp == e.stamp)
		return e, nil
	}
	e.files, err = t.open()
	switch {
	case err == nil:
		e.newest = true
	case t.optional && isAbsent(err) && !(isSame && previous.files != nil):
		hint := errs.HintOf(err)
		if t.needed && previous.setting == "" {
			return e, errs.New(errs.Invalid, "gateway tokens can't be accepted, because the gateway can't read the key of the cluster: %v", err).
				WithHint("%s", cmp.Or(hint, "copy the key of the daemons there (KEYS.md); or remove SCHEDRESTD_TOKEN_REGISTER"))
		}
		if !isSame {
			t.log.Info("no "+t.name+"; the daemons verify such tokens", errs.LogAttrs(hint, "file", t.setting, "because", err)...)
		}
		e.unused, e.files, err = e.files, nil, nil
	default:
		err = t.reject(&e, previous, err, mustBeNew)
	}
	return e, err
}

// reject makes e use the files of the previous entry, because the new files
// can't be used. It logs the reason, err. If the settings have changed, or if
// there is no previous certificate or mustBeNew is true, reject returns err
// instead.
func (t source) reject(e *entry, previous entry, err error, mustBeNew bool) error {
	if previous.setting != t.setting || !t.optional && (previous.files == nil || mustBeNew) {
		return err
	}
	hint := errs.HintOf(err)
	if t.optional && errs.KindOf(err) == errs.NotFound && strings.Contains(err.Error(), t.paths[0]) {
		hint = "ls -l " + guard.Quote(t.paths[0]) + "  # put another file there with mv; or take " + t.option + "= out of the configuration, and reload"
	}
	t.log.Error("new "+t.name+" rejected; keeping the old one, if any", errs.LogAttrs(hint, "error", err)...)
	e.reuse(previous, false)
	return nil
}

// isAbsent reports whether err only means that the file is missing, or that
// this process may not read it.
func isAbsent(err error) bool {
	return slices.Contains([]errs.Kind{errs.NotFound, errs.Denied}, errs.KindOf(err))
}
