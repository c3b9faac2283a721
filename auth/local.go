package auth

import (
	"net/http"

	"schedrestd/internal/errs"
)

// local implements rest_auth/local: it accepts only clients that run as the
// same user as this process. A client connects through a UNIX socket. In inetd
// mode, standard input can also be a pipe, a file or a terminal, provided that
// no other user can open it. The daemons see only the uid of this process. If
// local accepted a client with another uid, even root, the client would act as
// this process's user.
func local(r *http.Request, name string, opt Options) (Credential, error) {
	peer, ok := PeerFrom(r.Context())
	switch {
	case !ok || peer.Network != "unix" && peer.Network != "stdio":
		return Credential{}, refuse("no token, and the connection is not local")
	case !peer.Verified && peer.Network == "stdio":
		return Credential{}, refuse("standard input of uid %d and gid %d: other users can open it, or the ids belong to no user", peer.UID, peer.GID)
	case peer.UID != opt.UID:
		return Credential{}, refuse("no token, and the peer's uid is %d, expected %d", peer.UID, opt.UID)
	case !peer.Verified:
		return Credential{}, refuse("no token, and the group of the peer's uid %d and gid %d is 0, or the ids belong to no user", peer.UID, peer.GID)
	case name != "" && (opt.User == nil || name != opt.User()):
		return Credential{}, refuse("the name header is not the peer's own name")
	case foreignSign(r) != "":
		return Credential{}, refuse("a web page of another server needs a token")
	case !hasFixedHost(r, opt.Hosts):
		return Credential{}, errs.New(errs.Denied, "a request without a token must not have the Host %.100q, which can stand for any server", r.Host).
			WithHint("use http://localhost, or list the name in SCHEDRESTD_HOSTS")
	}
	return Credential{Local: true, UID: peer.UID, GID: peer.GID}, nil
}
