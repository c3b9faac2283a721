package keys

import (
	"context"
	"strings"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/gateway/worker/broker"
	"schedrestd/internal/errs"
	"schedrestd/ipc/query"
	"schedrestd/model"
)

// Tokens asks the keeper to manage gateway tokens. It implements
// handlers.GatewayTokens.
type Tokens struct{ keeper *broker.Keeper }

// List returns the tokens of the credential's user.
func (t Tokens) List(ctx context.Context, c auth.Credential) (list []model.GatewayToken, err error) {
	for more := true; more; {
		answer, err := t.ask(ctx, c, query.ManageTokens{Action: query.ListTokens, Skip: uint32(len(list))})
		if err != nil {
			return nil, err
		}
		for _, l := range answer.Tokens {
			list = append(list, model.GatewayToken{ID: l.ID, User: answer.User, ActFor: l.ActFor, Scopes: l.Scopes, Label: l.Label,
				Issued: model.Time(l.Issued), Expires: model.Time(l.Expires), Revoked: l.Revoked})
		}
		more = answer.More && len(answer.Tokens) > 0
	}
	return list, nil
}

// Revoke revokes one token of the credential's user.
func (t Tokens) Revoke(ctx context.Context, c auth.Credential, id string) error {
	_, err := t.ask(ctx, c, query.ManageTokens{Action: query.RevokeOne, Token: id})
	return err
}

// RevokeAll revokes all tokens of the credential's user.
func (t Tokens) RevokeAll(ctx context.Context, c auth.Credential) error {
	_, err := t.ask(ctx, c, query.ManageTokens{Action: query.RevokeOwn})
	return err
}

// Create creates a token for the credential's user.
func (t Tokens) Create(ctx context.Context, c auth.Credential, n *model.NewGatewayToken) (jwt string, created model.GatewayToken, err error) {
	scopes, err := scope.Parse(strings.Join(n.Scopes, "+"))
	if err != nil {
		return "", created, errs.New(errs.Invalid, "%v", err)
	}
	answer, err := t.ask(ctx, c, query.ManageTokens{Action: query.CreateToken, Scopes: uint8(scopes), Seconds: n.Lifetime, Label: n.Label})
	if err != nil {
		return "", created, err
	}
	jwt = string(answer.Token)
	made, err := gatewaytoken.ParseSigned([]byte(jwt[:max(0, strings.LastIndexByte(jwt, '.'))]))
	if err != nil {
		return "", created, errs.Wrap(err, errs.Internal, "read the new token")
	}
	return jwt, model.GatewayToken{ID: made.ID, User: made.User, Scopes: made.Scopes.String(), Label: made.Label,
		Issued: model.Time(made.Issued.Unix()), Expires: model.Time(made.Expires.Unix())}, nil
}

// ask asks the keeper, and returns the error for the client if it does not do what it
// is asked for.
func (t Tokens) ask(ctx context.Context, c auth.Credential, q query.ManageTokens) (*query.TokensManaged, error) {
	s, gateway, ok := c.Signature()
	if !ok || len(s.Bytes) != len(q.MAC) {
		return nil, errs.New(errs.Denied, "gateway tokens are managed with a token of the cluster").WithHint("get one with scontrol token or schedctl token; it must have the claim sun")
	}
	q.Signed, q.ActAs, q.Gateway = []byte(s.Signed), c.ActAs, gateway
	copy(q.MAC[:], s.Bytes)
	answer, verdict := t.keeper.Manage(ctx, &q)
	switch verdict {
	case auth.Good:
		return answer, resultError(answer.Result, &q)
	case auth.Bad, auth.Revoked:
		return nil, errs.New(errs.Unauthenticated, auth.Refused)
	case auth.NotForUser:
		return nil, errs.New(errs.Denied, "the gateway tokens of another user can't be managed").WithHint("send a token of this user, without a user name")
	}
	return nil, unverifiable(q.Action)
}

// unverifiable returns the error for a question to which the keeper gives no answer.
// It may have made the change.
func unverifiable(a query.ManageAction) error {
	err := errs.New(errs.Unavailable, "gateway tokens can't be managed at present").WithHint("the administrator finds the reason in the gateway's log")
	if a == query.CreateToken {
		err.Code = errs.OutcomeUnknown
	}
	return err
}

// resultError returns the error that a result is for the client.
func resultError(r query.ManageResult, q *query.ManageTokens) error {
	switch r {
	case query.Managed:
		return nil
	case query.NoSuchToken:
		return errs.New(errs.NotFound, "the register has no gateway token %s of this user", q.Token).WithHint("GET tokens/ lists the user's tokens")
	case query.NotOfThisToken:
		return errs.New(errs.Denied, "a gateway token can list and revoke only itself").WithHint("use a token of the cluster, from scontrol token or schedctl token")
	case query.NotForThisUser:
		return errs.New(errs.Denied, "no gateway tokens are created for this user").WithHint("root can create one with schedctl token create on the gateway's machine")
	case query.NotWhatIsSigned:
		return errs.New(errs.Invalid, "no token is created with these scopes, this lifetime and this label")
	case query.RegisterFull:
		return errs.New(errs.Unavailable, "the register of gateway tokens has no room, or too many lines about this user").WithHint("an administrator can remove lines about expired tokens with schedctl token prune")
	case query.TooManyTokens:
		return errs.New(errs.TooMany, "the register has too many gateway tokens of this user").WithHint("an expired token counts for a day after its creation; create fewer tokens, or tokens with a longer lifetime")
	case query.TooSoon:
		return errs.New(errs.TooMany, "this was done a moment ago").WithHint("try again in a minute, or revoke single tokens")
	case query.RegisterMoved:
		return errs.New(errs.Unavailable, "the register of gateway tokens was replaced at the same time, so the change has no effect").WithHint("try again in a moment")
	}
	return errs.New(errs.Unavailable, "the gateway can't write the register of gateway tokens").
		WithHint("the administrator finds the reason in the gateway's log, and can use schedctl token revoke on the gateway's machine")
}
