// Package netns opens network namespaces that the administrator has named, and
// runs functions in them: once, or on a thread that stays there.
package netns

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/privsep/thread"
	"schedrestd/sockdiag"
)

// Namespace is a network namespace that was named by the administrator, held open: what happens to its name
// afterwards changes nothing. nil is the namespace that the gateway was started in.
type Namespace struct {
	handle netns.NsHandle
	What   string // for messages
}

// Open opens the namespace that variable names: by a name of ip-netns(8), or a path. "" is nil. A directory in which
// others could put another namespace is refused: with it goes who can connect, and who is given tokens.
func Open(variable, text string) (*Namespace, error) {
	if text == "" {
		return nil, nil
	}
	what := variable + "=" + text
	path := text
	if !filepath.IsAbs(path) {
		path = filepath.Join("/run/netns", text)
	}
	missing := func() error {
		return errs.New(errs.NotFound, "%s: there is no network namespace %s", what, path).
			WithHint("ip netns list shows those that have a name; ip netns add NAME makes one")
	}
	trust := guard.Trust{Owners: []uint32{uint32(os.Geteuid())}, Private: become.PrivateGroup}
	dir, _, name, err := guard.Parent(path, guard.Rule{What: what + ": network namespace", Trust: &trust})
	if errs.KindOf(err) == errs.NotFound {
		return nil, missing()
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := openIn(dir, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, missing()
	case err != nil:
		return nil, errs.New(errs.Denied, "%s: can't open %s: %v", what, path, err).
			WithHint("those of another process take root with CAP_SYS_PTRACE; ip netns attach NAME PID gives one a name that root alone opens")
	}
	if !isNetwork(fd) {
		unix.Close(fd)
		return nil, errs.New(errs.Invalid, "%s: %s is not a network namespace", what, path).
			WithHint("a name that ip netns list shows, or a path as /run/netns/NAME or /proc/PID/ns/net")
	}
	return &Namespace{netns.NsHandle(fd), what}, nil
}

// openIn opens name in dir. A link is followed: those of /proc are how namespaces are named there.
func openIn(dir *os.File, name string) (fd int, err error) {
	raw, err := dir.SyscallConn()
	if err != nil {
		return -1, err
	}
	failed := raw.Control(func(at uintptr) {
		fd, err = unix.Openat(int(at), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	return fd, errors.Join(failed, err)
}

// isNetwork tells whether fd is a network namespace.
func isNetwork(fd int) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.NSFS_MAGIC {
		return false
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	return err == nil && kind == unix.CLONE_NEWNET
}

func (s *Namespace) Close() {
	if s != nil {
		s.handle.Close()
	}
}

// Inside calls do on a thread that is in s. A thread that can't be brought back is thrown away.
func (s *Namespace) Inside(do func() error) error {
	if s == nil {
		return do()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		own, err := netns.Get()
		if err != nil {
			done <- errs.Wrap(err, errs.Internal, "%s: find the way back from it", s.What)
			return
		}
		defer own.Close()
		if err = s.enter(); err == nil {
			err = do()
		}
		if netns.Set(own) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// enter moves the calling thread into s. Who is in it already needs no right to.
func (s *Namespace) enter() error {
	if here, err := netns.Get(); err == nil {
		defer here.Close()
		if here.Equal(s.handle) {
			return nil
		}
	}
	err := netns.Set(s.handle)
	if errors.Is(err, unix.EPERM) {
		return errs.New(errs.Denied, "%s: to enter another network namespace takes root with CAP_SYS_ADMIN", s.What).
			WithHint("start as root with -u USER, or have the service manager do it: NetworkNamespacePath= in the unit of the service, and of its sockets")
	}
	return errs.Wrap(err, errs.Internal, "%s: enter it", s.What)
}

// Dialer is where TCP connections to daemons begin: a thread that stays in another network namespace, which nobody can
// enter any more when the gateway serves. nil: they begin where the gateway was started.
type Dialer struct {
	jobs chan func()
	over chan struct{}
}

// NewDialer starts the thread of the namespace that text names. "" is nil.
func NewDialer(text string) (*Dialer, error) {
	s, err := Open("SCHEDRESTD_CONTROLLER_NETNS", text)
	if s == nil || err != nil {
		return nil, err
	}
	defer s.Close()
	o := &Dialer{make(chan func()), make(chan struct{})}
	ready := make(chan error)
	go thread.Locked(func() {
		err := s.enter()
		ready <- err
		for err == nil {
			select {
			case job := <-o.jobs:
				job()
			case <-o.over:
				return
			}
		}
	})
	if err := <-ready; err != nil {
		return nil, err
	}
	return o, nil
}

// Do does job there.
func (o *Dialer) Do(job func() error) (err error) {
	if o == nil {
		return job()
	}
	done := make(chan struct{})
	select {
	case o.jobs <- func() { err = job(); close(done) }:
		<-done
		return err
	case <-o.over:
		return unix.ENETDOWN
	}
}

// WarnUnknownOwners warns when the owners of sockets can't be found out there, and so no daemon can be asked over TCP.
func (o *Dialer) WarnUnknownOwners(log *slog.Logger) {
	err := o.Do(func() error {
		_, err := sockdiag.Listener(netip.AddrPortFrom(netip.IPv6Loopback(), 1))
		return err
	})
	if err != nil && !errors.Is(err, sockdiag.ErrUnknown) {
		log.Warn("daemons can't be asked over TCP: the kernel does not tell who serves a port of this machine", "error", err,
			"hint", "allow AF_NETLINK, in RestrictAddressFamilies= of the unit")
	}
}

// Stop ends the thread.
func (o *Dialer) Stop() {
	if o != nil {
		close(o.over)
	}
}
