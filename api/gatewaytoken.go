package api

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// gatewayToken declares the fields of a model.GatewayToken.
var gatewayToken = schema.Object("gateway_token", func() schema.Fields[model.GatewayToken] {
	return schema.Fields[model.GatewayToken]{
		schema.F("id", schema.String, func(t *model.GatewayToken) *string { return &t.ID }, "Id of the token, by which it can be revoked"),
		schema.F("user_name", schema.String, func(t *model.GatewayToken) *string { return &t.User }, "User as whom its requests are carried out"),
		schema.F("act_for", schema.String, func(t *model.GatewayToken) *string { return &t.ActFor }, "Unix group for whose members the token acts; empty if it acts only as its user"),
		schema.Show("scopes", schema.Named("gateway_token_scopes", schema.List(schema.String)), func(t *model.GatewayToken) []string {
			return strings.FieldsFunc(t.Scopes, func(r rune) bool { return r == '+' })
		}, "What the token permits"),
		schema.F("label", schema.String, func(t *model.GatewayToken) *string { return &t.Label }, "What the token is for"),
		schema.F("issued", moment, func(t *model.GatewayToken) *model.Time { return &t.Issued }, "Time of its creation", schema.Unit(UnixTime)),
		schema.F("expires", moment, func(t *model.GatewayToken) *model.Time { return &t.Expires }, "Time of its end", schema.Unit(UnixTime)),
		schema.F("revoked", schema.Boolean, func(t *model.GatewayToken) *bool { return &t.Revoked }, "Whether it is revoked"),
	}
})

// GatewayTokensAnswer is the answer to GetGatewayTokens.
type GatewayTokensAnswer struct {
	Tokens []model.GatewayToken
	Envelope
}

// GatewayTokens declares the fields of a GatewayTokensAnswer.
var GatewayTokens = enveloped("openapi_gateway_tokens_resp", func(a *GatewayTokensAnswer) *Envelope { return &a.Envelope },
	schema.F("tokens", schema.Named("gateway_token_list", schema.List(gatewayToken.Type)), func(a *GatewayTokensAnswer) *[]model.GatewayToken { return &a.Tokens }, "The tokens", schema.Required(0)),
)

// NewGatewayTokenAnswer is the answer to PostGatewayTokens.
type NewGatewayTokenAnswer struct {
	JWT   string
	Token model.GatewayToken
	Envelope
}

// NewGatewayToken declares the fields of a NewGatewayTokenAnswer.
var NewGatewayToken = enveloped("openapi_gateway_token_created_resp", func(a *NewGatewayTokenAnswer) *Envelope { return &a.Envelope },
	schema.F("jwt", schema.String, func(a *NewGatewayTokenAnswer) *string { return &a.JWT }, "The token itself, which is shown only here", schema.Required(0)),
	schema.F("token", gatewayToken.Type, func(a *NewGatewayTokenAnswer) *model.GatewayToken { return &a.Token }, "What the register says about it", schema.Required(0)),
)

// GatewayTokenBody declares the fields of a request for a gateway token.
var GatewayTokenBody = schema.Object("gateway_token_create_req", func() schema.Fields[model.NewGatewayToken] {
	return schema.Fields[model.NewGatewayToken]{
		schema.Set("scopes", schema.Named("gateway_token_scopes", schema.List(schema.String)), setScopes, "What the token permits: some of "+strings.ReplaceAll(scope.All.String(), "+", ", "), schema.Required(0)),
		schema.Set("lifetime", schema.Int32[uint32], setLifetime, "For how long it is valid; default: 30 days", schema.Unit("s")),
		schema.F("label", schema.String, func(t *model.NewGatewayToken) *string { return &t.Label }, "What it is for, such as the name of the program: up to 64 letters, digits and characters of - _ . @ : /"),
	}
})

func setScopes(t *model.NewGatewayToken, scopes []string) error {
	t.Scopes = scopes
	_, err := scope.Parse(strings.Join(scopes, "+"))
	return err
}

func setLifetime(t *model.NewGatewayToken, seconds uint32) error {
	if t.Lifetime = seconds; seconds == 0 || seconds > 366*24*60*60 {
		return errors.New("expected a number of seconds from 1 to 31622400, which are 366 days")
	}
	return nil
}

// OwnToken is the id that stands for the gateway token of the request.
const OwnToken = "self"

// GatewayTokenParams names a token.
type GatewayTokenParams struct{ ID string }

var gatewayTokenParams = schema.Object("", func() schema.Fields[GatewayTokenParams] {
	return schema.Fields[GatewayTokenParams]{
		schema.F("token_id", objectName("token"), func(p *GatewayTokenParams) *string { return &p.ID }, "Id of the token; \"self\" for the gateway token of the request", schema.Required(0)),
	}
})

const whichTokens = " The request needs a token of the cluster, such as `scontrol token` prints: a gateway token manages only itself. " +
	"It needs a gateway that accepts gateway tokens; otherwise the answer is 501."

var GetGatewayTokens = declare(scope.None, noParams, Endpoint{
	Method: http.MethodGet, Path: "tokens/", ID: "get_tokens",
	Doc: "Show the user's gateway tokens", Answer: GatewayTokens, NoFields: true,
	Description: "Returns the gateway tokens of the user that have not expired and that the register records, revoked ones as well." + whichTokens,
	AnswerDoc:   "The tokens",
	SlurmSince:  slurmNever, SchedOnly: true,
})

var PostGatewayTokens = declare(scope.None, noParams, Endpoint{
	Method: http.MethodPost, Path: "tokens/", ID: "post_tokens",
	Doc: "Create a gateway token", Request: GatewayTokenBody, Answer: NewGatewayToken,
	Example: `{"scopes": ["compute.read", "compute.create"], "lifetime": 3600, "label": "ci"}`,
	Description: "Creates a token for the user that permits less: only the operations of its scopes, only at gateways with the same key and register, and until it ends or is revoked. " +
		"Unless the administrator permits more, it ends at the latest with the token of the request; a warning says if it ends earlier than requested. " +
		"None is created for root, the scheduler's user, and users of the system and of the gateway." + whichTokens,
	RequestDoc: "What the token is to permit",
	AnswerDoc:  "The token",
	SlurmSince: slurmNever, SchedOnly: true,
})

var DeleteGatewayTokens = declare(scope.None, noParams, Endpoint{
	Method: http.MethodDelete, Path: "tokens/", ID: "delete_tokens",
	Doc: "Revoke all gateway tokens of the user", Answer: Empty,
	Description: "Revokes all gateway tokens of the user that were created until now, whether or not the register records them. The tokens of portals that exist now no longer act for this user either. " +
		"The answer comes when the revocation is on the disk; all gateways with this register refuse the tokens within a second. A minute must pass between two such requests." + whichTokens,
	AnswerDoc:  "The tokens are revoked",
	SlurmSince: slurmNever, SchedOnly: true,
})

var DeleteGatewayToken = declare(scope.None, gatewayTokenParams, Endpoint{
	Method: http.MethodDelete, Path: "token/{token_id}", ID: "delete_token",
	Doc: "Revoke a gateway token", Answer: Empty,
	Description: "Revokes a gateway token of the user. A gateway token of any scopes can revoke itself. The answer comes when the revocation is on the disk; all gateways with this register refuse the token within a second, and end what uses it. " +
		"The answer is 404 if the register records no such token of the user, and 503 if the gateway can't write the register.",
	AnswerDoc:  "The token is revoked",
	SlurmSince: slurmNever, SchedOnly: true,
})
