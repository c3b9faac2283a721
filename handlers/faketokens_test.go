package handlers

import (
	"context"
	"strings"

	"schedrestd/auth"
	"schedrestd/model"
)

// fakeTokens manages the gateway tokens of a user who has two.
type fakeTokens struct{ f *fake }

var demoTokens = []model.GatewayToken{
	{ID: "AAAAAAAAAAAAAAAAAAAAAAAAAA", User: "alice", Scopes: "compute.read+compute.create", Label: "ci", Issued: 1_700_000_000, Expires: 1_700_003_600},
	{ID: "BBBBBBBBBBBBBBBBBBBBBBBBBB", User: "alice", ActFor: "students", Scopes: "compute.read", Issued: 1_700_000_000, Expires: 1_702_592_000, Revoked: true},
}

func (t fakeTokens) List(context.Context, auth.Credential) ([]model.GatewayToken, error) {
	return demoTokens, nil
}

func (t fakeTokens) Revoke(_ context.Context, _ auth.Credential, id string) error {
	t.f.calls = append(t.f.calls, "revoke token "+id)
	return nil
}

func (t fakeTokens) RevokeAll(context.Context, auth.Credential) error {
	t.f.calls = append(t.f.calls, "revoke all")
	return nil
}

func (t fakeTokens) Create(_ context.Context, _ auth.Credential, n *model.NewGatewayToken) (string, model.GatewayToken, error) {
	t.f.calls = append(t.f.calls, "create token")
	token := demoTokens[0]
	token.Scopes, token.Label = strings.Join(n.Scopes, "+"), n.Label
	return "eyJ.eyJ.sig", token, nil
}
