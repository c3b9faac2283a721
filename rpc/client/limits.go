package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Limits calls assoc(tres, a) for every association a that q selects, and
// qos(tres, l) for the limits l of every QOS, under the same rules as Nodes. The
// lists in a and l refer to trackable resources, whose names are in tres.
func (c *Client) Limits(ctx context.Context, cred model.Credential, q model.LimitsQuery,
	assoc func(tres []string, a *model.AssocLimits) error, qos func(tres []string, l *model.QOSLimits) error) error {
	var answer message.Limits
	answer.Associations.Each = wrapCallback(func(a *model.AssocLimits) error { return assoc(answer.TRESNames, a) })
	answer.QOS.Each = wrapCallback(func(l *model.QOSLimits) error { return qos(answer.TRESNames, l) })
	req := message.LimitsRequest{Users: q.Users, QOS: q.QOS}
	if q.Associations {
		req.Flags |= message.LimitsAssociations
	}
	if q.QOS != nil {
		req.Flags |= message.LimitsQOS
	}
	return c.query(ctx, cred, request{kind: message.RequestLimits, body: &req, repeatable: true, list: true}, message.ResponseLimits, &answer)
}
