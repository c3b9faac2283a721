// Package socket opens UNIX sockets that clients can trust. No other user can
// replace the socket, and a second daemon can't take it over. Open removes a
// socket that a crashed daemon left behind.
//
// Programs that accept connections through package net use package listener.
//
// Open refuses abstract sockets. They have no owner and no mode, and any
// process can be the first to take such a name.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/guard"
)

// MaxPath is the maximum length of a UNIX socket's path, in bytes. The kernel
// sets this limit.
const MaxPath = 107

// backlog is the length of the queue for new connections. If a user keeps the
// queue full, the connections of other users wait behind it. So the queue is
// short enough to be emptied in a few hundredths of a second.
const backlog = 512

// Options describes a socket to open.
type Options struct {
	Mode         fs.FileMode                    // users who may write to the socket may connect
	Owner        *Owner                         // owner to set; nil: this process
	PrivateGroup func(owner, group uint32) bool // see guard.Trust
	DirOwner     uint32                         // uid that may own the directory, in addition to root and this process's user
}

// Owner is a uid and a gid.
type Owner struct{ UID, GID uint32 }

// Socket is a listening UNIX socket, with the data that Remove needs.
type Socket struct {
	File       *os.File // listening and non-blocking
	path       string   // absolute, without links
	dir        *os.File // O_PATH, checked
	name       string   // in dir
	lock       *os.File
	dev, ino   uint64
	removeOnce sync.Once
}

// umaskMu serializes the creation of sockets, because the umask applies to the
// whole process.
var umaskMu sync.Mutex

// Open creates the UNIX socket at path, which must be absolute.
//
// The socket's directory and all directories above it must belong to root or to
// this process's user, with one exception: the socket's directory may belong to
// o.DirOwner. The directories above it may not, because their owner could move
// the socket's directory while Open binds the socket by its path. A directory
// in which other users may write must be sticky.
//
// Open also locks a file next to the socket. The file's name is the socket's
// name with the suffix ".lock". Remove releases the lock.
//
// Errors are *errs.Error. The kind is Invalid for a path that must not be used,
// Conflict if another process serves the socket, and Denied if the socket or
// the lock can't be created. If the directory does not exist, the kind is
// NotFound. Open returns other errors of guard.Parent unchanged.
func Open(path string, o Options) (*Socket, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, errs.New(errs.Invalid, "socket %q: not an absolute path", path).WithHint("use an absolute path")
	}
	dir, real, name, err := OpenDirectory(path, o)
	if err != nil {
		return nil, err
	}
	s := &Socket{path: real, dir: dir, name: name}
	if err := s.open(o); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// OpenDirectory opens, with O_PATH, the directory of the socket at path. It
// also returns the path with all symbolic links resolved (real), and the last
// component of that path (name). It returns an error for a directory that Open
// would not accept.
func OpenDirectory(path string, o Options) (dir *os.File, real, name string, err error) {
	trust := guard.Trust{Owners: []uint32{uint32(os.Geteuid())}, PrivateGroup: o.PrivateGroup, DirOwners: []uint32{o.DirOwner}}
	dir, real, name, err = guard.Parent(path, guard.Rule{Label: "socket", Trust: &trust})
	if errs.KindOf(err) == errs.NotFound {
		err = errs.New(errs.NotFound, "%v", err).WithHint("%s", mkdirCommand(filepath.Dir(path), o))
	}
	return dir, real, name, err
}

// CheckDirectory returns an error if Open would fail because of the directory of
// the socket at path. It creates nothing. The path "" stands for no socket.
func CheckDirectory(path string, o Options) error {
	if path == "" {
		return nil
	}
	dir, real, _, err := OpenDirectory(path, o)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Faccessat(int(dir.Fd()), ".", unix.W_OK, 0)
	return errs.Wrap(err, errs.Denied, "socket %s: its directory must be writable by uid %d", real, os.Geteuid())
}

// mkdirCommand returns a command that creates dir with an owner that Open
// accepts. If this owner is another user, only root can run the command.
func mkdirCommand(dir string, o Options) string {
	owner := uint32(os.Geteuid())
	if owner == 0 {
		owner = o.DirOwner
	}
	return fmt.Sprintf("install -d -o %d %s", owner, guard.Quote(dir))
}

func (s *Socket) open(o Options) error {
	if len(s.path) > MaxPath {
		return errs.New(errs.Invalid, "socket %s: path is longer than %d bytes", s.path, MaxPath).WithHint("use a shorter path")
	}
	if err := s.acquireLock(); err != nil {
		return err
	}
	if err := s.removeStale(o.Owner); err != nil {
		return err
	}
	if err := s.bind(o); err != nil {
		return s.deniedError("create", err)
	}
	return nil
}

func (s *Socket) deniedError(op string, err error) error {
	e := errs.New(errs.Denied, "socket %s: %s: %v", s.path, op, err)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) {
		return e.WithHint("its directory must be writable by uid %d, the user of this program", os.Geteuid())
	}
	return e
}

// moveAwayHint returns the hint for an unexpected file at the path of the
// socket or of its lock.
func (s *Socket) moveAwayHint(suffix string) string {
	return "ls -ld " + guard.Quote(s.path+suffix) + "  # move it away, or use another path"
}

// acquireLock locks the file PATH.lock. Remove releases the lock. If two
// processes open the same socket, the second gets an error. Without the lock,
// each process could unlink the other's socket.
func (s *Socket) acquireLock() error {
	name := s.name + ".lock"
	for {
		fd, err := unix.Openat(s.dirFD(), name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.ELOOP) {
			return errs.New(errs.Invalid, "socket %s: lock file %s is a symbolic link", s.path, name).WithHint("%s", s.moveAwayHint(".lock"))
		}
		if err != nil {
			return s.deniedError("lock file "+name, err)
		}
		lock := os.NewFile(uintptr(fd), name)
		var lockStat unix.Stat_t
		if err := unix.Fstat(fd, &lockStat); err != nil || lockStat.Mode&unix.S_IFMT != unix.S_IFREG || int(lockStat.Uid) != os.Geteuid() {
			lock.Close()
			return errs.New(errs.Invalid, "socket %s: lock file %s is not a file of this user", s.path, name).WithHint("%s", s.moveAwayHint(".lock"))
		}
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			lock.Close()
			return errs.New(errs.Conflict, "socket %s: another process holds its lock", s.path).
				WithHint("stop that process, or use another path")
		}
		// The previous holder of the lock unlinks the file before it releases
		// the lock. So this lock may be on a file that no longer has a name.
		// Such a lock would not exclude other processes.
		if named, err := s.stat(name); err == nil && named.Ino == lockStat.Ino && named.Dev == lockStat.Dev {
			s.lock = lock
			return nil
		}
		lock.Close()
	}
}

// removeStale removes a socket that a crashed process left behind. This socket
// must belong to this process's user or to the owner of the new socket. If
// anything else is at the path, removeStale does not remove it and returns an
// error. The caller holds the lock, so no other process of this program is
// about to listen on the socket.
func (s *Socket) removeStale(owner *Owner) error {
	st, err := s.stat(s.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return s.deniedError("stat", err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return errs.New(errs.Invalid, "socket %s: exists and is not a socket", s.path).WithHint("%s", s.moveAwayHint(""))
	case int(st.Uid) != os.Geteuid() && (owner == nil || st.Uid != owner.UID):
		return errs.New(errs.Invalid, "socket %s: exists and belongs to uid %d", s.path, st.Uid).WithHint("%s", s.moveAwayHint(""))
	case !refusesConnections(s.path):
		return errs.New(errs.Conflict, "socket %s: another process serves it", s.path).
			WithHint("stop that process, or use another path")
	}
	if err := unix.Unlinkat(s.dirFD(), s.name, 0); err != nil {
		return s.deniedError("remove the stale socket", err)
	}
	return nil
}

// refusesConnections reports whether the socket refuses connections. This means
// that no process listens on it.
func refusesConnections(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) == unix.ECONNREFUSED
}

// bind creates the socket with its final mode, changes its owner through a
// descriptor, and only then listens. So no client can connect before the mode
// and the owner are final. bind does not set the mode by path after creating
// the socket, because the path could lead to another file by then.
func (s *Socket) bind(o Options) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), s.path)
	umaskMu.Lock()
	old := unix.Umask(int(0o777 &^ o.Mode.Perm()))
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: s.path})
	unix.Umask(old)
	umaskMu.Unlock()
	if err == nil {
		err = s.setOwner(o.Owner)
	}
	if err == nil {
		fdpass.Refuse(fd)
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		file.Close()
		return err
	}
	s.File = file
	return nil
}

// setOwner stores the device and inode of the new socket, and changes its
// owner. It looks for the socket in the directory that Open checked. If the
// path led to another directory when bind created the socket, setOwner does not
// find the socket and fails.
func (s *Socket) setOwner(owner *Owner) error {
	fd, err := unix.Openat(s.dirFD(), s.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		return errors.New("replaced by another file during creation")
	}
	s.dev, s.ino = uint64(st.Dev), st.Ino
	if owner == nil || st.Uid == owner.UID && st.Gid == owner.GID {
		return nil
	}
	return unix.Fchownat(fd, "", int(owner.UID), int(owner.GID), unix.AT_EMPTY_PATH)
}

// Remove unlinks the socket, releases its lock and closes its directory. It
// does not close s.File. If the path no longer names this socket, Remove does
// not unlink it: another user may have moved the socket away and put a new one
// there.
func (s *Socket) Remove() {
	s.removeOnce.Do(func() {
		if st, err := s.stat(s.name); err == nil && s.ino != 0 && uint64(st.Dev) == s.dev && st.Ino == s.ino {
			_ = unix.Unlinkat(s.dirFD(), s.name, 0)
		}
		if s.lock != nil {
			_ = unix.Unlinkat(s.dirFD(), s.name+".lock", 0) // still under the lock: see acquireLock
			s.lock.Close()
		}
		s.dir.Close()
	})
}

func (s *Socket) dirFD() int { return int(s.dir.Fd()) }

func (s *Socket) stat(name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(s.dirFD(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}
