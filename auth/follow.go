package auth

import (
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/errs"
	"schedrestd/guard"
)

// lookEvery is how often a Followed looks whether its file has changed.
const lookEvery = time.Second

// Followed is a key set in a file that is read anew when it changes. It is safe for
// concurrent use.
type Followed struct {
	path  string
	trust guard.Trust
	told  func(error)
	set   atomic.Pointer[KeySet]

	looking sync.Mutex // held by the one who looks; all others take what there is meanwhile
	seen    string     // the file's stamp when it was last tried
	looked  time.Time
}

// FollowKeySet reads a key set as LoadKeySet does and follows its file from then on. When a new
// one can't be used the one before stays, also when the file is gone; told hears of each new one that
// was tried, with the error or nil, once, and may ask for the newest.
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

// KeySet is the newest that could be used. The file is looked at when it is asked for, and no
// more than once a second.
func (f *Followed) KeySet() *KeySet {
	if f.looking.TryLock() {
		defer f.looking.Unlock()
		if time.Since(f.looked) >= lookEvery {
			f.look()
		}
	}
	return f.set.Load()
}

// look reads the file when it has changed.
func (f *Followed) look() {
	f.looked = time.Now()
	seen := guard.Stamp(f.path) // before it is opened: what changes while it is read is seen next time
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
