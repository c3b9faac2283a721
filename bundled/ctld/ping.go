package ctld

import (
	"context"

	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handlePing answers every client that has a valid credential. Gateways also
// send pings to verify tokens.
func (c *Controller) handlePing(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(message.Empty{}); err != nil {
		return 0, nil, err
	}
	return success()
}
