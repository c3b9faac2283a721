package inetd

import (
	"fmt"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/security"
)

// ServeAs returns the identity of the worker. With become_user this is the
// client's identity, and a gateway that listens would refuse the same clients.
// Otherwise it is the same identity as for a gateway that listens. If the client
// must be refused, refusal is the reason, and the gateway answers the client
// with 403. If the gateway can't serve at all, err is the reason.
func (c *Client) ServeAs(p *ipc.PackedPlan) (service identity.Service, refusal string, err error) {
	if service, err = identity.Determine(p); err != nil || !p.Switches.BecomeUser {
		return service, "", err
	}
	switch {
	case c.Network != ipc.Unix:
		return service, "", errs.New(errs.Invalid, "become_user needs a connected UNIX socket on standard input, on which the kernel identifies the client")
	case c.Unnamed:
		// A socket without a path is usually the end that connected. So the
		// peer that the kernel reports is a service, not a client. If such a
		// socket were accepted, a user could connect to a service that echoes
		// its input, start this program on that connection, and be served as
		// the service's user.
		return service, "", errs.New(errs.Invalid, "become_user needs a connection accepted on a UNIX socket with a path, as a service manager or inetd passes it")
	}
	service.Identity = security.Identity{Name: fmt.Sprintf("uid %d", c.UID), UID: c.UID, GID: c.GID}
	if refusal = service.RefusalReason(c.Connection, p.Switches.DisableUserCheck); refusal != "" {
		c.RefuseStatus = 403
	}
	return service, refusal, nil
}
