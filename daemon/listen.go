package daemon

import (
	"errors"
	"io/fs"
	"net"
	"strconv"
	"time"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/socket"
)

// patience is for how long Listen tries.
const patience = 2 * time.Second

// Listen opens a TCP port, and the UNIX socket path unless that is "". The socket's
// directory belongs to root or to schedUser, whichever daemon opens it, so that both
// can have their sockets in one directory. schedUser gains nothing by owning it: clients
// accept that user's sockets, and both daemons do whatever that user asks for.
//
// It tries again what another process is in the way of. A daemon that is killed while it
// forks has a child for a moment, until that executes its own program, which still
// has all that was open: the port, and the lock beside the socket. Whoever restarts it
// at once must not fail for that.
func Listen(address string, port int, path string, mode fs.FileMode, schedUser uint32) ([]net.Listener, error) {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		listeners, err := listen(address, port, path, mode, schedUser)
		if err == nil || errs.KindOf(err) != errs.Conflict || time.Since(begun) > patience {
			return listeners, err
		}
	}
}

func listen(address string, port int, path string, mode fs.FileMode, schedUser uint32) ([]net.Listener, error) {
	address = net.JoinHostPort(address, strconv.Itoa(port))
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.Wrap(err, errs.Conflict, "listen on %s", address)
	}
	if path == "" {
		return []net.Listener{tcp}, nil
	}
	local, err := socket.Listen(path, socket.Options{Mode: mode, Private: become.PrivateGroup, Holder: schedUser})
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return []net.Listener{tcp, local}, nil
}

// Close closes listeners that are not served after all.
func Close(listeners []net.Listener) (err error) {
	for _, ln := range listeners {
		err = errors.Join(err, ln.Close())
	}
	return err
}
