package message

import "schedrestd/rpc/codec"

// BatchScript is the script of a job (table batch_script_response). It answers a
// JobInfoSingleRequest.
type BatchScript struct{ Text string }

// Walk encodes or decodes the fields in wire order.
func (m *BatchScript) Walk(c *codec.Codec) { c.String("script", &m.Text) }
