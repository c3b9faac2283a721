package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// Priorities answers a request for the priorities of waiting jobs, which has no
// body (table priority_factors_response). Protocol 38 has another layout, which
// is not supported.
type Priorities struct {
	Jobs codec.Stream[model.JobPriority]
}

// Walk encodes or decodes the fields in wire order.
func (m *Priorities) Walk(c *codec.Codec) {
	if c.Until(codec.V2302) {
		return
	}
	codec.StreamList(c, "priority_factors_list", "priority_factors_object", &m.Jobs, jobPriority)
}

// jobPriority encodes or decodes one element of Priorities.Jobs (table
// priority_factors_object).
func jobPriority(c *codec.Codec, p *model.JobPriority) {
	if c.Until(codec.V2302) {
		return
	}
	c.String("account", &p.Account)
	if c.Since(codec.V2605) {
		codec.Record(c, "step_id", "step_id", &p.StepID, stepID)
	} else {
		c.Uint32("job_id", &p.StepID.JobID)
	}
	c.String("partition", &p.Partition)
	c.Float("direct_prio", &p.Direct)
	if c.If("!direct_prio", p.Direct == 0) {
		c.Float("priority_age", &p.Age)
		c.Float("priority_assoc", &p.Association)
		c.Float("priority_fs", &p.FairShare)
		c.Float("priority_js", &p.JobSize)
		c.Float("priority_part", &p.PartitionPart)
		c.Float("priority_qos", &p.QOSPart)
		c.Uint32("priority_site", &p.Site)
		floats(c, "priority_tres", &p.TRES)
		c.Strings("tres_names", &p.TRESNames)
		floats(c, "tres_weights", &p.TRESWeights)
		c.Uint32("nice", &p.Nice)
	}
	c.EndIf()
	c.String("qos", &p.QOS)
	c.Uint32("user_id", &p.UserID)
}
