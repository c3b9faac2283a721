package auth

import "net/http"

// local implements rest_auth/local: it accepts a client that runs as the same
// user as this process. The client is connected by a UNIX socket. In inetd
// mode, standard input may also be a pipe, file or terminal that no other user
// may open. The daemons see the uid of this process. So a client with another
// uid, even root, would act as a user that it is not.
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
