package auth

import (
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/errs"
	"schedrestd/guard"
)

// lookEvery is the minimum time between two checks of a Followed's file for
// changes.
const lookEvery = time.Second

// Followed is a key set that is read again from its file when the file changes.
// It is safe for concurrent use.
type Followed struct {
	path  string
	trust guard.Trust
	told  func(error)
	set   atomic.Pointer[KeySet]

	looking sync.Mutex // held by the goroutine that checks the file; other goroutines use the current set meanwhile
	seen    string     // stamp of the file when it was last read
	looked  time.Time
}

// FollowKeySet reads a key set as LoadKeySet does. The method KeySet later
// reads it again if the file has changed. If the new set can't be used, or the
// file is gone, the current set stays in use. After each change that it
// notices, KeySet calls the function in the argument told. It passes nil if the
// new set is in use, and otherwise the error. The function may call KeySet.
func FollowKeySet(path string, told func(error), trust guard.Trust) (*Followed, error) {
	f := &Followed{path: path, trust: trust, told: told}
	f.seen, f.looked = guard.Stamp(path), time.Now()
	set, err := LoadKeySet(path, f.trust)
	if err != nil {
		return nil, err
	}
	f.set.Store(set)
	return f, nil
}

// KeySet returns the newest usable set. It checks the file at most once per
// second.
func (f *Followed) KeySet() *KeySet {
	if f.looking.TryLock() {
		defer f.looking.Unlock()
		if time.Since(f.looked) >= lookEvery {
			f.look()
		}
	}
	return f.set.Load()
}

// look reads the file if it has changed.
func (f *Followed) look() {
	f.looked = time.Now()
	seen := guard.Stamp(f.path) // taken before the file is opened, so that the next check notices a change during the read
	if seen == f.seen {
		return
	}
	f.seen = seen
	set, err := LoadKeySet(f.path, f.trust)
	if err != nil {
		f.told(errs.Wrap(err, errs.KindOf(err), "new key set rejected; keeping the current one"))
		return
	}
	f.set.Store(set)
	f.told(nil)
}
