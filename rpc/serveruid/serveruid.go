// Package serveruid finds out which user runs the server at the other end of a
// connection, so that a program of another user on this machine gets no token.
package serveruid

import (
	"fmt"
	"net"
	"syscall"

	"schedrestd/become/peer"
	"schedrestd/internal/sockdiag/portowner"
)

// Of returns the uid of the process that serves nc. If that process is on another
// machine, Of returns false for known.
func Of(nc net.Conn) (uid uint32, known bool, err error) {
	if nc.RemoteAddr().Network() == "unix" {
		sc, ok := nc.(syscall.Conn)
		if !ok {
			return 0, false, fmt.Errorf("%T: the kernel can't identify the peer", nc)
		}
		peer, err := peer.Of(sc)
		return peer.UID, true, err
	}
	if conn, ok := nc.(peer.BrokeredConn); ok {
		uid, known = conn.Server()
		return uid, known, nil
	}
	local, ok := nc.LocalAddr().(*net.TCPAddr)
	remote, remoteOK := nc.RemoteAddr().(*net.TCPAddr)
	if !ok || !remoteOK {
		return 0, false, fmt.Errorf("%T: the kernel can't identify the peer", nc)
	}
	if isLocal, err := portowner.IsLocal(remote.AddrPort().Addr()); err != nil || !isLocal {
		return 0, false, err
	}
	uid, err = portowner.ServerUID(local.AddrPort(), remote.AddrPort())
	return uid, true, err
}
