package rest

import (
	"context"
	"net/http"
	"net/url"
)

// GatewayToken is an entry of the list of gateway tokens.
type GatewayToken struct {
	ID      string   `json:"id"`
	User    string   `json:"user_name"`
	ActFor  string   `json:"act_for"`
	Scopes  []string `json:"scopes"`
	Label   string   `json:"label"`
	Expires struct {
		Number int64 `json:"number"`
	} `json:"expires"`
	Revoked bool `json:"revoked"`
}

// NewGatewayToken describes a gateway token to create.
type NewGatewayToken struct {
	Scopes   []string `json:"scopes"`
	Lifetime int64    `json:"lifetime,omitempty"` // in seconds; 0 for the default
	Label    string   `json:"label,omitempty"`
}

// tokenPath returns the path of an operation on gateway tokens, which exists in one
// spelling only.
func (c *Client) tokenPath(operation string) string { return c.path("sched", operation) }

// askTokens sends a request about gateway tokens, and decodes the answer into v.
func (c *Client) askTokens(ctx context.Context, method, operation string, body, v any) (warnings []string, err error) {
	resp, err := c.do(ctx, method, c.tokenPath(operation), nil, body, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return c.decodeAnswer(resp, v)
}

// GatewayTokens returns the gateway tokens of the user.
func (c *Client) GatewayTokens(ctx context.Context) (list []GatewayToken, err error) {
	var answer struct{ Tokens []GatewayToken }
	_, err = c.askTokens(ctx, http.MethodGet, "tokens/", nil, &answer)
	return answer.Tokens, err
}

// CreateGatewayToken creates a gateway token for the user.
func (c *Client) CreateGatewayToken(ctx context.Context, n NewGatewayToken) (jwt string, t GatewayToken, warnings []string, err error) {
	var answer struct {
		JWT   string       `json:"jwt"`
		Token GatewayToken `json:"token"`
	}
	warnings, err = c.askTokens(ctx, http.MethodPost, "tokens/", n, &answer)
	return answer.JWT, answer.Token, warnings, err
}

// RevokeGatewayToken revokes one gateway token of the user; "self" is the token of the
// request.
func (c *Client) RevokeGatewayToken(ctx context.Context, id string) error {
	_, err := c.askTokens(ctx, http.MethodDelete, "token/"+url.PathEscape(id), nil, nil)
	return err
}

// RevokeGatewayTokens revokes all gateway tokens of the user.
func (c *Client) RevokeGatewayTokens(ctx context.Context) error {
	_, err := c.askTokens(ctx, http.MethodDelete, "tokens/", nil, nil)
	return err
}
