// Package netns opens and enters network namespaces that the administrator
// names. It enters them with package netns of vishvananda. It does not open them
// with that package, which does not check who could replace a namespace.
package netns

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/thread"
)

// Namespace is an open network namespace. It stays open even if its name is
// changed or removed. A nil Namespace stands for the namespace in which the
// process was started.
type Namespace struct {
	handle  netns.NsHandle
	setting string // for messages
}

// Open opens the network namespace that text names. The text argument is a
// path, or a name as in ip-netns(8). If it is "", Open returns nil. The
// argument variable is the name of the setting, for errors.
//
// The namespace determines which clients can connect and which daemons receive
// tokens. So Open refuses a directory in which other users could replace the
// namespace.
func Open(variable, text string) (*Namespace, error) {
	if text == "" {
		return nil, nil
	}
	setting := variable + "=" + text
	path := text
	if !filepath.IsAbs(path) {
		path = filepath.Join("/run/netns", text)
	}
	missing := errs.New(errs.NotFound, "%s: no network namespace %s", setting, path).
		WithHint("ip netns list shows the existing ones; ip netns add NAME creates one")
	dir, _, name, err := guard.Parent(path, guard.Rule{Label: setting + ": network namespace", Trust: &guard.Trust{Owners: []uint32{uint32(os.Geteuid())}, PrivateGroup: become.PrivateGroup}})
	if errs.KindOf(err) == errs.NotFound {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// Open follows links, because the namespaces in /proc are links.
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, missing
	case err != nil:
		return nil, errs.New(errs.Denied, "%s: open %s: %v", setting, path, err).
			WithHint("opening the namespace of another process needs root with CAP_SYS_PTRACE; after ip netns attach NAME PID, root can open it by that name")
	}
	return &Namespace{netns.NsHandle(fd), setting}, nil
}

// Close closes s, which may be nil.
func (s *Namespace) Close() {
	if s != nil {
		s.handle.Close()
	}
}

// String returns the setting that named the namespace, in the form NAME=VALUE.
func (s *Namespace) String() string { return s.setting }

// Do calls f on a thread in the namespace s.
func (s *Namespace) Do(f func() error) error {
	if s == nil {
		return f()
	}
	t, err := thread.Start(s.Enter)
	if err == nil {
		t.Do(func() { err = f() })
		t.Stop()
	}
	return err
}

// Enter moves the calling thread into the namespace s. Enter needs no privilege
// if the thread is already in s.
func (s *Namespace) Enter() error {
	var current, target unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &current) == nil && unix.Fstat(int(s.handle), &target) == nil && current.Dev == target.Dev && current.Ino == target.Ino {
		return nil
	}
	err := netns.Set(s.handle)
	switch {
	case errors.Is(err, unix.EINVAL):
		return errs.New(errs.Invalid, "%s is not a network namespace", s.setting).
			WithHint("use a name that ip netns list shows, or a path such as /run/netns/NAME or /proc/PID/ns/net")
	case errors.Is(err, unix.EPERM):
		return errs.New(errs.Denied, "%s: entering another network namespace needs root with CAP_SYS_ADMIN", s.setting).
			WithHint("start as root with -u USER, or use NetworkNamespacePath= in the units of the service and its sockets")
	}
	return errs.Wrap(err, errs.Internal, "enter %s", s.setting)
}
