package api

import (
	"schedrestd/api/reason"
	"schedrestd/api/schema"
	"schedrestd/model"
)

// explained declares why a job waits or has failed, for people who do not know Slurm.
var explained = schema.Object("job_explanation", func() schema.Fields[reason.Explanation] {
	return schema.Fields[reason.Explanation]{
		schema.F("why", schema.String, func(e *reason.Explanation) *string { return &e.Why }, "Why the job waits, or how it failed, in one sentence"),
		schema.F("change", schema.String, func(e *reason.Explanation) *string { return &e.Change }, "What would change it; empty if nothing would"),
		schema.F("about", schema.String, func(e *reason.Explanation) *string { return &e.About }, "What the reason is about, such as \"dependency afterok:17\" or \"QOS normal\"; empty if it is about the job alone"),
		schema.OmitIf(schema.F("limit", explainedLimit.Type, func(e *reason.Explanation) *reason.Limit { return e.Limit }, "The limit that keeps the job from starting; absent if it is not known, or if the reason is another one"),
			func(e *reason.Explanation) bool { return e.Limit == nil }),
		schema.OmitIf(schema.F("licenses", schema.Named("job_explanation_licenses", schema.List(explainedLicense.Type)), func(e *reason.Explanation) *[]reason.License { return &e.Licenses }, "The licenses for which the job waits"),
			func(e *reason.Explanation) bool { return len(e.Licenses) == 0 }),
		schema.OmitIf(schema.F("nodes", schema.Named("job_explanation_nodes", schema.List(explainedNode.Type)), func(e *reason.Explanation) *[]reason.Node { return &e.Nodes }, "Nodes that the job needs and that start no jobs, at most ten"),
			func(e *reason.Explanation) bool { return len(e.Nodes) == 0 }),
		schema.OmitIf(schema.F("reservation", explainedReservation.Type, func(e *reason.Explanation) *model.Reservation { return e.Reservation }, "The reservation for which the job waits, or that has a node which it needs"),
			func(e *reason.Explanation) bool { return e.Reservation == nil }),
		schema.OmitIf(schema.F("place", explainedPlace.Type, func(e *reason.Explanation) *reason.Place { return e.Place }, "The place of the job among those that wait for their turn in the same partition"),
			func(e *reason.Explanation) bool { return e.Place == nil }),
		schema.OmitIf(schema.F("expected_start", moment, func(e *reason.Explanation) *model.Time { return &e.Start }, "Time at which the controller expects the job to start", schema.Unit(UnixTime)),
			func(e *reason.Explanation) bool { return e.Start == 0 }),
	}
})

var explainedLimit = schema.Object("job_explanation_limit", func() schema.Fields[reason.Limit] {
	return schema.Fields[reason.Limit]{
		schema.F("name", schema.String, func(l *reason.Limit) *string { return &l.Name }, "Name of the limit, as sacctmgr or scontrol spells it"),
		schema.F("resource", schema.String, func(l *reason.Limit) *string { return &l.Resource }, "Trackable resource, such as cpu or gres/gpu; empty for a number of jobs or a time"),
		schema.F("of", schema.String, func(l *reason.Limit) *string { return &l.Of }, "What has the limit, such as \"QOS normal\" or \"account physics\""),
		schema.F("whose", schema.String, func(l *reason.Limit) *string { return &l.Whose }, "Whose jobs the limit is for, such as \"user ann\"; empty for all jobs"),
		schema.F("unit", schema.String, func(l *reason.Limit) *string { return &l.Unit }, "Unit of the amounts, such as \"MiB\", \"min\" or \"MiB min\"; empty for a number"),
		schema.Show("allowed", schema.Int64, func(l *reason.Limit) uint64 { return l.Allowed }, "What the limit permits", schema.Bare),
		schema.OmitIf(schema.Show("used", schema.Int64, func(l *reason.Limit) uint64 { return l.Used.Number }, "What counts already; absent for a limit on each job", schema.Bare),
			func(l *reason.Limit) bool { return !l.Used.Set }),
		schema.OmitIf(schema.Show("reserved", schema.Int64, func(l *reason.Limit) uint64 { return l.Reserved.Number }, "What running jobs may still use until their time limits; only for a limit on what jobs have used in the past", schema.Bare),
			func(l *reason.Limit) bool { return !l.Reserved.Set }),
		schema.OmitIf(schema.Show("requested", schema.Int64, func(l *reason.Limit) uint64 { return l.Requested.Number }, "What this job asks for; absent for a limit on the number of jobs, and without a time limit", schema.Bare),
			func(l *reason.Limit) bool { return !l.Requested.Set }),
	}
})

var explainedLicense = schema.Object("job_explanation_license", func() schema.Fields[reason.License] {
	return schema.Fields[reason.License]{
		schema.F("name", schema.String, func(l *reason.License) *string { return &l.Name }, "Name of the license"),
		schema.F("total", schema.Int32, func(l *reason.License) *uint32 { return &l.Total }, "Total number of licenses", schema.Count),
		schema.F("used", schema.Int32, func(l *reason.License) *uint32 { return &l.InUse }, "Number of licenses in use by jobs", schema.Count),
		schema.F("reserved", schema.Int32, func(l *reason.License) *uint32 { return &l.Reserved }, "Number of licenses that reservations hold", schema.Count),
		schema.F("requested", schema.Int64, func(l *reason.License) *uint64 { return &l.Requested }, "Number of licenses that this job asks for", schema.Count),
	}
})

var explainedNode = schema.Object("job_explanation_node", func() schema.Fields[reason.Node] {
	return schema.Fields[reason.Node]{
		schema.F("name", schema.String, func(n *reason.Node) *string { return &n.Name }, "Name of the node"),
		schema.F("state", schema.String, func(n *reason.Node) *string { return &n.State }, "Why it starts no jobs, such as down or drained"),
		schema.F("reason", schema.String, func(n *reason.Node) *string { return &n.Reason }, "The administrator's reason for this"),
	}
})

var explainedReservation = schema.Object("job_explanation_reservation", func() schema.Fields[model.Reservation] {
	return schema.Fields[model.Reservation]{
		schema.F("name", schema.String, func(r *model.Reservation) *string { return &r.Name }, "Name of the reservation"),
		schema.F("users", schema.String, func(r *model.Reservation) *string { return &r.Users }, "Users allowed to use it, separated by commas; a user prefixed with - is denied"),
		schema.F("accounts", schema.String, func(r *model.Reservation) *string { return &r.Accounts }, "Accounts allowed to use it, separated by commas; an account prefixed with - is denied"),
		schema.F("start_time", moment, func(r *model.Reservation) *model.Time { return &r.StartTime }, "Time at which it begins", schema.Unit(UnixTime)),
		schema.F("end_time", moment, func(r *model.Reservation) *model.Time { return &r.EndTime }, "Time at which it ends", schema.Unit(UnixTime)),
	}
})

var explainedPlace = schema.Object("job_explanation_place", func() schema.Fields[reason.Place] {
	return schema.Fields[reason.Place]{
		schema.F("partition", schema.String, func(p *reason.Place) *string { return &p.Partition }, "Partition in which the job has this place: the one in which it comes first"),
		schema.F("position", schema.Int64, func(p *reason.Place) *int { return &p.Position }, "Position by priority; 1 for the job that comes first", schema.Bare),
		schema.F("waiting", schema.Int64, func(p *reason.Place) *int { return &p.Waiting }, "Number of jobs that wait there for their turn; an array whose tasks wait counts as one", schema.Count),
		schema.F("priority", schema.Int64, func(p *reason.Place) *uint32 { return &p.Priority }, "Priority of the job in this partition", schema.Bare),
		schema.OmitIf(schema.F("factors", explainedFactors.Type, func(p *reason.Place) *model.JobPriority { return p.Factors }, "The parts of the priority; only in answers about one job, and absent if the priority is not made of parts"),
			func(p *reason.Place) bool { return p.Factors == nil }),
	}
})

var explainedFactors = schema.Object("job_explanation_factors", func() schema.Fields[model.JobPriority] {
	return schema.Fields[model.JobPriority]{
		schema.F("age", schema.Float, func(p *model.JobPriority) *float64 { return &p.Age }, "Part for the time that the job has waited", schema.Bare),
		schema.F("association", schema.Float, func(p *model.JobPriority) *float64 { return &p.Association }, "Part of the association", schema.Bare),
		schema.F("fair_share", schema.Float, func(p *model.JobPriority) *float64 { return &p.FairShare }, "Part for how little the account has used", schema.Bare),
		schema.F("job_size", schema.Float, func(p *model.JobPriority) *float64 { return &p.JobSize }, "Part for the size of the job", schema.Bare),
		schema.F("partition", schema.Float, func(p *model.JobPriority) *float64 { return &p.PartitionPart }, "Part of the partition", schema.Bare),
		schema.F("qos", schema.Float, func(p *model.JobPriority) *float64 { return &p.QOSPart }, "Part of the QOS", schema.Bare),
		schema.Show("tres", schema.Float, sumOfTRES, "Part for the resources that the job asks for", schema.Bare),
		schema.Show("site", schema.Int64, func(p *model.JobPriority) int64 { return signed(p.Site) }, "Part that the site's plugin has set", schema.Bare),
		schema.Show("nice", schema.Int64, func(p *model.JobPriority) int64 { return signed(p.Nice) }, "Nice value, which is subtracted", schema.Bare),
	}
})

func sumOfTRES(p *model.JobPriority) (sum float64) {
	for _, v := range p.TRES {
		sum += v
	}
	return sum
}

// hasExplanation reports whether the request asks for an explanation, and the job
// waits or has failed.
func (j *JobRow) hasExplanation() bool {
	if j.Explain == nil {
		return false
	}
	// A job that was cancelled keeps the reason for which it waited.
	return j.State.Base() == model.JobPending || j.State.Ended() && reason.IsFailure(reason.Name(j.StateReason))
}
