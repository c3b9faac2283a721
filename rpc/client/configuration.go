package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Configuration returns the controller's configuration, or errs.Unchanged if
// the configuration has not changed since the given time.
func (c *Client) Configuration(ctx context.Context, cred model.Credential, since model.Time) (*model.Configuration, error) {
	config := new(model.Configuration)
	answer := message.BuildInfo{Config: config}
	r := request{kind: message.RequestBuildInfo, body: &message.BuildInfoRequest{LastUpdate: since}, repeatable: true}
	if err := c.query(ctx, cred, r, message.ResponseBuildInfo, &answer); err != nil {
		return nil, err
	}
	config.LastUpdate, config.BootTime = answer.LastUpdate, answer.BootTime
	if config.Texts != nil {
		config.Texts["cluster_name"], config.Texts["version"] = answer.ClusterName, answer.Version
	}
	return config, nil
}
