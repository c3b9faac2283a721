package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// ReservationInfoRequest requests all reservations (table
// reservation_info_request).
type ReservationInfoRequest struct {
	LastUpdate model.Time // reservations are returned only if something changed after this time; if 0, always
}

// Walk encodes or decodes the fields in wire order.
func (m *ReservationInfoRequest) Walk(c *codec.Codec) { c.Time("last_update", &m.LastUpdate) }

// ReservationInfo answers ReservationInfoRequest (table
// reservation_info_response).
type ReservationInfo struct {
	LastUpdate   model.Time
	Reservations codec.Stream[model.Reservation]
}

// Walk encodes or decodes the fields in wire order.
func (m *ReservationInfo) Walk(c *codec.Codec) {
	n := c.Count("record_count", m.Reservations.Size())
	c.Time("last_update", &m.LastUpdate)
	c.Loop("record_count", n, func(int) {
		codec.Next(c, "reservations", "reservation_info_record", &m.Reservations, reservation)
	})
}

// reservation encodes or decodes an element of a ReservationInfo (table
// reservation_info_record).
func reservation(c *codec.Codec, r *model.Reservation) {
	c.String("accounts", &r.Accounts)
	c.String("burst_buffer", &r.BurstBuffer)
	if c.Since(codec.V2302) {
		c.String("comment", &r.Comment)
	}
	c.Uint32("core_cnt", &r.Cores)
	c.Time("end_time", &r.EndTime)
	c.String("features", &r.Features)
	c.Uint64("flags", &r.Flags)
	c.String("licenses", &r.Licenses)
	c.Uint32("max_start_delay", &r.MaxStartDelay)
	c.String("name", &r.Name)
	c.Uint32("node_cnt", &r.NodeCount)
	c.String("node_list", &r.Nodes)
	c.String("partition", &r.Partition)
	c.OptUint32("purge_comp_time", &r.PurgeCompleted)
	if c.Until(codec.V2511) {
		c.OptUint32("resv_watts", &r.Watts)
	}
	c.Time("start_time", &r.StartTime)
	c.String("tres_str", &r.TRES)
	c.String("users", &r.Users)
	c.String("groups", &r.Groups)
	if c.Since(codec.V2511) {
		c.String("qos", &r.QOS)
		c.String("allowed_parts", &r.AllowedPartitions)
	}
	c.Bitmap("node_inx", &r.NodeIndexes)
	n := c.Count("core_spec_cnt", len(r.CoreSpecializations))
	loop(c, "core_spec_cnt", n, &r.CoreSpecializations, func(c *codec.Codec, s *model.CoreSpecialization) {
		c.String("node_name", &s.Node)
		c.String("core_id", &s.Cores)
	})
}
