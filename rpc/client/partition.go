package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Partitions gives each partition to each, as Nodes does.
func (c *Client) Partitions(ctx context.Context, cred Credential, req message.PartitionInfoRequest, each func(*model.Partition) error) (lastUpdate model.Time, err error) {
	answer := message.PartitionInfo{Partitions: codec.Stream[model.Partition]{Each: pass(each)}}
	err = c.query(ctx, cred, request{kind: message.RequestPartitionInfo, body: &req, repeatable: true}, message.ResponsePartitionInfo, &answer)
	return answer.LastUpdate, err
}
