package auth

import "net/http"

// local implements rest_auth/local: the client must run as the user of this
// process. The client is at the other end of a UNIX socket. In inetd mode, it
// may also be at the other end of a pipe, file or terminal that no other user
// may open. The daemons see the uid of this process, so a client with any other
// uid, even root, would act under an identity that is not its own.
func local(r *http.Request, name string, opt Options) (Credential, error) {
	peer, ok := PeerFrom(r.Context())
	switch {
	case !ok || peer.Network != "unix" && peer.Network != "stdio":
		return Credential{}, refuse("no token, and the connection is not local")
	case !peer.Verified && peer.Network == "stdio":
		return Credential{}, refuse("standard input of uid %d and gid %d: other users can open it, or the ids belong to no user", peer.UID, peer.GID)
	case !peer.Verified:
		return Credential{}, refuse("the peer's uid %d and gid %d belong to no user", peer.UID, peer.GID)
	case peer.UID != opt.UID:
		return Credential{}, refuse("the peer's uid is %d, expected %d", peer.UID, opt.UID)
	case name != "" && (opt.User == nil || name != opt.User()):
		return Credential{}, refuse("the name header is not the peer's own name")
	}
	return Credential{Local: true, UID: peer.UID, GID: peer.GID}, nil
}
