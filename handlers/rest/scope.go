package rest

import (
	"fmt"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// checkScope returns an error if the listener of the connection does not permit
// the operation. The answer names the scope that the operation needs (RFC 6750,
// 3.1).
func (c *Call) checkScope() error {
	peer, _ := auth.PeerFrom(c.ctx)
	permitted, limited := c.server.Scopes[peer.Listener]
	if !limited || permitted.Permit(c.route.Scope) {
		return nil
	}
	c.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, c.route.Scope))
	return errs.New(errs.Denied, "this address of the gateway permits only %s, and the operation needs %s", permitted, c.route.Scope).
		WithHint("send the request to another address of the gateway")
}
