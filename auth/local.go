package auth

import "net/http"

// overflow is the id that the kernel shows for one it can't express in this user namespace: nobody in particular.
const overflow = 65534

// local is rest_auth/local: the client at the other end of a UNIX socket is this
// process's own user. The daemons behind see this process's uid, so that to serve
// anybody else (root too) would be to lend them an identity that is not theirs.
func local(r *http.Request, name string, opt Options) (Credential, error) {
	peer, ok := PeerFrom(r.Context())
	switch {
	case !ok || peer.Network != "unix":
		return Credential{}, refuse("no token, and not a local connection")
	case invalid(peer.UID) || invalid(peer.GID) || peer.GID == 0:
		return Credential{}, refuse("the peer's uid %d or gid %d can't be served", peer.UID, peer.GID)
	case peer.UID != opt.UID:
		return Credential{}, refuse("the peer's uid is %d, ours %d", peer.UID, opt.UID)
	case name != "" && name != opt.User:
		return Credential{}, refuse("the name header is not the peer's own name")
	}
	return Credential{Local: true, UID: peer.UID, GID: peer.GID}, nil
}

func invalid(id uint32) bool { return id == overflow || id == ^uint32(0) }
