package auth

import (
	"net/http"
	"strings"
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
	case !isFromOwnPage(r):
		return Credential{}, refuse("a web page of another server needs a token")
	}
	return Credential{Local: true, UID: peer.UID, GID: peer.GID}, nil
}

// isFromOwnPage reports whether a program sent r, or a web page of this gateway.
// A browser can reach a UNIX socket only through a program that forwards
// connections to it (such as ssh -L). A page of another server would act as the
// user of that program. The rules of browsers for such pages (CORS) only keep
// the answer secret: any page may send a request whose body has no type, and any
// address may be that of an image.
//
// Browsers say where a request comes from (Fetch Metadata), and old ones at least
// name the page's origin in requests that are not for an image or the like. A
// proxy may have replaced Host, so Origin is compared with it only if there is
// nothing else.
func isFromOwnPage(r *http.Request) bool {
	if site := r.Header["Sec-Fetch-Site"]; len(site) > 0 {
		return len(site) == 1 && (site[0] == "same-origin" || site[0] == "none")
	}
	origin := r.Header["Origin"]
	if len(origin) == 0 {
		return true
	}
	_, host, _ := strings.Cut(origin[0], "://")
	return len(origin) == 1 && host != "" && strings.EqualFold(host, r.Host)
}
