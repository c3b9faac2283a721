package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// Bits of KillJob.Flags.
const (
	KillBatch   uint16 = 1 // the batch script only, not its steps
	KillArray   uint16 = 2
	KillSteps   uint16 = 4
	KillFullJob uint16 = 8
)

// KillJob signals or cancels a job (table kill_job); answered by an RC.
type KillJob struct {
	JobID   model.Opt[uint32]
	JobText string // "123", "123_4", "123+1"
	Sibling string
	Signal  uint16 // 9 ends the job
	Flags   uint16
}

// Walk is the wire's order.
func (m *KillJob) Walk(c *codec.Codec) {
	jobAsStep(c, "step_id", &m.JobID)
	c.String("sjob_id", &m.JobText)
	c.String("sibling", &m.Sibling)
	c.Uint16("signal", &m.Signal)
	c.Uint16("flags", &m.Flags)
}
