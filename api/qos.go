package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// QOSRow is the record of a quality of service, with a Records value, which
// translates the ids in the record to names.
type QOSRow struct {
	*model.QOS
	*Records
	Limits  []Limit[model.QOS] // limits that the client sent
	Preempt *[]string          // names that the client sent; nil if it sent no list
}

// qosLimit returns a field for limits on trackable resources.
func qosLimit(name string, at func(*model.QOS) *string, doc string, opts ...schema.Option) schema.Field[QOSRow] {
	return schema.GetSet(name, amounts, func(q *QOSRow) []model.TRES { return q.Amounts(*at(q.QOS)) },
		func(q *QOSRow, list []model.TRES) error {
			q.Limits = append(q.Limits, Limit[model.QOS]{at, list})
			return nil
		}, doc, opts...)
}

// qosFlags are the names of the flags of a quality of service. The first three
// are only for changes.
var qosFlags = schema.Words("qos_flags",
	schema.Bit("NOT_SET", uint32(1)<<28),
	schema.Bit("ADD", uint32(1)<<29),
	schema.Bit("REMOVE", uint32(1)<<30),
	schema.Bit("DELETED", uint32(1)<<13, schema.Since(V43)),
	schema.Bit("PARTITION_MINIMUM_NODE", uint32(1)<<0),
	schema.Bit("PARTITION_MAXIMUM_NODE", uint32(1)<<1),
	schema.Bit("PARTITION_TIME_LIMIT", uint32(1)<<2),
	schema.Bit("ENFORCE_USAGE_THRESHOLD", uint32(1)<<3),
	schema.Bit("NO_RESERVE", uint32(1)<<4),
	schema.Bit("REQUIRED_RESERVATION", uint32(1)<<5),
	schema.Bit("DENY_LIMIT", uint32(1)<<6),
	schema.Bit("OVERRIDE_PARTITION_QOS", uint32(1)<<7),
	schema.Bit("PARTITION_QOS", uint32(1)<<12, schema.Since(V43)),
	schema.Bit("NO_DECAY", uint32(1)<<8),
	schema.Bit("USAGE_FACTOR_SAFE", uint32(1)<<9),
	schema.Bit("RELATIVE", uint32(1)<<10),
)

// qosPreemptModes are words that describe what happens to preempted jobs.
var qosPreemptModes = schema.Words("qos_preempt_modes",
	schema.Part("DISABLED", ^uint16(0), 0),
	schema.Bit("SUSPEND", uint16(1)<<0),
	schema.Bit("REQUEUE", uint16(1)<<1),
	schema.Bit("CANCEL", uint16(1)<<3),
	schema.Bit("GANG", uint16(1)<<15),
)

// QOS declares the fields of a quality of service.
var QOS = schema.Object("qos", func() schema.Fields[QOSRow] {
	return schema.Fields[QOSRow]{
		schema.F("description", text, func(q *QOSRow) *model.Text { return &q.Description }, "Any text"),
		schema.F("flags", qosFlags.Type, func(q *QOSRow) *uint32 { return &q.Flags }, "Flags of the record"),
		schema.F("id", schema.Int32, func(q *QOSRow) *uint32 { return &q.ID }, "Number of the quality of service", schema.Bare),
		schema.Group("limits", "Limits", schema.Fields[QOSRow]{
			schema.F("grace_time", plainLimit, func(q *QOSRow) *uint32 { return &q.GraceTime }, "Time between the notice to a job and its preemption", schema.Unit("s")),
			schema.Group("max", "Maximum values", schema.Fields[QOSRow]{
				schema.Group("active_jobs", "Limits for all running jobs of the QOS together", schema.Fields[QOSRow]{
					schema.F("accruing", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.GrpJobsAccrue }, "Number of jobs that gain priority with age", schema.Count),
					schema.F("count", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.GrpJobs }, "Number of running jobs", schema.Count),
				}),
				schema.Group("jobs", "Limits of jobs", schema.Fields[QOSRow]{
					schema.F("count", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.GrpSubmitJobs }, "Number of pending and running jobs, of all users together", schema.Count, schema.Since(V42)),
					schema.Group("active_jobs", "Limits of running jobs", schema.Fields[QOSRow]{
						schema.Group("per", "Limits for one object", schema.Fields[QOSRow]{
							schema.F("account", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxJobsPA }, "Maximum number of jobs of an account", schema.Count),
							schema.F("user", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxJobsPU }, "Maximum number of jobs of a user", schema.Count),
						}),
					}),
					schema.Group("per", "Limits of pending and running jobs of one account or user", schema.Fields[QOSRow]{
						schema.F("account", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxSubmitJobsPA }, "Maximum number of jobs of an account", schema.Count),
						schema.F("user", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxSubmitJobsPU }, "Maximum number of jobs of a user", schema.Count),
					}),
				}),
				schema.Group("tres", "Limits of trackable resources", schema.Fields[QOSRow]{
					qosLimit("total", func(q *model.QOS) *string { return &q.GrpTRES }, "Limit for all running jobs of the QOS together"),
					schema.Group("minutes", "Limits in resource minutes", schema.Fields[QOSRow]{
						qosLimit("total", func(q *model.QOS) *string { return &q.GrpTRESMins }, "Limit for all jobs of the QOS together, accumulated", schema.Since(V42)),
						schema.Group("per", "Limits for one object", schema.Fields[QOSRow]{
							qosLimit("qos", func(q *model.QOS) *string { return &q.GrpTRESRunMins }, "Limit of the minutes that running jobs of the QOS may still use"),
							qosLimit("job", func(q *model.QOS) *string { return &q.MaxTRESMinsPJ }, "Limit for one job"),
							qosLimit("account", func(q *model.QOS) *string { return &q.MaxTRESRunMinsPA }, "Limit of the minutes that running jobs of one account may still use"),
							qosLimit("user", func(q *model.QOS) *string { return &q.MaxTRESRunMinsPU }, "Limit of the minutes that running jobs of one user may still use"),
						}),
					}),
					schema.Group("per", "Limits for one object", schema.Fields[QOSRow]{
						qosLimit("account", func(q *model.QOS) *string { return &q.MaxTRESPA }, "Limit for one account"),
						qosLimit("job", func(q *model.QOS) *string { return &q.MaxTRESPJ }, "Limit for one job"),
						qosLimit("node", func(q *model.QOS) *string { return &q.MaxTRESPN }, "Limit for one node of a job"),
						qosLimit("user", func(q *model.QOS) *string { return &q.MaxTRESPU }, "Limit for one user"),
					}),
				}),
				schema.Group("wall_clock", "Time limits", schema.Fields[QOSRow]{
					schema.Group("per", "Limits for one object", schema.Fields[QOSRow]{
						schema.F("qos", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.GrpWall }, "Time limit of all jobs of the QOS together", schema.Unit("min")),
						schema.F("job", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxWallPJ }, "Time limit of one job", schema.Unit("min")),
					}),
				}),
				schema.Group("accruing", "Limits of jobs that gain priority with age", schema.Fields[QOSRow]{
					schema.Group("per", "Limits for one object", schema.Fields[QOSRow]{
						schema.F("account", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxJobsAccruePA }, "Maximum number of jobs of an account", schema.Count),
						schema.F("user", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MaxJobsAccruePU }, "Maximum number of jobs of a user", schema.Count),
					}),
				}),
			}),
			schema.F("factor", factor, func(q *QOSRow) *float64 { return &q.LimitFactor }, "Factor for limits of associations", schema.Bare),
			schema.Group("min", "Minimum values", schema.Fields[QOSRow]{
				schema.F("priority_threshold", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.MinPrioThreshold }, "Minimum priority of a job for which resources are kept free", schema.Bare),
				schema.Group("tres", "Limits of trackable resources", schema.Fields[QOSRow]{
					schema.Group("per", "Limits for one object", schema.Fields[QOSRow]{
						qosLimit("job", func(q *model.QOS) *string { return &q.MinTRESPJ }, "Minimum for one job"),
					}),
				}),
			}),
		}),
		schema.F("name", schema.String, func(q *QOSRow) *string { return &q.Name }, "Name of the quality of service"),
		schema.Group("preempt", "Preemption", schema.Fields[QOSRow]{
			schema.GetSet("list", names(schema.Named("qos_preempt_list", schema.List(schema.String))), preemptNames, func(q *QOSRow, names []string) error { q.Preempt = &names; return nil }, "Qualities of service whose jobs may be preempted by jobs of this QOS"),
			schema.F("mode", qosPreemptModes.Type, func(q *QOSRow) *uint16 { return &q.PreemptMode }, "Action when a job of the QOS is preempted"),
			schema.F("exempt_time", number, func(q *QOSRow) *model.Opt[uint32] { return &q.PreemptExemptTime }, "Time for which jobs of the QOS run before they can be preempted", schema.Unit("s")),
		}),
		schema.F("priority", limitNumber, func(q *QOSRow) *model.Opt[uint32] { return &q.Priority }, "Factor in the priority of the jobs", schema.Bare),
		schema.F("usage_factor", factor, func(q *QOSRow) *float64 { return &q.UsageFactor }, "Factor for the usage of the jobs", schema.Bare),
		schema.F("usage_threshold", factor, func(q *QOSRow) *float64 { return &q.UsageThreshold }, "Fair-share factor that a job needs to start", schema.Bare),
	}
})

// preemptNames returns the names of the qualities of service whose jobs q may
// preempt. It omits ids that have no name.
func preemptNames(q *QOSRow) []string {
	var list []string
	for n := range members(&q.PreemptIDs) {
		if name := q.Records.QOS[uint32(n)]; name != "" && n > 0 {
			list = append(list, name)
		}
	}
	return list
}

// QOSAnswer is an answer with qualities of service.
type QOSAnswer struct {
	QOS schema.Stream[QOSRow]
	Envelope
}

// QOSList declares the fields of a QOSAnswer.
var QOSList = enveloped("openapi_slurmdbd_qos_resp", func(a *QOSAnswer) *Envelope { return &a.Envelope },
	schema.F("qos", schema.Named("qos_list", schema.StreamOf(QOS.Type)), func(a *QOSAnswer) *schema.Stream[QOSRow] { return &a.QOS }, "The qualities of service", schema.Required(0)),
)

// QOSListParams are the parameters of GetQOSList. Clients may send names
// instead of ids.
type QOSListParams struct{ model.QOSFilter }

var qosListParams = schema.Object("", func() schema.Fields[QOSListParams] {
	return schema.Fields[QOSListParams]{
		texts("description", "Descriptions of QOS", func(p *QOSListParams) *[]string { return &p.Descriptions }),
		flagText("Include deleted QOS", "Include deleted records", func(p *QOSListParams) *model.QOSFilterFlags { return &p.Flags }, model.QOSWithDeleted, schema.Since(V42)),
		texts("id", "Numbers or names of QOS", func(p *QOSListParams) *[]string { return &p.IDs }),
		ignoredParam[QOSListParams]("format", schema.Until(V45)),
		texts("name", "Names of QOS", func(p *QOSListParams) *[]string { return &p.Names }),
		schema.F("preempt_mode", joined(qosPreemptModes), func(p *QOSListParams) *uint16 { return &p.PreemptMode }, "Action when a job of the QOS is preempted"),
		flagText("with_deleted", "Include deleted records", func(p *QOSListParams) *model.QOSFilterFlags { return &p.Flags }, model.QOSWithDeleted, schema.Undocumented(V42)),
	}
})

var GetQOSList = declare(scope.SlurmdbRead, qosListParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "qos/", ID: "get_qos", Paged: true,
	Doc: "List the qualities of service", Answer: QOSList,
	Description: "Returns the qualities of service (QOS), which set limits and priorities of jobs in addition to associations. Each parameter narrows the selection.",
	AnswerDoc:   "The qualities of service",
})

type QOSParams struct {
	Name        string
	WithDeleted bool
}

var qosParams = schema.Object("", func() schema.Fields[QOSParams] {
	return schema.Fields[QOSParams]{
		schema.F("qos", objectName("quality of service"), func(p *QOSParams) *string { return &p.Name }, "Name of the quality of service, or its number", schema.Required(0)),
		schema.F("with_deleted", boolText, func(p *QOSParams) *bool { return &p.WithDeleted }, "Include the record even if it is deleted"),
	}
})

var GetQOS = declare(scope.SlurmdbRead, qosParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "qos/{qos}", ID: "get_single_qos",
	Doc: "Show one quality of service", Answer: QOSList,
	Description: "Returns the quality of service (QOS) with this name.",
	AnswerDoc:   "The quality of service, in a list",
})
