package rest

import (
	"net"
	"net/netip"
	"os"
	"slices"

	"schedrestd/become/peer"
	"schedrestd/internal/errs"
	"schedrestd/internal/sockdiag/portowner"
)

// firstUser is the lowest uid that belongs to a person. Lower uids belong to
// services, which the administrator has installed.
const firstUser = 1000

// checkServerUser returns an error if the server at the other end of conn is on
// this machine and runs as a user who may not have the token. While the gateway
// is down, any user can bind its port and receive the tokens of all clients
// that connect. Root, system users, the user of this process and the users in
// trusted may have the token.
func checkServerUser(conn net.Conn, trusted []uint32) error {
	uid, isLocal, err := serverUID(conn)
	switch {
	case err != nil:
		return errs.Wrap(err, errs.Unavailable, "find the user that serves %s", conn.RemoteAddr())
	case !isLocal || uid < firstUser || uid == uint32(os.Geteuid()) || slices.Contains(trusted, uid):
		return nil
	}
	return errs.New(errs.Denied, "%s belongs to user %d, who is not root, a system user or you: the token was not sent",
		conn.RemoteAddr(), uid).
		WithHint("if the gateway runs as this user, add --server-user %d, or set SCHED_SERVER_USER", uid)
}

// serverUID returns the uid of the process at the other end of conn. If isLocal
// is false, that process is on another machine.
func serverUID(conn net.Conn) (uid uint32, isLocal bool, err error) {
	if u, ok := conn.(*net.UnixConn); ok {
		ucred, err := peer.Of(u)
		return ucred.UID, true, err
	}
	local, remote := addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
	if isLocal, err = portowner.IsLocal(remote.Addr()); err != nil || !isLocal {
		return 0, isLocal, err
	}
	uid, err = portowner.ServerUID(local, remote)
	return uid, true, err
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort()
	}
	return netip.AddrPort{}
}
