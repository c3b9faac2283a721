package client

import (
	"context"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Token asks the controller for a token for user ("" = the asker; another is for root and the
// scheduler's user alone) that ends after lifespan, cut to seconds.
func (c *Client) Token(ctx context.Context, cred model.Credential, user string, lifespan time.Duration) (string, error) {
	var answer message.TokenResponse
	body := &message.TokenRequest{Lifespan: uint32(lifespan / time.Second), Username: user}
	err := c.query(ctx, cred, request{kind: message.RequestAuthToken, body: body, repeatable: true}, message.ResponseAuthToken, &answer)
	return answer.Token, err
}
