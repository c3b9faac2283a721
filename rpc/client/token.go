package client

import (
	"context"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Token requests a token for user from the controller. If user is "", the token
// is for the user of cred. Only root and the scheduler's user may request a
// token for another user. The token expires after lifespan, rounded down to
// seconds.
func (c *Client) Token(ctx context.Context, cred model.Credential, user string, lifespan time.Duration) (string, error) {
	var answer message.TokenResponse
	body := &message.TokenRequest{Lifespan: uint32(lifespan / time.Second), Username: user}
	err := c.query(ctx, cred, request{kind: message.RequestAuthToken, body: body, repeatable: true, alone: true}, message.ResponseAuthToken, &answer)
	return answer.Token, err
}
