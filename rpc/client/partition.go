package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Partitions gives each partition to each, as Nodes does.
func (c *Client) Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (lastUpdate model.Time, err error) {
	req := message.PartitionInfoRequest{LastUpdate: q.Since, ShowFlags: uint16(q.Flags)}
	answer := message.PartitionInfo{Partitions: codec.Stream[model.Partition]{Each: pass(each)}}
	err = c.query(ctx, cred, request{kind: message.RequestPartitionInfo, body: &req, repeatable: true}, message.ResponsePartitionInfo, &answer)
	return answer.LastUpdate, err
}
