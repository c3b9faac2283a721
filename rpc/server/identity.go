package server

import (
	"time"

	"schedrestd/become/nss"
	"schedrestd/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Identity is who a request counts as, after its credential was judged.
type Identity struct {
	UID, GID uint32
	Name     string    // user name; "" when only the kernel vouches and nobody asked NSS
	By       string    // the token's own user, when he acts for Name; else ""
	Expires  time.Time // of the token; zero: never
	Kernel   bool      // vouched for by the kernel on a UNIX socket, not by a token
}

// refused is all that a peer is told about a credential that is not good: why is
// for the log. Slurm tells one number for a forged, an expired and an unknown one too.
func refused(err error) *errs.Error {
	return &errs.Error{Kind: errs.Unauthenticated, Number: fault.Authentication,
		Message: "the credential is not accepted", Err: err}
}

// identify judges a credential. It never returns an error that holds a token.
func (c *conn) identify(cred message.Credential) (Identity, error) {
	switch {
	case cred.Plugin == message.PluginNone && c.local:
		return c.kernel()
	case cred.Plugin == message.PluginNone:
		// Anybody who reaches the port could send it and be whom he likes.
		return Identity{}, refused(errs.New(errs.Denied, "auth/cred on %s", c.nc.LocalAddr().Network()))
	case cred.Plugin == message.PluginJWT && c.server.Verify != nil && cred.Token != "":
		id, err := c.server.Verify(cred.Token, cred.ActAs)
		if errs.KindOf(err) == errs.Unavailable {
			return Identity{}, err
		}
		if err != nil {
			return Identity{}, refused(err)
		}
		return id, nil
	}
	return Identity{}, refused(errs.New(errs.Unsupported, "authentication plugin %d", cred.Plugin))
}

// kernel is the identity of auth/cred: the peer of a UNIX socket. Root is itself
// here, group 0 and all; for everybody else group 0 and the ids that stand for
// "unknown" are refused.
func (c *conn) kernel() (Identity, error) {
	if c.peer.UID != 0 {
		if err := c.peer.Vouch(); err != nil {
			return Identity{}, refused(err)
		}
	}
	return Identity{UID: c.peer.UID, GID: c.peer.GID, Kernel: true}, nil
}

// same tells whether both are one, whenever their tokens end: that is Verify's to judge.
func (id Identity) same(other Identity) bool {
	id.Expires, other.Expires = time.Time{}, time.Time{}
	return id == other
}

// peerName is the peer for logs.
func (c *conn) peerName() string {
	if c.local {
		return nss.User{UID: c.peer.UID}.String()
	}
	return c.nc.RemoteAddr().String()
}
