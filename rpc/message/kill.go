package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// KillJob signals or cancels a job (table kill_job). The answer is an RC.
type KillJob struct {
	JobID   model.Opt[uint32]
	JobText string // "123", "123_4", "123+1"
	Sibling string
	Signal  uint16 // 9 cancels the job
	Flags   uint16 // a model.Kill
}

// Walk encodes or decodes the fields in wire order.
func (m *KillJob) Walk(c *codec.Codec) {
	jobAsStep(c, &m.JobID)
	c.String("sjob_id", &m.JobText)
	c.String("sibling", &m.Sibling)
	c.Uint16("signal", &m.Signal)
	c.Uint16("flags", &m.Flags)
}
