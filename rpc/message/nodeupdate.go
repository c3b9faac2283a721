package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// NodeUpdate changes, creates or deletes nodes (table update_node). The answer
// is an RC.
type NodeUpdate struct{ model.NodeUpdate }

// Walk encodes or decodes the fields in wire order.
func (m *NodeUpdate) Walk(c *codec.Codec) {
	if c.Since(codec.V2411) {
		c.Text("cert_token", &m.CertToken)
	}
	c.Text("comment", &m.Comment)
	c.Uint32("cpu_bind", &m.CPUBind)
	c.Text("extra", &m.Extra)
	c.Text("features", &m.Features)
	c.Text("features_act", &m.ActiveFeatures)
	c.Text("gres", &m.GRES)
	if c.Since(codec.V2311) {
		c.Text("instance_id", &m.InstanceID)
		c.Text("instance_type", &m.InstanceType)
	}
	c.Text("node_addr", &m.Address)
	c.Text("node_hostname", &m.Hostname)
	c.String("node_names", &m.Names)
	optAs(c, "node_state", &m.State, model.NodeStateNone)
	if c.Since(codec.V2605) {
		c.Text("power_action_name", &m.PowerActionName)
	}
	c.Text("reason", &m.Reason)
	if c.Until(codec.V2302) {
		c.OptUint32("reason_uid", &m.ReasonUID)
	} else {
		c.OptUint32("resume_after", &m.ResumeAfter)
	}
	if c.Since(codec.V2505) {
		c.Text("topology_str", &m.Topology)
	}
	c.OptUint32("weight", &m.Weight)
}
