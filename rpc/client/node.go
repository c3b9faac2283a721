package client

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Nodes calls each(n) for every node n. The n argument is valid only during the
// call. If a call returns an error, Nodes stops and returns that error. If
// nothing has changed since q.Since, Nodes returns errs.Unchanged. The result
// lastUpdate is the time at which the list last changed.
func (c *Client) Nodes(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (lastUpdate model.Time, err error) {
	answer := message.NodeInfo{Nodes: codec.Stream[model.Node]{Each: wrapCallback(func(n *model.Node) error {
		if n.Name == "" {
			return nil // the node is hidden from the client: controllers before 24.11 send a blank record for it
		}
		return each(n)
	}), Digest: q.Digest}}
	r := datedList(message.RequestNodeInfo, q, func(since model.Time) message.Body {
		return &message.NodeInfoRequest{LastUpdate: since, ShowFlags: uint16(q.Flags)}
	})
	r.prompt = q.Prompt
	err = c.query(ctx, cred, r, message.ResponseNodeInfo, &answer)
	return answer.LastUpdate, err
}

// Node returns the node with that name, or errs.NotFound. Slurm's request for a
// single node can't contain q.Since. So Node itself compares q.Since with the
// time at which the whole list last changed.
func (c *Client) Node(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error) {
	missing := errs.New(errs.NotFound, "there is no node %q", name).WithNumber(fault.InvalidNodeName)
	if name == "" {
		return nil, 0, missing // to a controller, an empty name means all nodes
	}
	var node *model.Node
	answer := message.NodeInfo{Nodes: codec.Stream[model.Node]{Each: func(n *model.Node) error {
		found := *n
		node = &found
		return nil
	}, Digest: q.Digest}}
	req := message.NodeInfoSingleRequest{NodeName: name, ShowFlags: uint16(q.Flags)}
	err := c.query(ctx, cred, request{kind: message.RequestNodeInfoSingle, body: &req, repeatable: true}, message.ResponseNodeInfo, &answer)
	if err == nil && node == nil || numberOf(err) == fault.InvalidNodeName {
		return nil, 0, missing
	}
	if err != nil {
		return nil, 0, err
	}
	if err := unchanged(answer.LastUpdate, q); err != nil {
		return nil, answer.LastUpdate, err
	}
	return node, answer.LastUpdate, nil
}
