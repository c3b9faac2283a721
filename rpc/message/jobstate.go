package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// JobStateRequest requests only the states of jobs (table job_state_request).
// It exists from protocol 40 on. If Jobs is empty, JobStateRequest selects all
// jobs.
type JobStateRequest struct{ Jobs []model.JobSelection }

// Walk encodes or decodes the fields in wire order.
func (m *JobStateRequest) Walk(c *codec.Codec) {
	if c.Until(codec.V2311) {
		return
	}
	n := c.Count("count", len(m.Jobs))
	loop(c, "count", n, &m.Jobs, func(c *codec.Codec, j *model.JobSelection) {
		c.Uint32("step_id.job_id", &j.JobID)
		c.OptUint32("array_task_id", &j.ArrayTaskID)
		c.OptUint32("het_job_offset", &j.HetOffset)
	})
}

// JobStates answers JobStateRequest (table job_state_response).
type JobStates struct {
	Jobs codec.Stream[model.JobStateEntry]
}

// Walk encodes or decodes the fields in wire order.
func (m *JobStates) Walk(c *codec.Codec) {
	if c.Until(codec.V2311) {
		return
	}
	n := c.Count("jobs_count", m.Jobs.Size())
	c.Loop("jobs_count", n, func(int) { codec.Inline(c, "jobs_count", &m.Jobs, jobState) })
}

func jobState(c *codec.Codec, j *model.JobStateEntry) {
	c.Uint32("job_id", &j.JobID)
	c.Uint32("array_job_id", &j.ArrayJobID)
	if c.If("array_job_id", j.ArrayJobID != 0) {
		c.OptUint32("array_task_id", &j.ArrayTaskID)
		c.Bitmap("array_task_id_bitmap", &j.ArrayTasks)
	}
	if c.Else(j.ArrayJobID == 0) {
		c.Uint32("het_job_id", &j.HetJobID)
	}
	c.EndIf()
	c.Uint32("state", (*uint32)(&j.State))
}

// selectedStep encodes or decodes the id of a job or of a part of a job (table
// selected_step).
func selectedStep(c *codec.Codec, s *model.SelectedStep) {
	codec.Record(c, "step_id", "step_id", &s.Step, stepID)
	c.OptUint32("array_task_id", &s.ArrayTaskID)
	c.OptUint32("het_job_offset", &s.HetOffset)
	if c.Since(codec.V2411) {
		c.Bitmap("array_bitmap", &s.ArrayTasks)
	}
}

// JobUserInfoRequest requests the jobs of one user (table
// job_user_info_request). The answer is a JobInfo.
type JobUserInfoRequest struct {
	UserID    uint32
	ShowFlags uint16 // a model.Show
}

// Walk encodes or decodes the fields in wire order.
func (m *JobUserInfoRequest) Walk(c *codec.Codec) {
	c.Uint32("user_id", &m.UserID)
	c.Uint16("show_flags", &m.ShowFlags)
}
