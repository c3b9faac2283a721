package message

import "schedrestd/rpc/codec"

// ReservationName names a reservation (table reservation_name): a request to
// delete it, which an RC answers.
type ReservationName struct{ Name string }

// Walk encodes or decodes the fields in wire order.
func (m *ReservationName) Walk(c *codec.Codec) { c.String("name", &m.Name) }
