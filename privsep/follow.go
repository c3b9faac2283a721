package privsep

import (
	"log/slog"
	"os"
	"time"

	"schedrestd/errs"
	"schedrestd/guard"
)

// keyFile is a file with a key of tokens. What stands in its place later is used from then on.
// That it is not there, or can't be read, is as good as having none. All but begin is called
// while the keyring's changing is held.
type keyFile struct {
	what   string                                // for the log
	used   string                                // … and what becomes of it
	option string                                // names it in the configuration
	open   func(path string) (*os.File, error)   // nil for no path
	unlock func(path string) string              // the command that lets this process read one that it can't; "": it is not meant to
	use    func(f *os.File, followed bool) error // has f, or none, used in place of the one before
	log    *slog.Logger
	still  time.Duration // one that was written later than that before a look may be half of what it will be

	path     string
	seen     string   // its stamp when it was last tried
	file     *os.File // in use; nil: none
	followed bool     // … and nothing newer is in its place, which can't be used
}

// isAbsent tells whether err says no more than that there is nothing for this process.
func isAbsent(err error) bool {
	kind := errs.KindOf(err)
	return err != nil && (kind == errs.NotFound || kind == errs.Denied)
}

// begin judges path, with all the rights that the start has: what lies open is refused, though it may be what can't be
// read later. Nothing is used yet.
func (f *keyFile) begin(path string) error {
	f.path = path
	return judged(f.open(path))
}

// settle opens the file, the capabilities dropped. One that can't be opened now is not used, though it could have been
// opened before: a newer one could not be either, and what the old one signed would be genuine here for good.
func (f *keyFile) settle() error {
	f.seen = guard.Stamp(f.path) // before it is opened: what changes meanwhile is seen next time
	file, err := f.open(f.path)
	if isAbsent(err) {
		f.sayAbsent(f.path, err)
		return nil
	}
	f.file, f.followed = file, file != nil
	return err
}

// look uses the file when it is another one than that which was tried last, and whole: any half of a key is a key.
func (f *keyFile) look() {
	if seen := guard.Stamp(f.path); seen != f.seen && guard.Rests(f.path, f.still) {
		f.tryNew(seen)
	}
}

// lookNow is look on a signal: whoever gives it has written what he wanted to.
func (f *keyFile) lookNow() {
	if seen := guard.Stamp(f.path); seen != f.seen {
		f.tryNew(seen)
	}
}

// tryNew uses the file, whose stamp is seen. One that can't be used is complained of once. It leaves the one
// before in use, which then may not be the newest any more.
func (f *keyFile) tryNew(seen string) {
	f.seen = seen
	err := f.try(f.path)
	if err == nil {
		f.sayUsed()
		return
	}
	if f.file == nil && isAbsent(err) {
		return // as before
	}
	if errs.KindOf(err) == errs.Unavailable { // there is no keeper to give it to: the next look tries again
		f.seen = ""
	}
	hint := errs.HintOf(err)
	switch errs.KindOf(err) {
	case errs.NotFound:
		hint = "ls -l " + guard.Quote(f.path) + "  # put another one there, by mv; or take " + f.option + "= out of the configuration, and reload"
	case errs.Denied:
		hint = f.unlock(f.path)
	}
	f.log.Error("the new "+f.what+" is not used; the one before it, if any, stays", about(hint, "error", err)...)
	f.distrust()
}

// distrust has what is in use say nothing of signatures that don't match.
func (f *keyFile) distrust() {
	if f.file == nil || !f.followed {
		return
	}
	f.followed = false
	f.again()
}

// again says once more what is in use, to who was told of something else.
func (f *keyFile) again() {
	if f.file == nil {
		return
	}
	if err := f.use(f.file, f.followed); err != nil { // it was written over, and who has it has its bytes still
		f.log.Debug("the "+f.what+" of before can't be given again", "error", err)
	}
}

// successor is a file that is to take the place of the one in use: open, and not used yet.
type successor struct {
	path   string
	seen   string   // its stamp before it was opened
	file   *os.File // nil: none
	absent error    // why there is none
}

// prepare opens path, on a signal. One that is there and must not be used is refused.
func (f *keyFile) prepare(path string) (s successor, err error) {
	s.path = path
	if path == f.path {
		return s, nil // take looks at it
	}
	s.seen = guard.Stamp(path)
	if s.file, err = f.open(path); isAbsent(err) {
		s.absent = err
		return s, nil
	}
	return s, err
}

// take uses s. When it can't be used nothing has changed, and s is closed.
func (f *keyFile) take(s successor) error {
	if s.path == f.path {
		f.lookNow()
		return nil
	}
	if err := f.replace(s.file); err != nil {
		s.close()
		f.again()
		return err
	}
	f.path, f.seen = s.path, s.seen
	switch {
	case s.absent != nil:
		f.sayAbsent(s.path, s.absent)
	case s.path != "":
		f.sayUsed()
	}
	return nil
}

func (s successor) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// try opens and uses path.
func (f *keyFile) try(path string) error {
	file, err := f.open(path)
	if err != nil {
		return err
	}
	if err := f.replace(file); err != nil {
		file.Close()
		return err
	}
	return nil
}

// replace uses file in place of the one before.
func (f *keyFile) replace(file *os.File) error {
	if err := f.use(file, file != nil); err != nil {
		return err
	}
	if f.file != nil && f.file != file {
		f.file.Close()
	}
	f.file, f.followed = file, file != nil
	return nil
}

func (f *keyFile) close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}

func (f *keyFile) sayUsed() { f.log.Info("the "+f.what+" is "+f.used, "file", f.path) }

func (f *keyFile) sayAbsent(path string, err error) {
	hint := ""
	if errs.KindOf(err) == errs.Denied {
		hint = f.unlock(path)
	}
	f.log.Info("there is no "+f.what+" for this gateway: such tokens are vouched for by the daemons", about(hint, "file", path, "because", err)...)
}

// about is what a line of the log says besides, with the hint if there is one.
func about(hint string, args ...any) []any {
	if hint != "" {
		args = append(args, "hint", hint)
	}
	return args
}
