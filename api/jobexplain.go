package api

import (
	"cmp"
	"strings"
	"time"

	"schedrestd/api/reason"
	"schedrestd/api/schema"
	"schedrestd/model"
)

// explained declares why a job waits or has failed, for people who do not know Slurm.
var explained = schema.Object("job_explanation", func() schema.Fields[JobRow] {
	return schema.Fields[JobRow]{
		schema.Show("why", schema.String, func(j *JobRow) string { return j.explain().Why }, "Why the job waits, or how it failed, in one sentence"),
		schema.Show("change", schema.String, func(j *JobRow) string { return j.explain().Change }, "What would change it; empty if nothing would"),
		schema.Show("about", schema.String, (*JobRow).reasonObject, "What the reason is about, such as \"dependency afterok:17\" or \"QOS normal\"; empty if it is about the job alone"),
	}
})

// hasExplanation reports whether the request asks for an explanation, and the job
// waits or has failed.
func (j *JobRow) hasExplanation() bool {
	if !j.Explain {
		return false
	}
	// A job that was cancelled keeps the reason for which it waited.
	return j.State.Base() == model.JobPending || j.State.Ended() && reason.IsFailure(reason.Name(j.StateReason))
}

// explain explains the reason of the job. An unknown one is shown as it is, with what
// the controller adds to it.
func (j *JobRow) explain() reason.Explanation {
	name := reason.Name(j.StateReason)
	if e, ok := reason.Explain(name); ok {
		return e
	}
	return reason.Explanation{Why: cmp.Or(j.StateDescription, name)}
}

// reasonObject returns what the reason is about, as far as the job's record has it.
func (j *JobRow) reasonObject() string {
	label := func(kind, name string) string {
		if name == "" {
			return ""
		}
		return kind + " " + name
	}
	switch name := reason.Name(j.StateReason); {
	case strings.HasPrefix(name, "Dependency"):
		return label("dependency", j.Dependency)
	case name == "Licenses":
		return label("licenses", j.Licenses)
	case strings.HasPrefix(name, "Reservation"):
		return label("reservation", j.Reservation)
	case strings.HasPrefix(name, "Partition"):
		return label("partition", j.Partition)
	case name == "BeginTime":
		return label("begin time", j.EligibleTime.Go().UTC().Format(time.RFC3339))
	case name == "ReqNodeNotAvail", name == "NodeDown":
		return label("nodes", j.ReqNodes)
	case strings.HasPrefix(name, "Assoc"), strings.HasSuffix(name, "PerAccount"), strings.HasPrefix(name, "InvalidAccount"), strings.HasPrefix(name, "Account"):
		return label("account", j.Account)
	case strings.Contains(name, "QOS"), strings.HasSuffix(name, "PerUser"):
		return label("QOS", j.QOS)
	}
	return ""
}
