// Package inetd determines the client at standard input and output, if inetd or
// a similar program has started the gateway for one client.
package inetd

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/sockaddr"
	"schedrestd/ipc"
)

// Client describes the client at standard input and output, as the kernel
// identifies it.
type Client struct {
	ipc.Connection
	Unnamed bool // this end of the UNIX socket on standard input has no path

	in, out  int
	blocking bool // the socket on standard input was in blocking mode at the start
}

// NewClient determines the client at standard input and output. It reads
// nothing from standard input.
func NewClient(in, out *os.File) (*Client, error) {
	c := &Client{Connection: ipc.Connection{ID: 1, Network: ipc.Stdio, Listener: "stdin", UID: ipc.NoID, GID: ipc.NoID}, in: int(in.Fd()), out: int(out.Fd())}
	var i, o unix.Stat_t
	if err := unix.Fstat(c.in, &i); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "inspect standard input")
	}
	if err := unix.Fstat(c.out, &o); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "inspect standard output")
	}
	if i.Mode&unix.S_IFMT == unix.S_IFSOCK {
		if done, err := c.identifySocket(i.Dev == o.Dev && i.Ino == o.Ino); done || err != nil {
			return c, err
		}
	} else {
		c.identifyFile(i)
	}
	return c, nil
}

// identifySocket tries to use the socket on standard input as the client's
// connection, and reports whether it does. It does not use a socket pair that
// serves as a pipe. Some programs start others with two such pairs: one for
// input and one for output.
func (c *Client) identifySocket(sameSocket bool) (bool, error) {
	kind, err := unix.GetsockoptInt(c.in, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return false, errs.New(errs.Invalid, "standard input is a socket, but not a stream socket")
	}
	peer, err := syscall.Getpeername(c.in)
	if err != nil {
		return false, errs.New(errs.Invalid, "standard input is a socket that is not connected: %v", err)
	}
	if _, ok := peer.(*syscall.SockaddrUnix); ok {
		u, err := become.PeerFD(c.in)
		if err != nil {
			return false, err
		}
		c.UID, c.GID, c.PID, c.Verified = u.UID, u.GID, u.PID, u.Verify() == nil
		own, err := syscall.Getsockname(c.in)
		name, ok := own.(*syscall.SockaddrUnix)
		c.Unnamed = err != nil || !ok || name.Name == "" || name.Name == "@" // package syscall shows a socket without a name as "@"
		if c.Unnamed && !sameSocket {
			return false, nil
		}
		c.Network = ipc.Unix
	} else if at := sockaddr.AddrPort(peer); at.IsValid() {
		c.Network, c.Addr = ipc.TCP, at.String()
	} else {
		return false, errs.New(errs.Invalid, "standard input is a socket that is neither TCP nor UNIX")
	}
	if flags, err := unix.FcntlInt(uintptr(c.in), unix.F_GETFL, 0); err == nil {
		c.blocking = flags&unix.O_NONBLOCK == 0
	}
	return true, nil
}

// identifyFile identifies the client if standard input is a pipe, file or
// terminal. The client is the file's owner. The client is verified only if no
// other user can have written the input. So the file's mode must let only the
// owner write, and must give users outside the file's group no access.
//
// The group of a terminal may write to it, because programs of that group send
// messages to the terminal. These messages are output, and no program reads
// them as input. A terminal's group is usually not a group of its user. So if
// users start this program at their own terminal, the client's gid is the gid
// of this process.
func (c *Client) identifyFile(st unix.Stat_t) {
	c.Addr, c.UID, c.GID = "stdin", st.Uid, st.Gid
	othersMode := uint32(0o027)
	if isTerminal(c.in) {
		othersMode = 0o007
		if c.UID == uint32(os.Getuid()) {
			c.GID = uint32(os.Getgid())
		}
	}
	u := become.Ucred{UID: c.UID, GID: c.GID}
	c.Verified = st.Mode&othersMode == 0 && u.Verify() == nil
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return isTerminal(int(f.Fd())) }

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// Streams returns the message that passes the client to the dispatcher, and the
// descriptors to send with that message.
func (c *Client) Streams() (*ipc.StdioConnection, []int) {
	return &ipc.StdioConnection{Connection: c.Connection}, []int{c.in, c.out}
}

// RestoreBlocking makes the socket blocking again if it was blocking at the
// start, because other processes that share the socket may expect this.
func (c *Client) RestoreBlocking() {
	if c.blocking {
		_ = unix.SetNonblock(c.in, false)
	}
}
