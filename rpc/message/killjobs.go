package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// KillJobs signals or cancels several jobs (table kill_jobs). It exists from
// protocol 40 on.
type KillJobs struct{ model.KillJobs }

// Walk encodes or decodes the fields in wire order.
func (m *KillJobs) Walk(c *codec.Codec) {
	if c.Until(codec.V2311) {
		return
	}
	c.String("account", &m.Account)
	if c.Since(codec.V2511) {
		c.String("admin_comment", &m.AdminComment)
	}
	c.Uint16("flags", (*uint16)(&m.Flags))
	c.String("job_name", &m.Name)
	c.Strings("jobs_array", &m.Jobs)
	c.String("partition", &m.Partition)
	c.String("qos", &m.QOS)
	c.String("reservation", &m.Reservation)
	c.Uint16("signal", &m.Signal)
	const anyState = 12 // one more than the number of the last state; 0 would mean pending
	optAs(c, "state", &m.State, anyState)
	c.OptUint32("user_id", &m.UserID)
	c.String("user_name", &m.UserName)
	c.String("wckey", &m.WCKey)
	c.String("nodelist", &m.Nodes)
}

// KillJobsResponse answers KillJobs (table kill_jobs_response).
type KillJobsResponse struct {
	Jobs codec.Stream[model.KillResult]
}

// Walk encodes or decodes the fields in wire order.
func (m *KillJobsResponse) Walk(c *codec.Codec) {
	if c.Until(codec.V2311) {
		return
	}
	n := c.Count("jobs_cnt", m.Jobs.Size())
	c.Loop("jobs_cnt", n, func(int) { codec.Inline(c, "jobs_cnt", &m.Jobs, killResult) })
}

func killResult(c *codec.Codec, r *model.KillResult) {
	c.Uint32("error_code", &r.Code)
	c.String("error_msg", &r.Message)
	codec.Record(c, "id", "selected_step", &r.ID, selectedStep)
	c.OptUint32("real_job_id", &r.RealJobID)
	c.String("sibling_name", &r.Sibling)
}
