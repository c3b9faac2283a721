package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Reservations gives each reservation to each, as Nodes does. Of q a controller knows
// Since only.
func (c *Client) Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (lastUpdate model.Time, err error) {
	req := message.ReservationInfoRequest{LastUpdate: q.Since}
	answer := message.ReservationInfo{Reservations: codec.Stream[model.Reservation]{Each: pass(each)}}
	err = c.query(ctx, cred, request{kind: message.RequestReservationInfo, body: &req, repeatable: true}, message.ResponseReservationInfo, &answer)
	return answer.LastUpdate, err
}
