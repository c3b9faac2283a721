package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Configuration returns the controller's configuration, or errs.Unchanged if it
// has not changed since the given time.
func (c *Client) Configuration(ctx context.Context, cred model.Credential, since model.Time) (*model.Configuration, error) {
	whole := new(model.Configuration)
	answer := message.BuildInfo{Whole: whole}
	r := request{kind: message.RequestBuildInfo, body: &message.BuildInfoRequest{LastUpdate: since}, repeatable: true}
	if err := c.query(ctx, cred, r, message.ResponseBuildInfo, &answer); err != nil {
		return nil, err
	}
	whole.LastUpdate, whole.BootTime = answer.LastUpdate, answer.BootTime
	if whole.Texts != nil {
		whole.Texts["cluster_name"], whole.Texts["version"] = answer.ClusterName, answer.Version
	}
	return whole, nil
}
