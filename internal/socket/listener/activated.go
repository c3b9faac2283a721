package listener

import (
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/socket"
)

// CheckActivated checks a listening UNIX socket that the service manager has
// created at path for this process. The rules are those of socket.Open:
//   - Other users can't replace the socket.
//   - The socket belongs to root or to this process's user.
//   - Users whom o.Mode excludes can't connect.
func CheckActivated(path string, o socket.Options) error {
	dir, real, name, err := socket.OpenDirectory(path, o)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err != nil:
		return errs.New(errs.Denied, "socket %s: stat: %v", real, err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return errs.New(errs.Invalid, "socket %s: not a socket", real).
			WithHint("ls -ld %s  # move it away, or use another path", guard.Quote(real))
	case st.Uid != 0 && st.Uid != uint32(os.Geteuid()):
		return errs.New(errs.Invalid, "socket %s: it belongs to uid %d", real, st.Uid).
			WithHint("it must belong to root or uid %d: set SocketUser= in its unit", os.Geteuid())
	case st.Mode&0o777&^uint32(o.Mode.Perm()) != 0:
		return errs.New(errs.Invalid, "socket %s: mode %04o lets too many users connect", real, st.Mode&0o777).
			WithHint("set SocketMode=%04o in its unit", o.Mode.Perm())
	}
	return nil
}
