package client

import (
	"context"
	"errors"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// CreateReservation makes a reservation. It is not sent twice.
func (c *Client) CreateReservation(ctx context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	var name message.ReservationName
	r := request{kind: message.RequestCreateReservation, body: &message.ReservationUpdate{ReservationUpdate: *u}}
	return withoutReason(c.query(ctx, cred, r, message.ResponseReservationName, &name))
}

// UpdateReservation changes what u has set of the reservation that it names. It
// is not sent twice.
func (c *Client) UpdateReservation(ctx context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	r := request{kind: message.RequestUpdateReservation, body: &message.ReservationUpdate{ReservationUpdate: *u}}
	return withoutReason(c.query(ctx, cred, r, message.ResponseRC, nil))
}

// withoutReason makes the reservation what is wrong when a controller gives no
// reason: it does so for a user, group, account or node that it does not know.
func withoutReason(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != fault.Unspecified {
		return err
	}
	refused := *e
	refused.Kind, refused.Message = errs.Invalid, "the controller refuses it without a reason"
	return refused.WithHint("check that its users, groups, accounts and nodes exist")
}
