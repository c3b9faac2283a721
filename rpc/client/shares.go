package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Shares calls each(tres, s) for the fair share s of every association, under
// the same rules as Nodes. The lists in s refer to trackable resources, whose
// names are in tres. If accounts is nil, all accounts are selected. If users is
// nil, all users are selected.
func (c *Client) Shares(ctx context.Context, cred model.Credential, accounts, users []string,
	each func(tres []string, s *model.Share) error) (model.SharesTotals, error) {
	var answer message.Shares
	answer.Shares = codec.Stream[model.Share]{Each: wrapCallback(func(s *model.Share) error { return each(answer.TRESNames, s) })}
	req := message.SharesRequest{Accounts: accounts, Users: users}
	err := c.query(ctx, cred, request{kind: message.RequestShares, body: &req, repeatable: true, list: true}, message.ResponseShares, &answer)
	return model.SharesTotals{TRESNames: answer.TRESNames, Shares: answer.TotalShares}, err
}
