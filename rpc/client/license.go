package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Licenses calls each(l) for every license l, under the same rules as Nodes.
func (c *Client) Licenses(ctx context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (lastUpdate model.Time, err error) {
	req := message.LicenseInfoRequest{LastUpdate: q.Since, ShowFlags: uint16(q.Flags)}
	answer := message.LicenseInfo{Licenses: codec.Stream[model.License]{Each: wrapCallback(each)}}
	r := request{kind: message.RequestLicenseInfo, body: &req, repeatable: true, list: true}
	err = c.query(ctx, cred, r, message.ResponseLicenseInfo, &answer)
	return answer.LastUpdate, err
}
