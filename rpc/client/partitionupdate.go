package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// CreatePartition creates a partition. It never repeats the request.
func (c *Client) CreatePartition(ctx context.Context, cred model.Credential, u *model.PartitionUpdate) error {
	return c.changePartition(ctx, cred, message.RequestCreatePartition, u)
}

// UpdatePartition changes the partition that u names. It changes only the
// fields that are set in u. It never repeats the request.
func (c *Client) UpdatePartition(ctx context.Context, cred model.Credential, u *model.PartitionUpdate) error {
	return c.changePartition(ctx, cred, message.RequestUpdatePartition, u)
}

func (c *Client) changePartition(ctx context.Context, cred model.Credential, kind message.Type, u *model.PartitionUpdate) error {
	return c.query(ctx, cred, request{kind: kind, body: &message.PartitionUpdate{PartitionUpdate: *u}}, message.ResponseRC, nil)
}

// DeletePartition deletes the partition with that name. It never repeats the
// request.
func (c *Client) DeletePartition(ctx context.Context, cred model.Credential, name string) error {
	r := request{kind: message.RequestDeletePartition, body: &message.PartitionName{Name: name}}
	return c.query(ctx, cred, r, message.ResponseRC, nil)
}
