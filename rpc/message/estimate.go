package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// EstimateResponse answers a SubmitRequest that is sent as RequestEstimate
// (table will_run_response).
type EstimateResponse struct {
	JobID model.Opt[uint32] // the next number of a job; the job is not submitted
	model.Estimate
}

// Walk encodes or decodes the fields in wire order.
func (m *EstimateResponse) Walk(c *codec.Codec) {
	jobID(c, &m.JobID)
	c.String("job_submit_user_msg", &m.UserMessage)
	c.String("node_list", &m.Nodes)
	c.String("part_name", &m.Partition)
	codec.List(c, "preemptee_job_id", "u32", &m.Preempted, func(c *codec.Codec, id *uint32) { c.Uint32("preemptee_job_id", id) })
	c.Uint32("proc_cnt", &m.Processors)
	c.Time("start_time", &m.Start)
	var load float64 // always 0 since 25.11
	c.Float("sys_usage_per", &load)
}
