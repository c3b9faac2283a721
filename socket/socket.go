// Package socket opens UNIX sockets that clients may trust: nobody else can have put
// one there in our place, a second daemon does not take the first one's away,
// and what is left after a crash is cleaned up.
//
// Package listener is for programs that accept by package net.
//
// Abstract sockets are refused: they have no owner and no mode, and whoever comes
// first has the name.
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

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/rights"
)

// MaxPath is the kernel's limit for the path of a UNIX socket, in bytes.
const MaxPath = 107

// backlog is the wish; the kernel cuts it to net.core.somaxconn.
const backlog = 4096

// Options says what a socket is to be like.
type Options struct {
	Mode    fs.FileMode                    // who may connect: those who may write it
	Owner   *Owner                         // who is given it; nil: this process
	Private func(owner, group uint32) bool // whose group may write the directory: see guard.Trust
	Holder  uint32                         // may own the directory, besides root and this process's user
}

// Owner is a uid and a gid.
type Owner struct{ UID, GID uint32 }

// Socket is a listening UNIX socket, and what is needed to take it away.
type Socket struct {
	File     *os.File // listens, and does not block
	path     string   // absolute, without links
	dir      *os.File // O_PATH, judged
	name     string   // in dir
	lock     *os.File
	dev, ino uint64
	remove   sync.Once
}

// umask is the whole process's: one socket is made at a time.
var umask sync.Mutex

// Open makes the UNIX socket path, an absolute one. Its directory and all above it belong
// to root or to this process's user, and nobody else can write them, or they are sticky.
// The directory itself may belong to o.Holder instead. The directories above may not:
// their owner could move the directory while the socket is bound by its path.
//
// Beside it lies a lock file, path with ".lock", which is held until Remove. Errors
// are *errs.Error: Invalid for a path that must not be used, Conflict when another
// process serves it, or what guard.Open returns.
func Open(path string, o Options) (*Socket, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, errs.New(errs.Invalid, "socket %q: not an absolute path", path).WithHint("use an absolute path")
	}
	dir, real, name, err := Directory(path, o)
	if errs.KindOf(err) == errs.NotFound {
		return nil, errs.New(errs.NotFound, "%v", err).WithHint("%s", makeDirectory(filepath.Dir(path), o))
	}
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

// Directory opens the directory of path, which must be one that Open accepts: dir is
// open with O_PATH, and real is path without links.
func Directory(path string, o Options) (dir *os.File, real, name string, err error) {
	trust := guard.Trust{Owners: []uint32{uint32(os.Geteuid())}, Private: o.Private, Holders: []uint32{o.Holder}}
	return guard.Parent(path, guard.Rule{What: "socket", Trust: &trust})
}

// makeDirectory returns the command that makes dir, as its sockets need it. Root has
// to type it when the directory is another user's.
func makeDirectory(dir string, o Options) string {
	owner := uint32(os.Geteuid())
	if owner == 0 {
		owner = o.Holder
	}
	if owner == 0 {
		return "mkdir -p " + guard.Quote(dir)
	}
	return fmt.Sprintf("install -d -o %d %s", owner, guard.Quote(dir))
}

func (s *Socket) open(o Options) error {
	if len(s.path) > MaxPath {
		return errs.New(errs.Invalid, "socket %s: path is longer than %d bytes", s.path, MaxPath).WithHint("use a shorter path")
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	if err := s.clear(o.Owner); err != nil {
		return err
	}
	if err := s.bind(o); err != nil {
		return s.denied("create", err)
	}
	return nil
}

func (s *Socket) denied(doing string, err error) error {
	e := errs.New(errs.Denied, "socket %s: %s: %v", s.path, doing, err)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) {
		return e.WithHint("its directory must be writable by uid %d, the user of this program", os.Geteuid())
	}
	return e
}

// away is what to do about what is there in the place of the socket, or of its lock.
func (s *Socket) away(suffix string) string {
	return "ls -ld " + guard.Quote(s.path+suffix) + "  # move it away, or use another path"
}

// takeLock holds PATH.lock for as long as the socket lives, so that of two starters
// one is told, instead of each unlinking the other's socket.
func (s *Socket) takeLock() error {
	name := s.name + ".lock"
	for {
		fd, err := unix.Openat(s.fd(), name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.ELOOP) {
			return errs.New(errs.Invalid, "socket %s: lock file %s is a symbolic link", s.path, name).WithHint("%s", s.away(".lock"))
		}
		if err != nil {
			return s.denied("lock file "+name, err)
		}
		lock := os.NewFile(uintptr(fd), name)
		var held unix.Stat_t
		if err := unix.Fstat(fd, &held); err != nil || held.Mode&unix.S_IFMT != unix.S_IFREG || int(held.Uid) != os.Geteuid() {
			lock.Close()
			return errs.New(errs.Invalid, "socket %s: lock file %s is not a file of this user", s.path, name).WithHint("%s", s.away(".lock"))
		}
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			lock.Close()
			return errs.New(errs.Conflict, "socket %s: another process holds its lock", s.path).
				WithHint("stop that process, or use another path")
		}
		// The holder before us unlinks the file on its way out: a lock on a file
		// without a name keeps nobody else out.
		if named, err := s.stat(name); err == nil && named.Ino == held.Ino && named.Dev == held.Dev {
			s.lock = lock
			return nil
		}
		lock.Close()
	}
}

// clear takes away the socket that a dead process of ours, or of the owner to be, left.
// Anything else in its place stays. The lock is held, so no living one of this
// program can be about to listen on it.
func (s *Socket) clear(owner *Owner) error {
	st, err := s.stat(s.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return s.denied("stat", err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return errs.New(errs.Invalid, "socket %s: exists and is not a socket", s.path).WithHint("%s", s.away(""))
	case int(st.Uid) != os.Geteuid() && (owner == nil || st.Uid != owner.UID):
		return errs.New(errs.Invalid, "socket %s: exists and belongs to uid %d", s.path, st.Uid).WithHint("%s", s.away(""))
	case !refuses(s.path):
		return errs.New(errs.Conflict, "socket %s: another process serves it", s.path).
			WithHint("stop that process, or use another path")
	}
	if err := unix.Unlinkat(s.fd(), s.name, 0); err != nil {
		return s.denied("remove the stale socket", err)
	}
	return nil
}

// refuses tells whether a connection is refused, as it is when the listener is dead.
func refuses(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) == unix.ECONNREFUSED
}

// bind makes the socket with its mode from birth (a chmod by path later could hit
// another file, and leaves a moment in between), gives it to its owner through
// a descriptor, and only then listens.
func (s *Socket) bind(o Options) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), s.path)
	umask.Lock()
	old := unix.Umask(int(0o777 &^ o.Mode.Perm()))
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: s.path})
	unix.Umask(old)
	umask.Unlock()
	if err == nil {
		err = s.own(o.Owner)
	}
	if err == nil {
		rights.Refuse(fd)
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		file.Close()
		return err
	}
	s.File = file
	return nil
}

// own notes which file the socket is and gives it to owner. It looks through the directory
// that was judged: had the path been led elsewhere meanwhile, the socket would not be here.
func (s *Socket) own(owner *Owner) error {
	fd, err := unix.Openat(s.fd(), s.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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

// Remove unlinks the socket, lets its lock go and forgets its directory; File stays open. The
// path is unlinked only when it is still this socket's: somebody may have moved it
// away and put a new one there.
func (s *Socket) Remove() {
	s.remove.Do(func() {
		if st, err := s.stat(s.name); err == nil && s.ino != 0 && uint64(st.Dev) == s.dev && st.Ino == s.ino {
			_ = unix.Unlinkat(s.fd(), s.name, 0)
		}
		if s.lock != nil {
			_ = unix.Unlinkat(s.fd(), s.name+".lock", 0) // while it is held: see takeLock
			s.lock.Close()
		}
		s.dir.Close()
	})
}

func (s *Socket) fd() int { return int(s.dir.Fd()) }

func (s *Socket) stat(name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(s.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}
