package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Stats returns the controller's statistics.
func (c *Client) Stats(ctx context.Context, cred model.Credential) (*model.ControllerStats, error) {
	var answer message.ControllerStats
	req := message.StatsRequest{Command: message.StatsGet}
	err := c.query(ctx, cred, request{kind: message.RequestStats, body: &req, repeatable: true}, message.ResponseStats, &answer)
	if err != nil {
		return nil, err
	}
	return &answer.ControllerStats, nil
}
