package inetd

import (
	"fmt"
	"os"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/security"
)

// ServeAs returns the identity of the worker: the one of a gateway that listens, or
// the peer's with become_user. refused is why the peer may not be served; it gets
// an answer, and the service has not failed.
func (c *Client) ServeAs(o identity.Options) (who identity.Service, refused, err error) {
	if !o.Switches.BecomeUser {
		who, err = identity.Determine(o)
		return who, nil, err
	}
	who = identity.Service{Root: os.Geteuid() == 0}
	switch {
	case !who.Root || o.JWT: // schedrestd-config has rejected both with the details
		return who, nil, errs.New(errs.Invalid, "become_user needs root, and rest_auth/local alone")
	case c.Network != ipc.Unix:
		return who, nil, errs.New(errs.Invalid, "become_user needs a connected UNIX socket on standard input: only there the kernel says who the client is")
	case c.Nameless:
		// For a connection that was made from here the kernel names the process
		// that listens at the other end. A user who starts this program could
		// be served as the owner of any service that echoes its input.
		return who, nil, errs.New(errs.Invalid, "become_user needs a connection that was accepted at a UNIX socket with a path, as a service manager or inetd passes it")
	}
	who.Identity = security.Identity{Name: fmt.Sprintf("uid %d", c.UID), UID: c.UID, GID: c.GID}
	who.Protect(o.Service)
	if o.Switches.DisableUserCheck {
		return who, nil, nil
	}
	refused = security.CheckIdentity(who.Identity, identity.ProtectedAccounts(o.Service)...)
	if refused == nil && !c.Verified {
		refused = errs.New(errs.Denied, "the peer's uid %d and gid %d stand for no user", c.UID, c.GID)
	}
	if refused != nil {
		c.Refuse = 403
	}
	return who, refused, nil
}
