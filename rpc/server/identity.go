package server

import (
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Identity is the user that a request comes from, according to a verified
// credential.
type Identity struct {
	UID, GID   uint32
	Name       string    // user name; "" if the kernel identified the user and the name was not looked up
	TokenUser  string    // the token's own user, if that user acts for Name; otherwise ""
	Expires    time.Time // expiry of the token; zero for never
	FromKernel bool      // the kernel identified the user on a UNIX socket, without a token
	Ticket     bool      // the token is the controller's ticket for recording jobs, and permits nothing else
}

// refused returns the error for a client whose credential is invalid. The
// client does not get the reason, which is only logged. As in Slurm, forged,
// expired and unknown credentials result in the same error number.
func refused(err error) *errs.Error {
	return &errs.Error{Kind: errs.Unauthenticated, Number: fault.Authentication,
		Message: "the credential is not accepted", Err: err}
}

// identify verifies a credential. Its errors never contain a token.
func (c *conn) identify(cred message.Credential) (Identity, error) {
	switch {
	case cred.Plugin == message.PluginNone && c.local:
		return c.kernelIdentity()
	case cred.Plugin == message.PluginNone:
		// On TCP c.peer is not set, so kernelIdentity would return the identity
		// of root.
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

// kernelIdentity returns the identity of the peer of a UNIX socket, for a
// request with auth/cred. It accepts group 0 only for root, and refuses ids
// that mean "unknown".
func (c *conn) kernelIdentity() (Identity, error) {
	if c.peer.UID != 0 {
		if err := c.peer.Verify(); err != nil {
			return Identity{}, refused(err)
		}
	}
	return Identity{UID: c.peer.UID, GID: c.peer.GID, FromKernel: true}, nil
}

// equal reports whether both identities are the same. It ignores the expiry of
// their tokens.
func (id Identity) equal(other Identity) bool {
	id.Expires, other.Expires = time.Time{}, time.Time{}
	return id == other
}

// peerName returns the peer's name for the log.
func (c *conn) peerName() string {
	if c.local {
		return nss.User{UID: c.peer.UID}.String()
	}
	return c.nc.RemoteAddr().String()
}
