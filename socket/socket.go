// Package socket opens UNIX sockets that clients may trust: nobody else can have put
// one there in our place, a second daemon does not take the first one's away,
// and what is left after a crash is cleaned up.
//
// Abstract sockets are refused: they have no owner and no mode, and whoever comes
// first has the name.
package socket

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// maxPath is the kernel's limit for the path of a UNIX socket, in bytes.
const maxPath = 107

// Listener is a UNIX socket that is unlinked when it is closed, if it is still this one.
type Listener struct {
	*net.UnixListener
	dir, lock *os.File
	name      string
	dev, ino  uint64
	close     sync.Once
}

// umask is the whole process's: one socket is made at a time.
var umask sync.Mutex

// Listen opens the UNIX socket path, an absolute one, with the given mode.
//
// Beside it lies a lock file, path with ".lock", which is held until Close and left
// there. Errors are *errs.Error: Invalid for a path that must not be used, Conflict
// when another process serves it.
func Listen(path string, mode fs.FileMode) (*Listener, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, errs.New(errs.Invalid, "socket %q: not an absolute path", path)
	}
	if len(path) > maxPath {
		return nil, errs.New(errs.Invalid, "socket %s: path is longer than %d bytes", path, maxPath)
	}
	l := &Listener{name: filepath.Base(path)}
	if err := l.open(path, mode); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *Listener) open(path string, mode fs.FileMode) error {
	var err error
	if l.dir, err = openDir(filepath.Dir(path)); err != nil {
		return err
	}
	if l.lock, err = lockFile(l.dir, l.name+".lock", path); err != nil {
		return err
	}
	if err := l.clear(path); err != nil {
		return err
	}
	if l.UnixListener, err = listen(path, mode); err != nil {
		return errs.Wrap(err, errs.Invalid, "socket %s", path)
	}
	// Seen through the directory that was judged: had the path been led elsewhere
	// meanwhile, it would not be here.
	st, err := l.stat()
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		l.UnixListener.Close()
		return errs.New(errs.Invalid, "socket %s: its directory was changed while it was made", path)
	}
	l.dev, l.ino = uint64(st.Dev), st.Ino
	return nil
}

// listen gives the socket its mode at birth: changed afterwards, by path, there
// would be a moment with another one, and perhaps another file.
func listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	umask.Lock()
	defer umask.Unlock()
	defer unix.Umask(unix.Umask(int(^mode.Perm() & fs.ModePerm)))
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		ln.SetUnlinkOnClose(false)
	}
	return ln, err
}

// clear removes a socket that a dead process of ours left. The lock is held, so no
// living one of this program can be about to listen on it.
func (l *Listener) clear(path string) error {
	st, err := l.stat()
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return errs.Wrap(err, errs.Invalid, "socket %s", path)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid():
		return errs.New(errs.Invalid, "socket %s: something else, or somebody else's, is there", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return errs.New(errs.Conflict, "socket %s: another process serves it", path)
	} else if !errors.Is(err, unix.ECONNREFUSED) {
		return errs.Wrap(err, errs.Conflict, "socket %s", path)
	}
	return errs.Wrap(unix.Unlinkat(int(l.dir.Fd()), l.name, 0), errs.Invalid, "remove stale socket %s", path)
}

func (l *Listener) stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(l.dir.Fd()), l.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// Close stops listening. The socket's path is removed only when it is still this
// socket's: somebody may have moved it away and put a new one there.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.close.Do(func() {
		if st, e := l.stat(); e == nil && uint64(st.Dev) == l.dev && st.Ino == l.ino {
			unix.Unlinkat(int(l.dir.Fd()), l.name, 0)
		}
		err = l.UnixListener.Close()
		l.release()
	})
	return err
}

func (l *Listener) release() {
	for _, f := range []*os.File{l.lock, l.dir} {
		if f != nil {
			f.Close()
		}
	}
}

// openDir opens the directory of a socket when nobody else can swap what is in it.
func openDir(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "directory %s of a socket", path)
	}
	dir := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		dir.Close()
		return nil, errs.Wrap(err, errs.Invalid, "directory %s of a socket", path)
	}
	mode := st.Mode & 0o7777
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		err = errs.New(errs.Invalid, "directory %s of a socket: owned by uid %d", path, st.Uid)
	case mode&0o002 != 0 && mode&unix.S_ISVTX == 0:
		err = errs.New(errs.Invalid, "directory %s of a socket: others may write it (mode %04o)", path, mode)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// lockFile holds name in dir for this process alone.
func lockFile(dir *os.File, name, path string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "lock file of socket %s", path)
	}
	f := os.NewFile(uintptr(fd), path+".lock")
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid()) {
		err = errs.New(errs.Invalid, "lock file of socket %s: not a file of our own", path)
	}
	if err == nil {
		err = errs.Wrap(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), errs.Conflict, "socket %s: another process holds its lock", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
