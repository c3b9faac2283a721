package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// RequeueRequest requeues a job (table requeue_request). The answer is an RC or
// a JobArrayErrors.
type RequeueRequest struct {
	JobID   model.Opt[uint32] // not set if JobText is
	JobText string            // "123", "123_4", "123_[1-3]"
	Flags   model.Requeue
}

// Walk encodes or decodes the fields in wire order.
func (m *RequeueRequest) Walk(c *codec.Codec) {
	jobID(c, &m.JobID)
	c.String("job_id_str", &m.JobText)
	c.Uint32("flags", (*uint32)(&m.Flags))
}
