package broker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/api"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
)

// Users looks up the names and ids of users and groups through the resolver. It
// implements api.Users and handlers.Resolver.
type Users struct {
	names    names
	resolver *resolver
	accounts *accounts                    // users of tokens
	byName   *semaphore.Semaphore[string] // limits the look-ups of names that clients sent in filters
}

// The type names caches the names of users and groups, because the rows of a
// list need the same few names again and again. If a directory service does not
// answer, only one row of a list waits for the timeout. For lookupPause after
// that, ids that are not in the cache are shown as numbers.
type names struct {
	lookup func(group bool, number uint32) (string, error)
	now    func() time.Time

	mu      sync.Mutex // guards the fields below
	cache   map[id]name
	retryAt time.Time // when names may be looked up again after a failure
}

// An id is the number of a user or a group.
type id struct {
	group  bool
	number uint32
}

type name struct {
	text    string
	expires time.Time
}

const (
	nameTTL     = time.Minute
	lookupPause = 30 * time.Second
	maxNames    = 10_000 // maximum number of entries; a full cache is cleared
)

func newUsers(r *resolver) *Users {
	u := &Users{names: names{lookup: r.name, now: time.Now}, resolver: r, byName: semaphore.New[string](limit.NameLookups)}
	u.accounts = newAccounts(func(ctx context.Context, name, turn string) (uint32, error) { return u.number(ctx, false, name, turn) })
	return u
}

// User returns the name of uid, or uid in decimal if it has no known name.
func (u *Users) User(uid uint32) string { return u.names.get(id{false, uid}) }

// Group returns the name of gid, or gid in decimal if it has no known name.
func (u *Users) Group(gid uint32) string { return u.names.get(id{true, gid}) }

// maxNameLength is the maximum length, in bytes, of a name that the resolver
// looks up.
const maxNameLength = 255

// UserID returns the uid of a user, or errs.NotFound.
func (u *Users) UserID(ctx context.Context, name string) (uint32, error) {
	return u.resolve(ctx, false, name)
}

// GroupID returns the gid of a group, or errs.NotFound.
func (u *Users) GroupID(ctx context.Context, name string) (uint32, error) {
	return u.resolve(ctx, true, name)
}

// resolve looks up a name that a client sent. Only one such look-up runs at a
// time, so that clients can't use up the look-ups that other answers need. Users
// take turns.
func (u *Users) resolve(ctx context.Context, group bool, name string) (uint32, error) {
	if name == "" || len(name) > maxNameLength {
		return 0, errs.New(errs.NotFound, "not a name")
	}
	place, err := u.byName.Acquire(ctx, semaphore.KeyFrom(ctx))
	if err != nil {
		return 0, errs.Wrap(err, errs.Unavailable, "the user database is unavailable")
	}
	defer place.Release()
	return u.number(ctx, group, name, semaphore.KeyFrom(ctx))
}

// Account returns the uid of the user of a verified token. Clients with the same
// turn wait for each other. The errors are NotFound, TooMany and Unavailable.
func (u *Users) Account(ctx context.Context, name, turn string) (uint32, error) {
	return u.accounts.find(ctx, name, turn)
}

// number asks the resolver for an id.
func (u *Users) number(ctx context.Context, group bool, name, turn string) (uint32, error) {
	number, err := u.resolver.id(ctx, group, name, turn)
	switch {
	case err != nil:
		return 0, errs.Wrap(err, errs.Unavailable, "the user database is unavailable")
	case number == ipc.NoID:
		return 0, errs.New(errs.NotFound, "not a name")
	}
	return number, nil
}

// OwnName returns a function that returns the name of the worker's own user.
// That function returns "" if the uid has no name or if the user database is
// unavailable.
func (u *Users) OwnName(uid uint32) func() string {
	var cached atomic.Pointer[name]
	return func() string {
		if n := cached.Load(); n != nil && time.Now().Before(n.expires) {
			return n.text
		}
		text, err := u.resolver.name(false, uid)
		if err != nil {
			slog.Warn("worker's user name not found; requests with a name header get 401", "uid", uid, "error", err,
				"hint", fmt.Sprintf("getent passwd %d", uid))
		}
		if text != "" {
			cached.Store(&name{text, time.Now().Add(nameTTL)})
		}
		return text
	}
}

func (n *names) get(i id) string {
	now := n.now()
	n.mu.Lock()
	cached, ok := n.cache[i]
	paused := now.Before(n.retryAt)
	n.mu.Unlock()
	if ok && now.Before(cached.expires) {
		return cached.text
	}
	if paused {
		return i.text()
	}
	text, err := n.lookup(i.group, i.number)
	if err != nil || text == "" {
		text = i.text()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && errs.KindOf(err) != errs.NotFound {
		n.retryAt = n.now().Add(lookupPause)
		return text
	}
	if n.cache == nil || len(n.cache) >= maxNames {
		n.cache = map[id]name{}
	}
	n.cache[i] = name{text, now.Add(nameTTL)}
	return text
}

// text returns the text for an id that has no name.
func (i id) text() string {
	if i.group {
		return api.Numbers{}.Group(i.number)
	}
	return api.Numbers{}.User(i.number)
}
