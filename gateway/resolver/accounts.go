package resolver

import (
	"slices"
	"sync"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// The type accounts finds the uids of users by name, for the tokens that workers
// receive, and remembers them. The gateway refuses a user that does not exist.
// So a user must not seem to be gone because a directory service is slow or does
// not answer: accounts then returns what it knew less than accountAge ago.
//
// getent reports the same for a user that does not exist and for a directory
// service that it can't reach. So before accounts believes that a name belongs to
// no user, it looks up another user that it knows from the directory.
type accounts struct {
	lookup func(name string) (nss.User, error)

	mu         sync.Mutex // guards the fields below
	known      map[string]account
	unknown    map[string]time.Time // names that no user has, and until when this is remembered
	refreshing map[string]chan struct{}
}

// An account is a user that exists, or has existed.
type account struct {
	uid       uint32
	remote    bool      // known from the directory service, not from a file
	confirmed time.Time // the last time that the user was found
	fresh     time.Time // until this time, the user is not looked up again
}

// Times for which accounts remembers users and names. Workers and package nss
// remember them for some more seconds.
const (
	accountTTL = 30 * time.Second
	unknownTTL = 10 * time.Second
	accountAge = time.Hour
)

const (
	maxUnknown = 1000        // names; a full cache is cleared
	patience   = time.Second // how long a look-up of a known user may take before the old answer is used
	witnesses  = 3           // how many known users are looked up to find out whether the directory answers
)

func newAccounts() *accounts {
	return &accounts{lookup: nss.LookupUser, known: map[string]account{}, unknown: map[string]time.Time{}, refreshing: map[string]chan struct{}{}}
}

// cached returns what need not be looked up.
func (a *accounts) cached(name string, now time.Time) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.known[name]; ok && now.Before(k.fresh) {
		return answer{number: k.uid}, true
	}
	return answer{number: ipc.NoID}, now.Before(a.unknown[name])
}

// last returns what was known about a user when it could last be found.
func (a *accounts) last(name string, now time.Time) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.known[name]
	return answer{number: k.uid}, ok && now.Before(k.confirmed.Add(accountAge))
}

// refresh calls find, which looks a known user up. If this takes too long,
// refresh returns the last answer, and find goes on.
func (a *accounts) refresh(name string, last answer, find func()) answer {
	a.mu.Lock()
	done := a.refreshing[name]
	if done == nil {
		done = make(chan struct{})
		a.refreshing[name] = done
		go func() {
			find()
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.refreshing, name)
			close(done)
		}()
	}
	a.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		return last
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.known[name]; ok {
		return answer{number: k.uid}
	}
	if _, ok := a.unknown[name]; ok {
		return answer{number: ipc.NoID}
	}
	return last
}

// find looks a user up. An error means that the user database is unavailable, and
// that the user was not known.
func (a *accounts) find(name string, now func() time.Time) (answer, error) {
	u, err := a.lookup(name)
	missing := isMissing(err)
	if err != nil && missing && a.isDown(name, now) {
		err, missing = errs.New(errs.Unavailable, "the directory finds none of its users"), false
	}
	at := now()
	a.mu.Lock()
	defer a.mu.Unlock()
	k, known := a.known[name]
	switch {
	case err == nil:
		a.storeLocked(name, u, at)
		return answer{number: u.UID}, nil
	case missing:
		if len(a.unknown) >= maxUnknown {
			clear(a.unknown)
		}
		delete(a.known, name)
		a.unknown[name] = at.Add(unknownTTL)
		return answer{number: ipc.NoID}, nil
	case known && at.Before(k.confirmed.Add(accountAge)):
		k.fresh = at.Add(unknownTTL)
		a.known[name] = k
		return answer{number: k.uid}, nil
	}
	return answer{}, err
}

// storeLocked remembers a user.
func (a *accounts) storeLocked(name string, u nss.User, at time.Time) {
	if len(a.known) >= maxNames {
		clear(a.known)
	}
	delete(a.unknown, name)
	a.known[name] = account{u.UID, u.Remote, at, at.Add(accountTTL)}
}

// isDown reports whether the directory finds none of the users that it found
// last, apart from the user with the given name.
func (a *accounts) isDown(name string, now func() time.Time) bool {
	names := a.newest(name, now())
	for _, other := range names {
		u, err := a.lookup(other)
		if err == nil && u.Remote {
			a.mu.Lock()
			a.storeLocked(other, u, now())
			a.mu.Unlock()
			return false
		}
	}
	return len(names) > 0
}

// newest returns the names of the users that the directory service has found
// last.
func (a *accounts) newest(except string, now time.Time) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range witnesses {
		best := ""
		for name, k := range a.known {
			if name != except && k.remote && now.Before(k.confirmed.Add(accountAge)) && !slices.Contains(names, name) &&
				(best == "" || k.confirmed.After(a.known[best].confirmed)) {
				best = name
			}
		}
		if best == "" {
			break
		}
		names = append(names, best)
	}
	return names
}
