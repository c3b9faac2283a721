package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// UpdateNodes changes the nodes that u names. It never repeats the request.
func (c *Client) UpdateNodes(ctx context.Context, cred model.Credential, u *model.NodeUpdate) error {
	return c.changeNodes(ctx, cred, message.RequestUpdateNode, u)
}

// CreateNode creates a node from a line of the configuration. It never repeats
// the request.
func (c *Client) CreateNode(ctx context.Context, cred model.Credential, line string) error {
	return c.changeNodes(ctx, cred, message.RequestCreateNode, &model.NodeUpdate{Extra: model.Text(line)})
}

// DeleteNodes deletes the nodes in a host list. It never repeats the request.
func (c *Client) DeleteNodes(ctx context.Context, cred model.Credential, names string) error {
	return c.changeNodes(ctx, cred, message.RequestDeleteNode, &model.NodeUpdate{Names: names})
}

func (c *Client) changeNodes(ctx context.Context, cred model.Credential, kind message.Type, u *model.NodeUpdate) error {
	return c.query(ctx, cred, request{kind: kind, body: &message.NodeUpdate{NodeUpdate: *u}}, message.ResponseRC, nil)
}

// Reconfigure makes the controllers reload their configuration. It never
// repeats the request.
func (c *Client) Reconfigure(ctx context.Context, cred model.Credential) error {
	return c.query(ctx, cred, request{kind: message.RequestReconfigure, body: message.Empty{}}, message.ResponseRC, nil)
}
