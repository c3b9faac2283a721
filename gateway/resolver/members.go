package resolver

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// The type members finds out which users are members of a group, for the tokens of
// portals, and remembers this. Unlike accounts, it never returns an old answer
// because the user database is unavailable: who has left a group must not act as
// its member.
type members struct {
	user   func(name string) (nss.User, error)
	group  func(name string) (nss.Group, error)
	groups func(nss.User) ([]uint32, error)

	mu    sync.Mutex // guards known
	known map[memberKey]membership
}

type memberKey struct {
	user, group string // group may be ""
	groups      bool   // the user's groups are asked for
}

// A membership says whether a user is a member of a group.
type membership struct {
	uid     uint32 // NoID if no user has the name
	member  bool
	gid     uint32
	groups  []uint32 // supplementary; nil unless they were asked for
	expires time.Time
}

// Times for which members remembers an answer. With those for which package nss,
// the keeper and the workers remember it, this is less than a minute.
const (
	memberTTL    = 30 * time.Second
	nonMemberTTL = 10 * time.Second
)

func newMembers() *members {
	return &members{user: nss.LookupUser, group: nss.LookupGroup, groups: nss.Groups, known: map[memberKey]membership{}}
}

func (m *members) cached(key memberKey, now time.Time) (membership, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.known[key]
	return found, ok && now.Before(found.expires)
}

// find looks up whether a user is a member of a group. The function isDown reports
// whether the directory service does not find users that it has. An error means
// that the user database is unavailable.
func (m *members) find(key memberKey, now func() time.Time, isDown func(name string) bool) (membership, error) {
	begun := now()
	found, err := m.lookup(key)
	if err == nil && (!found.member && key.group != "" || found.uid == ipc.NoID) && isDown(key.user) {
		err = errs.New(errs.Unavailable, "the directory finds none of its users")
	}
	if err != nil {
		return membership{}, err
	}
	found.expires = begun.Add(nonMemberTTL)
	if found.member || found.uid != ipc.NoID && key.group == "" {
		found.expires = begun.Add(memberTTL)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= maxNames {
		clear(m.known)
	}
	m.known[key] = found
	return found, nil
}

func (m *members) lookup(key memberKey) (membership, error) {
	none := membership{uid: ipc.NoID}
	u, err := m.user(key.user)
	if isMissing(err) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	found := membership{uid: u.UID, gid: u.GID}
	var g nss.Group
	if key.group != "" {
		if g, err = m.group(key.group); err != nil && !isMissing(err) {
			return none, err
		}
		found.member = err == nil && (u.GID == g.GID || slices.Contains(g.Members, u.Name))
		if isMissing(err) || found.member && !key.groups {
			return found, nil
		}
	}
	list, err := m.groups(u)
	if err != nil {
		return none, err
	}
	found.member = found.member || key.group != "" && slices.Contains(list, g.GID)
	if key.groups && len(list) <= query.MaxGroups { // a process with more could not start
		found.groups = list
	}
	return found, nil
}

// isMissing reports whether a look-up has found that no user or group has a name.
func isMissing(err error) bool {
	return errs.KindOf(err) == errs.NotFound || errs.KindOf(err) == errs.Invalid
}

// member answers a question of the keeper, which has its turn like a worker.
func (i *inquirer) member(key memberKey) (membership, error) {
	i.mu.Lock()
	wait := i.questions.Charge(time.Now(), 1)
	i.mu.Unlock()
	time.Sleep(wait)
	if hit, ok := i.members.cached(key, i.now()); ok {
		return hit, nil
	}
	var found membership
	err := i.inTurn(func() (err error) {
		if hit, ok := i.members.cached(key, i.now()); ok { // another goroutine has looked it up
			found = hit
			return nil
		}
		i.lookups.Add(1)
		found, err = i.members.find(key, i.now, func(name string) bool { return i.accounts.isDown(name, i.now) })
		return err
	})
	return found, err
}

// serveKeeper answers the keeper until the channel closes.
func (r *resolver) serveKeeper(channel *ipc.Channel) {
	defer channel.Close()
	i := r.names.inquirer()
	defer i.stop()
	for {
		m, err := channel.Receive()
		switch q := m.Message.(type) {
		case nil:
		case *query.AskMember:
			r.questions.Add(1)
			place := i.pending.Empty(i)
			if !place.Grow(1) { // the keeper no longer waits for some of them
				_ = channel.TrySend(&query.Membership{ID: q.ID, UID: ipc.NoID})
				break
			}
			go func() {
				defer place.Release()
				found, err := i.member(memberKey{q.User, q.Group, q.Groups})
				_ = channel.TrySend(&query.Membership{ID: q.ID, Available: err == nil, Member: found.member, UID: found.uid, GID: found.gid, Groups: found.groups})
			}()
		default:
			err = ipc.Unhandled(q)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("channel to the keeper failed", "error", err)
			}
			return
		}
	}
}
