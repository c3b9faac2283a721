package message

import "schedrestd/rpc/codec"

// TokenRequest asks the controller for a token (table auth_token_request).
type TokenRequest struct {
	Lifespan uint32 // seconds
	Username string // "" = the asker; another's only for root and the scheduler's user
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
