package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// SubmitRequest submits a batch job (table job_desc).
type SubmitRequest struct{ Desc model.JobDesc }

// Walk encodes or decodes the fields in wire order.
func (m *SubmitRequest) Walk(c *codec.Codec) { jobDesc(c, &m.Desc) }

// SubmitResponse answers SubmitRequest (table submit_response).
type SubmitResponse struct{ model.Submitted }

// Walk encodes or decodes the fields in wire order.
func (m *SubmitResponse) Walk(c *codec.Codec) {
	if c.Until(codec.V2511) {
		c.Uint32("job_id", &m.StepID.JobID)
		c.OptUint32("step_id", &m.StepID.Step)
	} else {
		codec.Record(c, "step_id", "step_id", &m.StepID, stepID)
	}
	c.Uint32("error_code", &m.ErrorCode)
	c.String("job_submit_user_msg", &m.UserMessage)
}
