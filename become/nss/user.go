package nss

import (
	"fmt"
	"os"
	"strings"

	"schedrestd/internal/errs"
)

// User is one entry of the passwd database.
type User struct {
	Name  string // "" when the uid has no entry
	UID   uint32
	GID   uint32 // primary group
	Home  string
	Shell string

	Remote bool // the entry comes from getent, not from the file /etc/passwd
}

// String returns the name, or the number if there is no name.
func (u User) String() string {
	if u.Name == "" {
		return fmt.Sprintf("uid %d", u.UID)
	}
	return u.Name
}

// LookupUser finds a user by name.
func LookupUser(name string) (User, error) {
	if err := checkName("user", name); err != nil {
		return User{}, err
	}
	u, err := system.user(name, func(u User) bool { return u.Name == name })
	return orOwnUser(u, err, func(self User) bool { return self.Name == name })
}

// LookupUID finds a user by number.
func LookupUID(uid uint32) (User, error) {
	u, err := system.user(fmt.Sprint(uid), func(u User) bool { return u.UID == uid })
	return orOwnUser(u, err, func(self User) bool { return self.UID == uid })
}

// NamesOf returns every name of uid. Several lines of /etc/passwd may have the
// same uid.
func NamesOf(uid uint32) ([]string, error) { return system.namesOf(uid) }

func (n *source) namesOf(uid uint32) ([]string, error) {
	var names []string
	err := n.eachLine("passwd", func(line string) bool {
		if u, ok := parseUser(line); ok && u.UID == uid {
			names = append(names, u.Name)
		}
		return false
	})
	if err != nil || len(names) > 0 {
		return names, err
	}
	u, err := n.user(fmt.Sprint(uid), func(u User) bool { return u.UID == uid })
	if errs.KindOf(err) == errs.NotFound {
		return nil, nil
	}
	return []string{u.Name}, err
}

// orOwnUser returns the result of a look-up, u and err, with one exception. If
// the look-up was for the user of this process and found no entry, orOwnUser
// returns a made-up entry, because a container may be started with any uid. It
// never makes up an entry for root or for another user.
func orOwnUser(u User, err error, match func(User) bool) (User, error) {
	uid := uint32(os.Geteuid())
	self := User{Name: fmt.Sprintf("uid%d", uid), UID: uid, GID: uint32(os.Getegid()), Home: "/", Shell: "/bin/sh"}
	if uid == 0 || errs.KindOf(err) != errs.NotFound || !match(self) {
		return u, err
	}
	return self, nil
}

// ParseUser parses a user that a person specified by name or by number. A
// number need not have an entry in the passwd database. The result known
// reports whether the user has an entry. Without an entry, only UID is set.
func ParseUser(s string) (u User, known bool, err error) {
	if !isNumber(s) {
		u, err = LookupUser(s)
		return u, err == nil, err
	}
	uid, ok := parseID(s)
	if !ok {
		return User{}, false, errs.New(errs.Invalid, "%s is not a user id", s)
	}
	u, err = LookupUID(uid)
	if errs.KindOf(err) == errs.NotFound {
		return User{UID: uid}, false, nil
	}
	return u, err == nil, err
}

// user finds a user. Root is found only in the files. An attacker who controls
// the directory service must not be able to make a user root.
func (n *source) user(key string, match func(User) bool) (User, error) {
	remote := false
	line, err := n.find("passwd", key, func(line string, file bool) bool {
		u, ok := parseUser(line)
		remote = !file
		return ok && match(u) && (file || u.UID != 0)
	})
	if err != nil {
		return User{}, err
	}
	u, _ := parseUser(line)
	u.Remote = remote
	return u, nil
}

// parseUser reads a line of passwd(5): name:password:uid:gid:gecos:home:shell.
func parseUser(line string) (User, bool) {
	f := strings.Split(line, ":")
	if len(f) != 7 || f[0] == "" {
		return User{}, false
	}
	uid, ok := parseID(f[2])
	gid, ok2 := parseID(f[3])
	return User{Name: f[0], UID: uid, GID: gid, Home: f[5], Shell: f[6]}, ok && ok2
}
