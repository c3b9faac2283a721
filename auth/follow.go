package auth

import (
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// checkInterval is the minimum time between two checks for a change to the file
// of a Followed.
const checkInterval = time.Second

// A Followed holds a key set from a file, and reads the file again when it
// changes. A Followed is safe for concurrent use.
type Followed struct {
	path     string
	trust    guard.Trust
	onReload func(error)
	set      atomic.Pointer[KeySet]

	checking  sync.Mutex // held by the goroutine that checks the file; other goroutines use the current set meanwhile
	stamp     string     // stamp of the file when it was last read
	lastCheck time.Time
}

// FollowKeySet reads a key set in the same way as LoadKeySet. Later calls to
// the method KeySet read the file again if it has changed. If the new set can't
// be used, or the file is gone, the current set stays in use. KeySet calls
// onReload after each change that it notices. It passes nil if the new set is
// in use, and otherwise the error. onReload may call KeySet.
func FollowKeySet(path string, onReload func(error), trust guard.Trust) (*Followed, error) {
	f := &Followed{path: path, trust: trust, onReload: onReload}
	f.stamp, f.lastCheck = guard.Stamp(path), time.Now()
	set, err := LoadKeySet(path, f.trust)
	if err != nil {
		return nil, err
	}
	f.set.Store(set)
	return f, nil
}

// KeySet returns the latest usable set. It checks the file at most once per
// second.
func (f *Followed) KeySet() *KeySet {
	if f.checking.TryLock() {
		defer f.checking.Unlock()
		if time.Since(f.lastCheck) >= checkInterval {
			f.reload()
		}
	}
	return f.set.Load()
}

// reload reads the file if it has changed.
func (f *Followed) reload() {
	f.lastCheck = time.Now()
	stamp := guard.Stamp(f.path) // taken before the file is opened, so that the next check notices a change made during the read
	if stamp == f.stamp {
		return
	}
	f.stamp = stamp
	set, err := LoadKeySet(f.path, f.trust)
	if err != nil {
		f.onReload(errs.Wrap(err, errs.KindOf(err), "new key set rejected; keeping the current one"))
		return
	}
	f.set.Store(set)
	f.onReload(nil)
}
