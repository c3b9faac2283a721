package privsep

import (
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// aboveStandard is the first descriptor that is not standard input, output or error: what is kept does not
// take the place of one of these that was closed.
const aboveStandard = 3

// standard is standard input and output with who is there.
type standard struct {
	ipc.Connection
	in, out  int
	file     *os.File // standard output when it is a regular file
	relay    int      // the worker's end of the pipe to it; -1: none
	blocking bool     // the socket on standard input was found so
	nameless bool     // this end of the socket on standard input has no path
}

// meet finds out what is at standard input and output. Nothing is read.
func meet(in, out *os.File) (*standard, error) {
	s := &standard{Connection: ipc.Connection{ID: 1, Network: ipc.Stdio, Listener: "stdin", UID: ipc.NoID, GID: ipc.NoID}, relay: -1}
	s.in, s.out = int(in.Fd()), int(out.Fd())
	var i, o unix.Stat_t
	if err := unix.Fstat(s.in, &i); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "look at standard input")
	}
	if err := unix.Fstat(s.out, &o); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "look at standard output")
	}
	if i.Mode&unix.S_IFMT == unix.S_IFSOCK {
		same := i.Dev == o.Dev && i.Ino == o.Ino
		if done, err := s.meetSocket(same); done || err != nil {
			return s, err
		}
	} else {
		s.owner(i)
	}
	if o.Mode&unix.S_IFMT == unix.S_IFREG {
		s.file = out
	}
	return s, nil
}

// meetSocket takes the socket on standard input for the client's connection, or reports
// false: programs that start others give them socket pairs in place of pipes, one for input and one
// for output.
func (s *standard) meetSocket(same bool) (bool, error) {
	kind, err := unix.GetsockoptInt(s.in, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return false, errs.New(errs.Invalid, "standard input is a socket, but not one of streams")
	}
	peer, err := unix.Getpeername(s.in)
	if err != nil {
		return false, errs.New(errs.Invalid, "standard input is a socket that is not connected: %v", err)
	}
	c := &s.Connection
	switch a := peer.(type) {
	case *unix.SockaddrInet4:
		c.Network, c.Addr = ipc.TCP, netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		c.Network, c.Addr = ipc.TCP, netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)).String()
	case *unix.SockaddrUnix:
		u, err := become.PeerFD(s.in)
		if err != nil {
			return false, err
		}
		c.UID, c.GID, c.PID, c.Vouched = u.UID, u.GID, u.PID, u.Vouch() == nil
		own, err := unix.Getsockname(s.in)
		name, ok := own.(*unix.SockaddrUnix)
		s.nameless = err != nil || !ok || name.Name == "" || name.Name == "@" // package unix shows one without a name as "@"
		if s.nameless && !same {
			return false, nil
		}
		c.Network = ipc.Unix
	default:
		return false, errs.New(errs.Invalid, "standard input is a socket that is neither TCP nor UNIX")
	}
	if flags, err := unix.FcntlInt(uintptr(s.in), unix.F_GETFL, 0); err == nil {
		s.blocking = flags&unix.O_NONBLOCK == 0
	}
	return true, nil
}

// owner takes the owner of a pipe, file or terminal for the client, when nobody else can have
// written what is read: others may not open it, nor its group write it. The group of a terminal is for
// those that write messages on it, which nobody reads; a person who starts us at his own has our group.
func (s *standard) owner(st unix.Stat_t) {
	s.Addr, s.UID, s.GID = "stdin", st.Uid, st.Gid
	strangers := uint32(0o027)
	if isTerminal(s.in) {
		strangers = 0o007
		if s.UID == uint32(os.Getuid()) {
			s.GID = uint32(os.Getgid())
		}
	}
	u := become.Ucred{UID: s.UID, GID: s.GID}
	s.Vouched = st.Mode&strangers == 0 && u.Vouch() == nil
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return isTerminal(int(f.Fd())) }

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// output is the descriptor that answers go to. A worker may write no file, whatever it is: then
// it gets a pipe, and what comes out is copied. copied gets the end of that.
func (s *standard) output() (fd int, copied chan error, err error) {
	if s.file == nil {
		return s.out, nil, nil
	}
	from, to, err := spawn.Pipe()
	if err != nil {
		return -1, nil, err
	}
	s.relay, copied = to, make(chan error, 1)
	go func() {
		_, err := io.Copy(s.file, from)
		from.Close() // the worker sees that nobody reads any more
		copied <- err
	}()
	return to, copied, nil
}

// taken closes the parent's copy of what the worker has: the pipe would have no end.
func (s *standard) taken() {
	if s.relay >= 0 {
		unix.Close(s.relay)
		s.relay = -1
	}
}

// leave makes a socket as it was found: whoever shares it may not expect it to be non-blocking.
func (s *standard) leave() {
	if s.blocking {
		_ = unix.SetNonblock(s.in, false)
	}
}
