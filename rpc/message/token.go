package message

import "schedrestd/rpc/codec"

// TokenRequest requests a token from the controller (table auth_token_request).
type TokenRequest struct {
	Lifespan uint32 // in seconds
	Username string // "" for the sender; only root and the scheduler's user may name another user
}

// Walk encodes or decodes the fields in wire order.
func (m *TokenRequest) Walk(c *codec.Codec) {
	c.Uint32("lifespan", &m.Lifespan)
	c.String("username", &m.Username)
}

// TokenResponse answers TokenRequest (table auth_token_response).
type TokenResponse struct{ Token string }

// Walk encodes or decodes the fields in wire order.
func (m *TokenResponse) Walk(c *codec.Codec) { c.String("token", &m.Token) }
