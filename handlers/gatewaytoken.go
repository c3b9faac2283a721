package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"schedrestd/api"
	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// GatewayTokens manages gateway tokens of the user of a credential. Its errors are
// those for the client.
type GatewayTokens interface {
	// List returns the tokens that have not expired. A gateway token lists itself.
	List(context.Context, auth.Credential) ([]model.GatewayToken, error)

	// Revoke revokes the token with an id, or, for "", the gateway token of the
	// credential.
	Revoke(ctx context.Context, c auth.Credential, id string) error

	// RevokeAll revokes all tokens that were created until now.
	RevokeAll(context.Context, auth.Credential) error

	// Create creates a token.
	Create(context.Context, auth.Credential, *model.NewGatewayToken) (jwt string, t model.GatewayToken, err error)
}

var errNoGatewayTokens = errs.New(errs.Unsupported, "this gateway accepts no gateway tokens").WithHint("an administrator can change this with SCHEDRESTD_TOKEN_REGISTER")

func (h *handler) getGatewayTokens(c *rest.Call, _ *api.NoParams) error {
	if h.Tokens == nil {
		return errNoGatewayTokens
	}
	list, err := h.Tokens.List(c.Context(), c.Client())
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.GatewayTokens, &api.GatewayTokensAnswer{Tokens: list, Envelope: c.Envelope()})
}

func (h *handler) postGatewayTokens(c *rest.Call, _ *api.NoParams) error {
	if h.Tokens == nil {
		return errNoGatewayTokens
	}
	wanted, err := rest.ReadBody(c, api.GatewayTokenBody)
	if err != nil {
		return err
	}
	scopes, err := scope.Parse(strings.Join(wanted.Scopes, "+"))
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource("#/scopes")
	}
	if err := gatewaytoken.CheckLabel(wanted.Label); err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource("#/label")
	}
	if err := c.CheckScope(scopes); err != nil { // those of the listener
		return err
	}
	answer := api.NewGatewayTokenAnswer{}
	answer.Token, err = rest.MakeChange(c, "", func() (t model.GatewayToken, err error) {
		answer.JWT, t, err = h.Tokens.Create(c.Context(), c.Client(), wanted)
		return t, err
	}, func(t model.GatewayToken) rest.Result {
		return rest.Result{Objects: strings.TrimSpace(fmt.Sprintf("%s scope=%s until=%s %s", t.ID, t.Scopes, rfc3339(t.Expires), t.Label))}
	})
	if err != nil {
		return err
	}
	if life := uint32(answer.Token.Expires - answer.Token.Issued); wanted.Lifetime > life+1 {
		c.Warn("#/lifetime", "the token ends after %d seconds: the administrator permits no later end than that of the token of the request", life)
	}
	answer.Envelope = c.Envelope()
	return rest.Send(c, http.StatusOK, api.NewGatewayToken, &answer)
}

func rfc3339(t model.Time) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }

func (h *handler) deleteGatewayTokens(c *rest.Call, _ *api.NoParams) error {
	return h.revoke(c, "all of the user", func() error { return h.Tokens.RevokeAll(c.Context(), c.Client()) })
}

func (h *handler) deleteGatewayToken(c *rest.Call, p *api.GatewayTokenParams) error {
	id, own := p.ID, c.Client().Claims
	if id == api.OwnToken {
		if id = own.ID; !own.Gateway {
			return errs.New(errs.Invalid, "self stands for a gateway token, and the token of the request is none").WithSource(rest.InPath + "token_id")
		}
	}
	if !gatewaytoken.IsID(id) {
		return errs.New(errs.Invalid, "not the id of a token, which has 26 characters, or self").WithSource(rest.InPath + "token_id")
	}
	return h.revoke(c, id, func() error { return h.Tokens.Revoke(c.Context(), c.Client(), id) })
}

// revoke calls the function do to revoke tokens.
func (h *handler) revoke(c *rest.Call, tokens string, do func() error) error {
	if h.Tokens == nil {
		return errNoGatewayTokens
	}
	_, err := rest.MakeChange(c, tokens, func() (string, error) { return tokens, do() }, func(tokens string) rest.Result { return rest.Result{Objects: tokens} })
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}
