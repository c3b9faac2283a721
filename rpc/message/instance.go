package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

var _ = recordList(RecordList{Get: 1503, Got: 1504, Since: codec.V2311},
	func(f model.InstanceFilter) Body { return &GetInstances{f} }, func() *Instances { return new(Instances) })

// GetInstances requests cloud instances (table db_instance_cond).
type GetInstances struct{ model.InstanceFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetInstances) Walk(c *codec.Codec) {
	if c.Until(codec.V2311) {
		return
	}
	clusters(c, "cluster_list", &m.Clusters)
	texts(c, "extra_list", &m.Extra)
	texts(c, "format_list", &m.Format)
	texts(c, "instance_id_list", &m.InstanceIDs)
	texts(c, "instance_type_list", &m.InstanceTypes)
	c.String("node_list", &m.Nodes)
	c.Time("time_end", &m.TimeEnd)
	c.Time("time_start", &m.TimeStart)
}

// Instances is the answer to GetInstances.
type Instances struct{ ListResponse[model.Instance] }

// Walk encodes or decodes the fields in wire order.
func (m *Instances) Walk(c *codec.Codec) { m.walk(c, "db_instance_rec", instance) }

// instance encodes or decodes an instance (table db_instance_rec).
func instance(c *codec.Codec, i *model.Instance) {
	if c.Until(codec.V2311) {
		return
	}
	c.String("cluster", &i.Cluster)
	c.String("extra", &i.Extra)
	c.String("instance_id", &i.InstanceID)
	c.String("instance_type", &i.InstanceType)
	c.String("node_name", &i.Node)
	c.Time("time_end", &i.TimeEnd)
	c.Time("time_start", &i.TimeStart)
}
