package client

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Partitions calls each(p) for every partition p, under the same rules as
// Nodes.
func (c *Client) Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (lastUpdate model.Time, err error) {
	answer := message.PartitionInfo{Partitions: codec.Stream[model.Partition]{Each: wrapCallback(each), Digest: q.Digest}}
	r := datedList(message.RequestPartitionInfo, q, func(since model.Time) message.Body {
		return &message.PartitionInfoRequest{LastUpdate: since, ShowFlags: uint16(q.Flags)}
	})
	err = c.query(ctx, cred, r, message.ResponsePartitionInfo, &answer)
	return answer.LastUpdate, err
}

// Partition returns the partition with that name, or errs.NotFound. It requests
// all partitions, because the protocol has no request for a single one.
func (c *Client) Partition(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error) {
	nameOf := func(p *model.Partition) string { return p.Name }
	missing := errs.New(errs.NotFound, "there is no partition %q", name).WithNumber(fault.InvalidPartition)
	return findByName(name, nameOf, missing, func(each func(*model.Partition) error) (model.Time, error) {
		return c.Partitions(ctx, cred, q, each)
	})
}
