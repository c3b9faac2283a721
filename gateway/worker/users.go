package worker

import (
	"context"
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// The type users looks up the names of users and groups through the resolver.
// Answers are cached, because the rows of a list need the same few names again
// and again. If a directory service does not answer, only one row of a list
// waits for the timeout. For lookupPause after that, ids that are not in the
// cache are shown as numbers.
type users struct {
	user, group names

	lookupID   func(ctx context.Context, group bool, name string) (uint32, error)
	resolveSem chan struct{} // has an element while a name that a client sent is looked up
}

// The type names caches the names of one database, by id.
type names struct {
	lookup   func(uint32) (string, error)
	fallback func(uint32) string // returns the text for an id that has no name
	now      func() time.Time

	mu      sync.Mutex
	cache   map[uint32]name
	retryAt time.Time // when names may be looked up again after a failure
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

func newUsers(b *Broker) *users {
	userName := func(uid uint32) (string, error) { return b.Name(false, uid) }
	groupName := func(gid uint32) (string, error) { return b.Name(true, gid) }
	return &users{
		lookupID:   b.lookupID,
		resolveSem: make(chan struct{}, 1),
		user:       names{lookup: userName, fallback: api.Numbers{}.User, now: time.Now},
		group:      names{lookup: groupName, fallback: api.Numbers{}.Group, now: time.Now},
	}
}

// User returns the name of uid, or uid in decimal if it has no known name.
func (u *users) User(uid uint32) string { return u.user.get(uid) }

// Group returns the name of gid, or gid in decimal if it has no known name.
func (u *users) Group(gid uint32) string { return u.group.get(gid) }

// maxNameLength is the maximum length, in bytes, of a name that the resolver
// looks up.
const maxNameLength = 255

// UserID returns the uid of a user, or errs.NotFound.
func (u *users) UserID(ctx context.Context, name string) (uint32, error) {
	return u.resolve(ctx, false, name)
}

// GroupID returns the gid of a group, or errs.NotFound.
func (u *users) GroupID(ctx context.Context, name string) (uint32, error) {
	return u.resolve(ctx, true, name)
}

// resolve looks up a name that a client sent. Only one such look-up runs at a
// time, so that clients can't use up the look-ups that other answers need.
func (u *users) resolve(ctx context.Context, group bool, name string) (uint32, error) {
	if name == "" || len(name) > maxNameLength {
		return 0, errs.New(errs.NotFound, "not a name")
	}
	select {
	case u.resolveSem <- struct{}{}:
		defer func() { <-u.resolveSem }()
	case <-ctx.Done():
		return 0, errs.Wrap(ctx.Err(), errs.Unavailable, "the user database is unavailable")
	}
	id, err := u.lookupID(ctx, group, name)
	switch {
	case err != nil:
		return 0, errs.Wrap(err, errs.Unavailable, "the user database is unavailable")
	case id == ipc.NoID:
		return 0, errs.New(errs.NotFound, "not a name")
	}
	return id, nil
}

func (n *names) get(id uint32) string {
	now := n.now()
	n.mu.Lock()
	cached, ok := n.cache[id]
	paused := now.Before(n.retryAt)
	n.mu.Unlock()
	if ok && now.Before(cached.expires) {
		return cached.text
	}
	if paused {
		return n.fallback(id)
	}
	text, err := n.lookup(id)
	if err != nil || text == "" {
		text = n.fallback(id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && errs.KindOf(err) != errs.NotFound {
		n.retryAt = n.now().Add(lookupPause)
		return text
	}
	if n.cache == nil || len(n.cache) >= maxNames {
		n.cache = map[uint32]name{}
	}
	n.cache[id] = name{text, now.Add(nameTTL)}
	return text
}
