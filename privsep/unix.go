package privsep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// maxSocketPath is the kernel's limit for the path of a UNIX socket, in bytes.
const maxSocketPath = 107

// backlog is the wish; the kernel cuts it to net.core.somaxconn.
const backlog = 4096

// unixSocket is a UNIX listener being made, and what is needed to take it away.
type unixSocket struct {
	dir      int    // O_PATH, judged
	path     string // below the real directory
	name     string
	lock     *os.File
	mine     []uint32 // who may own what a dead parent left
	dev, ino uint64
}

// listenUnix makes the UNIX socket of e. Nobody but root and the starter can put
// another one in its place: the directory and all above it are judged first.
func listenUnix(e endpoint, c Config, who service) (list []*listener, err error) {
	s := &unixSocket{name: filepath.Base(e.path), mine: []uint32{uint32(os.Geteuid()), who.UID}}
	trust := security.Trust{Owners: []uint32{uint32(os.Geteuid())}, Private: privateGroup}
	var real string
	if s.dir, real, err = trust.OpenDir(filepath.Dir(e.path)); err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "can't listen on %s", e.text)
	}
	s.path = filepath.Join(real, s.name)
	defer func() {
		if err != nil {
			s.remove()
			err = errs.Wrap(err, errs.KindOf(err), "can't listen on %s", e.text)
		}
	}()
	if err := s.takeLock(); err != nil {
		return nil, err
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	gid, err := socketGroup(c.SocketGroup, who)
	if err != nil {
		return nil, err
	}
	file, err := s.bind(unixMode(c), who.UID, gid)
	if err != nil {
		return nil, err
	}
	l, err := newListener(ipc.Unix, e.text, file)
	if err != nil {
		return nil, err
	}
	l.remove = s.remove
	return []*listener{l}, nil
}

// unixMode is who may connect: with tokens everybody, since the token decides; with
// rest_auth/local alone only the serving user, who is the only one it lets in.
func unixMode(c Config) fs.FileMode {
	if c.SocketMode != 0 {
		return c.SocketMode
	}
	if c.Setup.JWT {
		return 0o666
	}
	return 0o600
}

func socketGroup(name string, who service) (uint32, error) {
	if name == "" {
		return who.GID, nil
	}
	g, err := become.ParseGroup(name)
	return g.GID, err
}

// takeLock holds PATH.lock for as long as the socket lives, so that of two starters
// one is told, instead of each unlinking the other's socket.
func (s *unixSocket) takeLock() error {
	name := s.name + ".lock"
	for {
		fd, err := unix.Openat(s.dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return errs.New(errs.Denied, "lock file %s.lock: %v", s.path, err)
		}
		lock := os.NewFile(uintptr(fd), name)
		var held, named unix.Stat_t
		if err := unix.Fstat(fd, &held); err != nil || held.Mode&unix.S_IFMT != unix.S_IFREG || int(held.Uid) != os.Geteuid() {
			lock.Close()
			return errs.New(errs.Denied, "lock file %s.lock is not a file of this user", s.path)
		}
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			lock.Close()
			return errs.New(errs.Conflict, "another schedrestd serves this socket").
				WithHint("stop it, or name another path")
		}
		// The holder before us unlinks the file on its way out: a lock on a file
		// without a name keeps nobody else out.
		if err := unix.Fstatat(s.dir, name, &named, unix.AT_SYMLINK_NOFOLLOW); err == nil && named.Ino == held.Ino && named.Dev == held.Dev {
			s.lock = lock
			return nil
		}
		lock.Close()
	}
}

// clear takes away the socket that a dead parent left. Anything else in its place stays.
func (s *unixSocket) clear() error {
	var st unix.Stat_t
	err := unix.Fstatat(s.dir, s.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return errs.Wrap(err, errs.Denied, "look at %s", s.path)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return errs.New(errs.Conflict, "%s is there and is not a socket", s.path)
	case st.Uid != s.mine[0] && st.Uid != s.mine[1]:
		return errs.New(errs.Conflict, "%s is a socket of uid %d", s.path, st.Uid)
	case !s.refuses():
		return errs.New(errs.Conflict, "%s is served by another program", s.path)
	}
	return errs.Wrap(unix.Unlinkat(s.dir, s.name, 0), errs.Denied, "remove the stale %s", s.path)
}

// refuses tells whether a connection to the socket is refused, as it is when its
// listener is dead.
func (s *unixSocket) refuses() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: s.path}) == unix.ECONNREFUSED
}

// bind makes the socket with its mode from birth (a chmod by path later could hit
// another file, and leaves a moment in between), gives it to the serving user through
// a descriptor, and only then listens.
func (s *unixSocket) bind(mode fs.FileMode, uid, gid uint32) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "make a socket")
	}
	file := os.NewFile(uintptr(fd), s.path)
	old := unix.Umask(int(0o777 &^ mode.Perm()))
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: s.path})
	unix.Umask(old)
	if err == nil {
		err = s.own(uid, gid)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		file.Close()
		return nil, errs.New(errs.Denied, "make the socket %s: %v", s.path, err).
			WithHint("its directory must exist and be writable by whoever starts schedrestd")
	}
	return file, nil
}

// own notes which file the socket is and gives it to uid and gid.
func (s *unixSocket) own(uid, gid uint32) error {
	fd, err := unix.Openat(s.dir, s.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		return errors.New("another file took its place")
	}
	s.dev, s.ino = st.Dev, st.Ino
	if st.Uid == uid && st.Gid == gid {
		return nil
	}
	return unix.Fchownat(fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH)
}

// remove unlinks the socket when the path still is this one, lets the lock go, and
// closes the directory.
func (s *unixSocket) remove() {
	var st unix.Stat_t
	if s.ino != 0 && unix.Fstatat(s.dir, s.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Dev == s.dev && st.Ino == s.ino {
		_ = unix.Unlinkat(s.dir, s.name, 0)
	}
	if s.lock != nil {
		_ = unix.Unlinkat(s.dir, s.name+".lock", 0) // while it is held: see takeLock
		s.lock.Close()
	}
	unix.Close(s.dir)
}
