// Package peer identifies the process at the other end of a net.Conn.
package peer

import (
	"fmt"
	"syscall"

	"schedrestd/become"
)

// BrokeredConn is a connection that another process, the broker, opened on
// behalf of this process. The broker's user namespace may have ids that are
// unknown in the user namespace of this process. So the broker may know which
// user runs the server at the other end of the connection, even if this process
// can't find out.
type BrokeredConn interface {
	Server() (uid uint32, known bool)
}

// Of returns the credentials of the process at the other end of the UNIX socket
// conn. If the uid is unknown in this user namespace and conn is a
// BrokeredConn, Of asks conn for the uid. It can't ask for the gid, which may
// remain become.Overflow.
func Of(conn syscall.Conn) (become.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return become.Ucred{}, fmt.Errorf("read peer credentials: %w", err)
	}
	var u become.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { u, credErr = become.PeerFD(int(fd)) }); err != nil {
		return become.Ucred{}, fmt.Errorf("read peer credentials: %w", err)
	}
	if brokered, ok := conn.(BrokeredConn); ok && credErr == nil && u.UID == become.Overflow {
		if uid, known := brokered.Server(); known {
			u.UID = uid
		}
	}
	return u, credErr
}
