package socket

import (
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/guard"
)

// Judge checks a listening UNIX socket at path that the service manager made for this
// process, by the rules of Open: nobody else can have put another one there, it belongs
// to root or to this process's user, and nobody may connect whom o.Mode keeps out.
func Judge(path string, o Options) error {
	dir, real, name, err := parent(path, o)
	if err != nil {
		return err
	}
	defer dir.Close()
	s := &Socket{path: real, dir: dir, name: name}
	st, err := s.stat(name)
	switch {
	case err != nil:
		return s.denied("look at it", err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return errs.New(errs.Invalid, "socket %s: another file is in its place", s.path).WithHint("%s", s.away(""))
	case st.Uid != 0 && st.Uid != uint32(os.Geteuid()):
		return errs.New(errs.Invalid, "socket %s: it belongs to uid %d", s.path, st.Uid).
			WithHint("it must belong to root or to uid %d: SocketUser= in its unit", os.Geteuid())
	case st.Mode&0o777&^uint32(o.Mode.Perm()) != 0:
		return errs.New(errs.Invalid, "socket %s: mode %04o lets too many users connect", s.path, st.Mode&0o777).
			WithHint("SocketMode=%04o in its unit", o.Mode.Perm())
	}
	return nil
}

// parent opens the directory of path, which must be one that Open accepts.
func parent(path string, o Options) (dir *os.File, real, name string, err error) {
	trust := guard.Trust{Owners: []uint32{uint32(os.Geteuid())}, Private: o.Private, Holders: []uint32{o.Holder}}
	return guard.Parent(path, guard.Rule{What: "socket", Trust: &trust})
}
