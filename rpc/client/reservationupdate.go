package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// CreateReservation makes a reservation. It is not sent twice.
func (c *Client) CreateReservation(ctx context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	var name message.ReservationName
	r := request{kind: message.RequestCreateReservation, body: &message.ReservationUpdate{ReservationUpdate: *u}}
	return c.query(ctx, cred, r, message.ResponseReservationName, &name)
}

// UpdateReservation changes what u has set of the reservation that it names. It
// is not sent twice.
func (c *Client) UpdateReservation(ctx context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	r := request{kind: message.RequestUpdateReservation, body: &message.ReservationUpdate{ReservationUpdate: *u}}
	return c.query(ctx, cred, r, message.ResponseRC, nil)
}
