package client

import (
	"context"
	"errors"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// CreateReservation creates a reservation. It never repeats the request.
func (c *Client) CreateReservation(ctx context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	var name message.ReservationName
	r := request{kind: message.RequestCreateReservation, body: &message.ReservationUpdate{ReservationUpdate: *u}}
	return reservationError(c.query(ctx, cred, r, message.ResponseReservationName, &name))
}

// UpdateReservation changes the reservation that u names. It changes only the
// fields that are set in u. It never repeats the request.
func (c *Client) UpdateReservation(ctx context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	r := request{kind: message.RequestUpdateReservation, body: &message.ReservationUpdate{ReservationUpdate: *u}}
	return reservationError(c.query(ctx, cred, r, message.ResponseRC, nil))
}

// reservationError replaces an error that gives no reason with one that
// mentions the reservation. Controllers send such errors for unknown users,
// groups, accounts and nodes.
func reservationError(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != fault.Unspecified {
		return err
	}
	refused := *e
	refused.Kind, refused.Message = errs.Invalid, "the controller refuses the reservation and gives no reason"
	return refused.WithHint("check that its users, groups, accounts and nodes exist")
}
