package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/internal/sockdiag/portowner"
	"schedrestd/internal/socket"
	"schedrestd/internal/socket/listener"
)

// bindTimeout limits how long Listen retries.
const bindTimeout = 2 * time.Second

// A Socket is the UNIX socket on which a daemon listens.
type Socket struct {
	Path     string // "": none
	Default  string // if this is Path, and the socket is not Required, the daemon may have to do without it
	Mode     fs.FileMode
	DirOwner uint32 // SchedUser
	Required bool   // no client could authenticate without it, or root has started the daemon
}

// MakeDirectory makes the directory of a socket that has the default path, if
// root starts the daemon. The directory /run is empty after each boot of the
// machine. The owner is the user who opens the socket.
func MakeDirectory(path, standard string, owner nss.User) error {
	if path != standard || os.Geteuid() != 0 {
		return nil
	}
	dir := filepath.Dir(path) // only root can write to the directory above it
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		var stat unix.Stat_t
		if err = unix.Lstat(dir, &stat); err == nil && (stat.Mode&unix.S_IFMT != unix.S_IFDIR || stat.Uid != 0) {
			return nil // whether the socket can be there is checked later
		}
	}
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.Lchown(dir, int(owner.UID), int(owner.GID)))
	}
	return errs.Wrap(err, errs.Denied, "make the directory of the socket %s", path)
}

// Listen opens a TCP port and, unless its path is "", the UNIX socket s. The
// socket's directory must belong to root or to SchedUser, so that both daemons
// can share it. This gives SchedUser no additional rights: clients accept that
// user's sockets anyway, and that user has unrestricted access to both daemons.
//
// If the service manager has passed a TCP or a UNIX socket, Listen uses the
// passed socket instead of binding a new one. The passed socket must match the
// configuration. No other program can bind the port of a passed TCP socket,
// even while the daemon restarts.
//
// If another process uses an address, Listen tries again for a short time. The
// reason is that a daemon may be killed while it forks. Its child then holds
// the port and the socket's lock file until the child executes its program.
// This child must not make an immediate restart of the daemon fail.
func Listen(address string, port int, s Socket, log *slog.Logger) ([]net.Listener, error) {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		listeners, err := listen(address, port, s, log)
		if err == nil || errs.KindOf(err) != errs.Conflict || time.Since(start) > bindTimeout {
			return listeners, err
		}
	}
}

func listen(address string, port int, s Socket, log *slog.Logger) (list []net.Listener, err error) {
	o := socket.Options{Mode: s.Mode, PrivateGroup: nss.PrivateGroup, DirOwner: s.DirOwner}
	defer func() {
		if err != nil {
			err = errors.Join(err, Close(list))
			list = nil
		}
	}()
	address = net.JoinHostPort(address, strconv.Itoa(port))
	if list, err = passedListeners(address, s.Path, o); err != nil {
		return list, err
	}
	if !hasNetwork(list, "tcp") {
		tcpListener, err := net.Listen(tcpNetwork(address), address)
		if err != nil {
			return list, explainBind(err, address)
		}
		list = append(list, tcpListener)
	}
	if s.Path != "" && !hasNetwork(list, "unix") {
		unixListener, err := listener.Listen(s.Path, o)
		if err != nil && s.Path == s.Default && !s.Required && errs.KindOf(err) != errs.Conflict {
			log.Warn("no UNIX socket: clients need tokens", "error", err, "hint", "set AuthInfo=socket=PATH to a path in a directory of this user")
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, unixListener)
	}
	return list, nil
}

// tcpNetwork returns the network of an address for package net. For 0.0.0.0 this
// is IPv4 only: with "tcp", package net would listen on IPv6, too.
func tcpNetwork(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr() == netip.IPv4Unspecified() {
		return "tcp4"
	}
	return "tcp"
}

// hasNetwork reports whether list contains a listener for the given network,
// "tcp" or "unix".
func hasNetwork(list []net.Listener, network string) bool {
	return slices.ContainsFunc(list, func(ln net.Listener) bool { return ln.Addr().Network() == network })
}

// explainBind returns an error that explains why a bind failed. If another
// program uses the port, that program receives the requests of the daemon's
// clients, including their tokens. So the error names the user who runs that
// program.
func explainBind(err error, address string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return errs.Wrap(err, errs.Invalid, "listen on %s", address)
	}
	owner := "another program"
	if opErr, ok := errors.AsType[*net.OpError](err); ok {
		if tcp, ok := opErr.Addr.(*net.TCPAddr); ok {
			if uid, err := listenerUID(tcp.AddrPort()); err == nil {
				owner = describeUID(uid)
			}
		}
	}
	_, port, _ := net.SplitHostPort(address)
	return errs.New(errs.Conflict, "listen on %s: the port is in use by %s", address, owner).
		WithHint("stop that program, which may have received tokens of clients: ss -ltnp 'sport = :%s' shows it", port)
}

// listenerUID returns the uid of the process that listens on the given address
// and port. If the address is unspecified and no process listens on it,
// listenerUID looks for a process that listens on a loopback address.
func listenerUID(addr netip.AddrPort) (uid uint32, err error) {
	uid, err = portowner.ListenerUID(netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()))
	if err == nil || !addr.Addr().IsUnspecified() {
		return uid, err
	}
	for _, ip := range []netip.Addr{netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if uid, err = portowner.ListenerUID(netip.AddrPortFrom(ip, addr.Port())); err == nil {
			break
		}
	}
	return uid, err
}

// describeUID returns a string that contains the uid. If the user has a name,
// the string contains the name, too.
func describeUID(uid uint32) string {
	if u, err := nss.LookupUID(uid); err == nil && u.Name != "" {
		return "user " + u.Name + " (uid " + strconv.Itoa(int(uid)) + ")"
	}
	return "uid " + strconv.Itoa(int(uid))
}

// Close closes listeners that will not be served.
func Close(listeners []net.Listener) (err error) {
	for _, ln := range listeners {
		err = errors.Join(err, ln.Close())
	}
	return err
}
