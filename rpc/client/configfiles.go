package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// ConfigFiles returns the configuration files that the controller sends to
// clients, and the name of the machine whose controller answered. A controller
// sends them only if its configuration says so
// (SlurmctldParameters=enable_configless).
func (c *Client) ConfigFiles(ctx context.Context, cred model.Credential) (files []model.ConfigFile, from string, err error) {
	var answer message.ConfigFiles
	r := request{kind: message.RequestConfigFiles, body: new(message.ConfigFilesRequest), repeatable: true, whole: true}
	if err := c.query(ctx, cred, r, message.ResponseConfigFiles, &answer); err != nil {
		return nil, "", err
	}
	if d := c.current(); d != nil {
		from = d.name
	}
	return answer.Files, from, nil
}
