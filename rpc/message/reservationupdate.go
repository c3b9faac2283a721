package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// ReservationUpdate creates or changes a reservation (table
// update_reservation). The answer to a creation is a ReservationName, and the
// answer to a change is an RC.
type ReservationUpdate struct{ model.ReservationUpdate }

// Walk encodes or decodes the fields in wire order.
func (m *ReservationUpdate) Walk(c *codec.Codec) {
	c.String("name", &m.Name)
	optTime(c, "start_time", &m.StartTime)
	optTime(c, "end_time", &m.EndTime)
	c.OptUint32("duration", &m.Duration)
	c.OptUint64("flags", &m.Flags)
	if c.Until(codec.V2311) {
		zeroTerminated(c, "node_cnt", &m.NodeCount)
		zeroTerminated(c, "core_cnt", &m.Cores)
	} else {
		c.OptUint32("node_cnt", &m.NodeCount)
		c.OptUint32("core_cnt", &m.Cores)
	}
	c.Text("node_list", &m.Nodes)
	c.Text("features", &m.Features)
	c.Text("licenses", &m.Licenses)
	c.OptUint32("max_start_delay", &m.MaxStartDelay)
	c.Text("partition", &m.Partition)
	c.OptUint32("purge_comp_time", &m.PurgeCompleted)
	if c.Until(codec.V2511) {
		c.OptUint32("resv_watts", &m.Watts)
	} else {
		c.Text("allowed_parts", &m.AllowedPartitions)
		c.Text("qos", &m.QOS)
	}
	c.Text("users", &m.Users)
	c.Text("accounts", &m.Accounts)
	c.Text("burst_buffer", &m.BurstBuffer)
	c.Text("groups", &m.Groups)
	if c.Since(codec.V2302) {
		c.Text("comment", &m.Comment)
	}
	if c.Since(codec.V2311) {
		c.Text("tres_str", &m.TRES)
	}
}

// optTime encodes or decodes a time that may be unset. "Not set" is NO_VAL on
// the wire and 0 in memory.
func optTime(c *codec.Codec, name string, v *model.Time) {
	const notSet = 0xfffffffe
	t := *v
	if t == 0 {
		t = notSet
	}
	if c.Time(name, &t); !c.Storing() {
		return
	}
	if *v = t; t == notSet {
		*v = 0
	}
}

// zeroTerminated encodes or decodes an optional number. Older protocols send it
// as a list: the number followed by a 0, or an empty list for "not set".
func zeroTerminated(c *codec.Codec, name string, v *model.Opt[uint32]) {
	var list []uint32
	if v.Set {
		list = []uint32{v.Number, 0}
	}
	if c.Uint32s(name, &list); !c.Storing() {
		return
	}
	*v = model.Opt[uint32]{}
	if len(list) > 0 {
		*v = model.Some(list[0])
	}
}
