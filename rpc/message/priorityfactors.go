package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// PriorityFactors are the parts of the priority of all waiting jobs (table
// priority_factors_response). Up to protocol 38, the request and the answer were
// different, and the project does not use them.
type PriorityFactors struct {
	Jobs codec.Stream[model.PriorityFactors]
}

// Walk encodes or decodes the fields in wire order.
func (m *PriorityFactors) Walk(c *codec.Codec) {
	if c.Until(codec.V2302) {
		return
	}
	codec.StreamList(c, "priority_factors_list", "priority_factors_object", &m.Jobs, priorityFactors)
}

// priorityFactors encodes or decodes the parts of a job's priority in one partition
// (table priority_factors_object).
func priorityFactors(c *codec.Codec, p *model.PriorityFactors) {
	if c.Until(codec.V2302) {
		return
	}
	c.String("account", &p.Account)
	if c.Until(codec.V2605) {
		c.Uint32("job_id", &p.JobID)
	} else {
		codec.Record(c, "step_id", "step_id", &p.StepID, stepID)
	}
	c.String("partition", &p.Partition)
	c.Float("direct_prio", &p.Direct)
	if c.If("direct_prio == 0", p.Direct == 0) {
		c.Float("priority_age", &p.Age)
		c.Float("priority_assoc", &p.Assoc)
		c.Float("priority_fs", &p.FairShare)
		c.Float("priority_js", &p.JobSize)
		c.Float("priority_part", &p.PartFactor)
		c.Float("priority_qos", &p.QOSFactor)
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
