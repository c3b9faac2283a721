package broker

import (
	"context"
	"sync"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
)

// The type accounts looks up the users of verified tokens. It remembers for a
// few seconds who exists and who does not. If the user database is unavailable,
// users that it knew within the last hour still exist: a user must not become
// unknown because a directory does not answer.
//
// Look-ups have a turn for each client, so that a client that sends made-up
// names delays only itself. Names that no user has are remembered apart from
// the others, so that it can't make accounts forget the users that exist.
type accounts struct {
	lookup func(ctx context.Context, name, turn string) (uint32, error)
	now    func() time.Time

	mu       sync.Mutex // guards the fields below, but not what a search points to
	known    map[string]account
	unknown  map[string]time.Time // names that no user has, and until when this is remembered
	searches map[searchKey]*search

	pending *semaphore.Semaphore[string] // searches, by turn
}

// An account is a user that exists, or has existed.
type account struct {
	uid   uint32
	fresh time.Time // until this time, the user is not looked up again
	until time.Time // until this time, the user exists even if the user database is unavailable
}

// A searchKey identifies a look-up. Clients with different turns do not share a
// look-up, because it waits for one of the turns.
type searchKey struct{ name, turn string }

// A search is a pending look-up.
type search struct {
	done chan struct{} // closed when the result is known
	uid  uint32
	err  error
}

// How long accounts remembers a user that exists and a name that no user has.
// The resolver and package nss remember them, too: altogether for less than a
// minute, or half a minute.
const (
	accountTTL = 15 * time.Second
	unknownTTL = 5 * time.Second
	accountAge = time.Hour // a user is used no longer than this without an answer of the user database
)

const maxUnknown = 1000 // a full cache is cleared

func newAccounts(lookup func(ctx context.Context, name, turn string) (uint32, error)) *accounts {
	return &accounts{lookup: lookup, now: time.Now, known: map[string]account{}, unknown: map[string]time.Time{},
		searches: map[searchKey]*search{}, pending: semaphore.New[string](limit.AccountSearches)}
}

var (
	errNoUser   = errs.New(errs.NotFound, "no such user")
	errSearches = &rest.RetryAfterError{Err: errs.New(errs.TooMany, "too many users are looked up for this client"), After: time.Second}
)

// find returns the uid of a user. Its errors are NotFound, Unavailable and
// TooMany.
func (a *accounts) find(ctx context.Context, name, turn string) (uint32, error) {
	s, last, err := a.begin(searchKey{name, turn})
	switch {
	case err != nil:
		return 0, err
	case s == nil:
		return last.uid, nil
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return 0, errs.Wrap(context.Cause(ctx), errs.Unavailable, "the user was not looked up in time")
	}
	return s.uid, s.err
}

// begin returns a search, or without a search what is known about the user.
func (a *accounts) begin(key searchKey) (*search, account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	last, known := a.known[key.name]
	place := a.pending.Empty(key.turn)
	switch s := a.searches[key]; {
	case known && now.Before(last.fresh):
		return nil, last, nil
	case now.Before(a.unknown[key.name]):
		return nil, account{}, errNoUser
	case s != nil:
		return s, account{}, nil
	case place.Grow(1):
	case known && now.Before(last.until):
		return nil, last, nil
	default:
		return nil, account{}, errSearches
	}
	s := &search{done: make(chan struct{})}
	a.searches[key] = s
	go a.search(key, s, place) // other requests may wait for the result when the client of this one has gone
	return s, account{}, nil
}

// search looks a user up. The look-up has a time limit.
func (a *accounts) search(key searchKey, s *search, place *semaphore.Place[string]) {
	uid, err := a.lookup(context.Background(), key.name, key.turn)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(s.done)
	delete(a.searches, key)
	place.Release()
	now := a.now()
	switch last, known := a.known[key.name]; {
	case err == nil:
		if len(a.known) >= maxNames {
			clear(a.known)
		}
		delete(a.unknown, key.name)
		a.known[key.name] = account{uid, now.Add(accountTTL), now.Add(accountAge)}
	case errs.KindOf(err) == errs.NotFound:
		if len(a.unknown) >= maxUnknown {
			clear(a.unknown)
		}
		delete(a.known, key.name)
		a.unknown[key.name], err = now.Add(unknownTTL), errNoUser
	case known && now.Before(last.until):
		last.fresh = now.Add(accountTTL)
		a.known[key.name] = last
		uid, err = last.uid, nil
	}
	s.uid, s.err = uid, err
}
