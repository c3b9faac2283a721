package client

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Reservations calls each(r) for every reservation r, under the same rules as
// Nodes. It ignores all fields of q except Since, because controllers support
// no others for reservations.
func (c *Client) Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (lastUpdate model.Time, err error) {
	answer := message.ReservationInfo{Reservations: codec.Stream[model.Reservation]{Each: wrapCallback(each), Digest: q.Digest}}
	r := datedList(message.RequestReservationInfo, q, func(since model.Time) message.Body {
		return &message.ReservationInfoRequest{LastUpdate: since}
	})
	err = c.query(ctx, cred, r, message.ResponseReservationInfo, &answer)
	return answer.LastUpdate, err
}

// Reservation returns the reservation with that name, or errs.NotFound. It
// requests all reservations, because the protocol has no request for a single
// one.
func (c *Client) Reservation(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error) {
	nameOf := func(r *model.Reservation) string { return r.Name }
	missing := errs.New(errs.NotFound, "there is no reservation %q", name).WithNumber(fault.InvalidReservation)
	return findByName(name, nameOf, missing, func(each func(*model.Reservation) error) (model.Time, error) {
		return c.Reservations(ctx, cred, q, each)
	})
}

// DeleteReservation deletes the reservation with that name. It never repeats
// the request.
func (c *Client) DeleteReservation(ctx context.Context, cred model.Credential, name string) error {
	r := request{kind: message.RequestDeleteReservation, body: &message.ReservationName{Name: name}}
	return c.query(ctx, cred, r, message.ResponseRC, nil)
}
