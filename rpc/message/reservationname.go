package message

import "schedrestd/rpc/codec"

// ReservationName is a request to delete a reservation (table
// reservation_name). The answer is an RC.
type ReservationName struct{ Name string }

// Walk encodes or decodes the fields in wire order.
func (m *ReservationName) Walk(c *codec.Codec) { c.String("name", &m.Name) }
