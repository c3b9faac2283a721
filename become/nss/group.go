package nss

import (
	"fmt"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// Group is one entry of the group database.
type Group struct {
	Name    string // "" when the number has no entry
	GID     uint32
	Members []string // users who have the group as a supplementary group
}

// String returns the name, or the number if there is no name.
func (g Group) String() string {
	if g.Name == "" {
		return fmt.Sprintf("gid %d", g.GID)
	}
	return g.Name
}

// LookupGroup finds a group by name.
func LookupGroup(name string) (Group, error) {
	if err := checkName("group", name); err != nil {
		return Group{}, err
	}
	return system.group(name, func(g Group) bool { return g.Name == name })
}

// LookupGID finds a group by number.
func LookupGID(gid uint32) (Group, error) {
	return system.group(fmt.Sprint(gid), func(g Group) bool { return g.GID == gid })
}

// ParseGroup parses a group that a person specified by name or by number. A
// number need not have an entry in the group database.
func ParseGroup(s string) (Group, error) {
	if !isNumber(s) {
		return LookupGroup(s)
	}
	gid, ok := parseID(s)
	if !ok {
		return Group{}, errs.New(errs.Invalid, "%s is not a group id", s)
	}
	g, err := LookupGID(gid)
	if errs.KindOf(err) == errs.NotFound {
		return Group{GID: gid}, nil
	}
	return g, err
}

// Groups returns the groups that initgroups(3) would set for u: the primary
// group first, then the others in ascending order. It combines /etc/group and
// NSS.
func Groups(u User) ([]uint32, error) { return system.groups(u) }

func (n *source) group(key string, match func(Group) bool) (Group, error) {
	line, err := n.find("group", key, func(line string, _ bool) bool {
		g, ok := parseGroup(line)
		return ok && match(g)
	})
	if err != nil {
		return Group{}, err
	}
	g, _ := parseGroup(line)
	return g, nil
}

func (n *source) groups(u User) ([]uint32, error) {
	gids, err := n.fileGroups(u.Name)
	if err != nil {
		return nil, err
	}
	if checkName("user", u.Name) == nil {
		more, err := n.initgroups(u.Name)
		if err != nil {
			return nil, err
		}
		gids = append(gids, more...)
	}
	slices.Sort(gids)
	gids = slices.DeleteFunc(slices.Compact(gids), func(g uint32) bool { return g == u.GID })
	return append([]uint32{u.GID}, gids...), nil
}

// fileGroups returns the groups in /etc/group that have the user called name as
// a member.
func (n *source) fileGroups(name string) ([]uint32, error) {
	var gids []uint32
	err := n.eachLine("group", func(line string) bool {
		if g, ok := parseGroup(line); ok && name != "" && slices.Contains(g.Members, name) {
			gids = append(gids, g.GID)
		}
		return false
	})
	return gids, err
}

// initgroups runs getent with the database initgroups and returns the groups in
// its output, a line such as "name 4 24 27". musl's getent does not support
// this database, so systems with musl use only the groups in /etc/group.
func (n *source) initgroups(name string) ([]uint32, error) {
	out, err := n.getent("initgroups", name)
	if err != nil {
		if k := errs.KindOf(err); k == errs.NotFound || k == errs.Unsupported {
			return nil, nil
		}
		return nil, err
	}
	f := strings.Fields(out)
	if len(f) == 0 || f[0] != name {
		return nil, nil
	}
	var gids []uint32
	for _, s := range f[1:] {
		if gid, ok := parseID(s); ok && gid != 0 { // only /etc/group can put a user into group 0
			gids = append(gids, gid)
		}
	}
	return gids, nil
}

// parseGroup reads a line of group(5): name:password:gid:member,member.
func parseGroup(line string) (Group, bool) {
	f := strings.Split(line, ":")
	if len(f) != 4 || f[0] == "" {
		return Group{}, false
	}
	gid, ok := parseID(f[2])
	members := strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })
	return Group{Name: f[0], GID: gid, Members: members}, ok
}
