package direct

import (
	"context"
	"strconv"
	"sync"

	"schedrestd/become/nss"
)

// The type users looks up names of users and groups in the databases of this
// machine. It remembers the names, because a list contains the same few names
// again and again.
type users struct {
	mu    sync.Mutex        // guards names
	names map[nameID]string // or the number, if there is no name
}

type nameID struct {
	group bool
	id    uint32
}

func newUsers() *users { return &users{names: map[nameID]string{}} }

// User returns the name of the user with the given uid, or the uid if no name
// is found.
func (u *users) User(uid uint32) string {
	return u.name(nameID{id: uid}, func() (string, error) {
		user, err := nss.LookupUID(uid)
		return user.Name, err
	})
}

// Group returns the name of the group with the given gid, or the gid if no name
// is found.
func (u *users) Group(gid uint32) string {
	return u.name(nameID{group: true, id: gid}, func() (string, error) {
		group, err := nss.LookupGID(gid)
		return group.Name, err
	})
}

func (u *users) name(id nameID, lookup func() (string, error)) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	name, ok := u.names[id]
	if !ok {
		var err error
		if name, err = lookup(); err != nil || name == "" {
			name = strconv.FormatUint(uint64(id.id), 10)
		}
		u.names[id] = name
	}
	return name
}

// UserID returns the uid of a user.
func (u *users) UserID(_ context.Context, name string) (uint32, error) {
	user, err := nss.LookupUser(name)
	return user.UID, err
}

// GroupID returns the gid of a group.
func (u *users) GroupID(_ context.Context, name string) (uint32, error) {
	group, err := nss.LookupGroup(name)
	return group.GID, err
}
