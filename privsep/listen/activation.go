package listen

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/notify"
	"schedrestd/ipc"
)

// nameTLS is the name of a passed socket that is for TLS. The administrator
// sets this name with FileDescriptorName=https in the socket unit.
const nameTLS = "https"

// Activated returns the listening sockets that this process was started with.
// The sockets of a service manager come first (LISTEN_FDS, sd_listen_fds(3)).
// If standard input is a listening socket, as in the "wait" mode of inetd, it
// comes last. If there are no such sockets, Activated returns an empty list and
// no error.
//
// Call Activated once, before anything else. It removes the variables of the
// service manager from the environment, so that no child uses them. Package
// notify keeps the values that it needs. If standard input is a listening
// socket, Activated replaces descriptor 0 with /dev/null.
func Activated() ([]*os.File, error) {
	notify.ClearEnv()
	files, err := notify.Sockets()
	if err != nil || !notify.IsListening(0) {
		return files, errs.Wrap(err, errs.Invalid, "take over the sockets of the service manager")
	}
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "duplicate the listening socket on standard input")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "close standard input")
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "close standard input")
	}
	return append(files, os.NewFile(uintptr(fd), "stdin")), nil
}

// adopt makes a listener from f, a socket that this process was started with.
// It asks the kernel, not the environment, what kind of socket f is. The socket
// belongs to the service manager. So if it is a UNIX socket, the gateway
// neither changes its mode nor removes its file.
func adopt(f *os.File) (*Listener, error) {
	desc := "the socket that was passed"
	if f.Name() != "" {
		desc += " as " + strconv.Quote(f.Name())
	}
	fd := int(f.Fd())
	if !notify.IsListening(fd) {
		return nil, errs.New(errs.Invalid, "%s is not a listening stream socket", desc).
			WithHint("use a socket unit with ListenStream= and Accept=no; or, for one process per connection, use StandardInput=socket")
	}
	l := &Listener{Listening: ipc.Listening{TLS: f.Name() == nameTLS}}
	local, err := syscall.Getsockname(fd)
	switch a := local.(type) {
	case *syscall.SockaddrInet4, *syscall.SockaddrInet6:
		l.Network, l.Name = ipc.TCP, nameTCP(a, "")
	case *syscall.SockaddrUnix:
		fdpass.Refuse(fd)
		if l.Network, l.Name = ipc.Unix, "unix:"+a.Name; a.Name == "" || a.Name[0] == '@' {
			// An abstract socket has no owner, mode or directory. While its
			// name is free, any user can bind it and accept connections that
			// are meant for the gateway.
			return nil, errs.New(errs.Invalid, "%s is an abstract UNIX socket", desc).
				WithHint("use a path, such as ListenStream=/run/schedrestd/socket")
		}
	default:
		return nil, errs.New(errs.Invalid, "%s is neither TCP nor UNIX: %v", desc, err)
	}
	if l.TLS && l.Network == ipc.Unix {
		return nil, errs.New(errs.Invalid, "%s is a UNIX socket, but TLS needs TCP", desc)
	}
	// Other processes may share this listening socket. If one of them takes a
	// connection first, Accept must not block.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "take over %s", desc)
	}
	dupFD, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "take over %s", desc)
	}
	f.Close()
	return l.setFile(os.NewFile(uintptr(dupFD), l.Name))
}
