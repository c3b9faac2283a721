package ctld

import (
	"context"

	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handlePing answers that the controller is there. Whoever has a good credential may ask: it is
// also how a gateway has a token vouched for.
func (c *Controller) handlePing(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(message.Empty{}); err != nil {
		return 0, nil, err
	}
	return done()
}
