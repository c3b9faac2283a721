package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// ResourceLayout lists the resources of a job on each of its nodes (table
// resource_layout_response). From protocol 44 on, it answers a
// JobInfoSingleRequest. The body is empty if the job has no resources.
type ResourceLayout struct{ Nodes []model.ResourceLayout }

// Walk encodes or decodes the fields in wire order.
func (m *ResourceLayout) Walk(c *codec.Codec) {
	if c.Since(codec.V2511) {
		codec.List(c, "nodes", "node_resource_layout", &m.Nodes, nodeLayout)
	}
}

// nodeLayout encodes or decodes an element of a ResourceLayout (table
// node_resource_layout).
func nodeLayout(c *codec.Codec, l *model.ResourceLayout) {
	if c.Until(codec.V2511) {
		return
	}
	c.String("node", &l.Node)
	c.Uint64("mem_alloc", &l.Memory)
	c.Uint16("sockets_per_node", &l.SocketsPerNode)
	c.Uint16("cores_per_socket", &l.CoresPerSocket)
	c.OptUint32("channel", &l.Channel)
	c.String("core_bitmap", &l.Cores)
	codec.List(c, "gres", "node_gres_layout", &l.GRES, gresLayout)
}

// gresLayout encodes or decodes a generic resource of a nodeLayout (table
// node_gres_layout).
func gresLayout(c *codec.Codec, g *model.GRESLayout) {
	if c.Until(codec.V2511) {
		return
	}
	c.String("name", &g.Name)
	c.String("type", &g.Type)
	c.Uint64("count", &g.Count)
	c.Bool("pack_index", &g.Indexed)
	if c.If("pack_index", g.Indexed) {
		c.Bitmap("index", &g.Index)
	}
	c.EndIf()
}
