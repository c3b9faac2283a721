package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// usageRow declares the fields of the usage in a period. UsageFields lists those
// of each report.
var usageRow = schema.Object("usage", func() schema.Fields[model.UsageRow] {
	return schema.Fields[model.UsageRow]{
		schema.F("cluster", schema.String, func(u *model.UsageRow) *string { return &u.Cluster }, "Cluster"),
		schema.F("account", schema.String, func(u *model.UsageRow) *string { return &u.Account }, "Account"),
		schema.F("user", schema.String, func(u *model.UsageRow) *string { return &u.User }, "User; empty for all users of the account or workload key together"),
		schema.F("partition", schema.String, func(u *model.UsageRow) *string { return &u.Partition }, "Partition of the association; empty for all partitions together"),
		schema.F("accounts", stringArray, func(u *model.UsageRow) *[]string { return &u.Accounts }, "Accounts that the user has used"),
		schema.F("wckey", schema.String, func(u *model.UsageRow) *string { return &u.WCKey }, "Workload key"),
		schema.F("qos", schema.String, func(u *model.UsageRow) *string { return &u.QOS }, "Quality of service"),
		schema.F("min_size", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.MinSize }, "Smallest number of CPUs of the jobs", schema.Count),
		schema.OmitIf(schema.Show("max_size", schema.Int64, func(u *model.UsageRow) uint64 { return u.MaxSize.Or(0) }, "Largest number of CPUs of the jobs; absent if there is no limit", schema.Count),
			func(u *model.UsageRow) bool { return !u.MaxSize.Set }),
		schema.F("jobs", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Jobs }, "Number of jobs that ran in the period", schema.Count),
		schema.F("tres", schema.String, func(u *model.UsageRow) *string { return &u.TRES }, "Trackable resource, such as cpu or gres/gpu"),
		schema.F("start", seconds, func(u *model.UsageRow) *model.Time { return &u.Start }, "Time at which the period starts", schema.Unit(UnixTime)),
		schema.F("end", seconds, func(u *model.UsageRow) *model.Time { return &u.End }, "Time at which the period ends, or up to which its usage is rolled up", schema.Unit(UnixTime)),
		schema.F("allocated", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Allocated }, "Use by jobs: the time of each unit of the resource, added up, such as CPU seconds", schema.Unit("s")),
		schema.F("down", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Down }, "Time for which units were down", schema.Unit("s")),
		schema.F("planned_down", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.PlannedDown }, "Time for which units were down because of maintenance", schema.Unit("s")),
		schema.F("idle", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Idle }, "Time for which units were idle", schema.Unit("s")),
		schema.F("planned", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Planned }, "Time for which idle units were kept for waiting jobs", schema.Unit("s")),
		schema.F("overcommitted", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Over }, "Time for which jobs used or waited for more units than the cluster has", schema.Unit("s")),
		schema.F("reported", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Reported }, "Sum of allocated, down, planned_down, idle and planned", schema.Unit("s")),
		schema.F("count", schema.Int64, func(u *model.UsageRow) *uint64 { return &u.Count }, "Number of units in the cluster, on average", schema.Count),
	}
})

// UsageReports are the values of UsageParams.Report. The first is the default.
var UsageReports = []string{"cluster", "accounts", "users", "associations", "wckeys", "qos", "job_sizes", "top_users"}

// UsageFields returns the names of the fields that a report has.
func UsageFields(report string) []string {
	var names []string
	switch report {
	case "cluster":
		return []string{"cluster", "tres", "start", "end", "count", "allocated", "down", "planned_down", "idle", "planned", "overcommitted", "reported"}
	case "accounts":
		names = []string{"account"}
	case "users":
		names = []string{"user", "account"}
	case "associations":
		names = []string{"account", "user", "partition"}
	case "wckeys":
		names = []string{"wckey", "user"}
	case "qos":
		names = []string{"account", "qos"}
	case "job_sizes":
		names = []string{"account", "min_size", "max_size", "jobs"}
	case "top_users":
		names = []string{"user", "accounts"}
	}
	return slices.Concat([]string{"cluster"}, names, []string{"tres", "start", "end", "allocated"})
}

// UsageAnswer is an answer with usage.
type UsageAnswer struct {
	Usage    schema.Stream[model.UsageRow]
	RolledUp []model.RolledUp
	Envelope
}

var rolledUp = schema.Object("usage_rolled_up", func() schema.Fields[model.RolledUp] {
	return schema.Fields[model.RolledUp]{
		schema.F("cluster", schema.String, func(r *model.RolledUp) *string { return &r.Cluster }, "Cluster"),
		schema.F("until", seconds, func(r *model.RolledUp) *model.Time { return &r.Until }, "Time at which the last period ends for which the accounting daemon has usage; 0 if there is none", schema.Unit(UnixTime)),
	}
})

// Usage declares the fields of a UsageAnswer.
var Usage = enveloped("openapi_usage_resp", func(a *UsageAnswer) *Envelope { return &a.Envelope },
	schema.F("usage", schema.Named("usage_list", schema.StreamOf(usageRow.Type)), func(a *UsageAnswer) *schema.Stream[model.UsageRow] { return &a.Usage }, "The usage of each resource in each period", schema.Required(0)),
	schema.F("rolled_up", schema.Named("usage_rolled_up_list", schema.List(rolledUp.Type)), func(a *UsageAnswer) *[]model.RolledUp { return &a.RolledUp }, "Up to which time usage is rolled up, for each cluster"),
)

// UsageParams are the parameters of GetUsage.
type UsageParams struct {
	Report   string
	Start    model.Time // 0 for the default
	End      model.Time // 0 for the default
	By       string     // "hour", "day", "month", or "" for the whole time
	TRES     []string
	Clusters []string
	Accounts []string
	Users    []string
	WCKeys   []string
	QOS      []string
	Sizes    []uint64
	Top      uint32 // 0 for the default
}

var usageParams = schema.Object("", func() schema.Fields[UsageParams] {
	return schema.Fields[UsageParams]{
		schema.F("report", oneOf(UsageReports...), func(p *UsageParams) *string { return &p.Report },
			"What to report: cluster (its utilization; default), accounts (each with its users and subaccounts), users (in each account), associations (accounts and users), wckeys, qos (of each account), job_sizes, or top_users"),
		schema.F("start", instant, func(p *UsageParams) *model.Time { return &p.Start }, "Start of the time, rounded down to an hour; default: yesterday 0:00", schema.Unit(TimeText)),
		schema.F("end", instant, func(p *UsageParams) *model.Time { return &p.End }, "End of the time, rounded up to an hour; default: today 0:00, or now if the start is later", schema.Unit(TimeText)),
		schema.F("by", oneOf("day", "hour", "month"), func(p *UsageParams) *string { return &p.By }, "Divide the time into periods: hour, day or month. Days and months begin at midnight in the gateway's time zone, which must be that of the accounting daemon"),
		texts("tres", "Trackable resources, such as cpu,gres/gpu; default: all", func(p *UsageParams) *[]string { return &p.TRES }),
		clusterTexts("cluster", "Clusters, by default this cluster", func(p *UsageParams) *[]string { return &p.Clusters }),
		texts("account", "Accounts; except with users, job_sizes and top_users also their subaccounts", func(p *UsageParams) *[]string { return &p.Accounts }),
		texts("user", "Users", func(p *UsageParams) *[]string { return &p.Users }),
		texts("wckey", "Workload keys, for wckeys", func(p *UsageParams) *[]string { return &p.WCKeys }),
		texts("qos", "Qualities of service, for qos, by name or number", func(p *UsageParams) *[]string { return &p.QOS }),
		schema.F("sizes", jobSizeLimits, func(p *UsageParams) *[]uint64 { return &p.Sizes }, "Number of CPUs at which each group of job_sizes begins, ascending; default: 50,250,500,1000", schema.Count),
		schema.F("top", decimal, func(p *UsageParams) *uint32 { return &p.Top }, "Number of users that top_users reports for each cluster; default: 10", schema.Count),
	}
})

// oneOf returns the type of a parameter that is one of several words.
func oneOf(words ...string) func() schema.Type[string] {
	return func() schema.Type[string] {
		text := asText(func(s string) (string, error) {
			word := strings.ToLower(s)
			if s != "" && !slices.Contains(words, word) {
				return "", fmt.Errorf("expected one of %s, got %q", strings.Join(words, ", "), schema.Shorten(s))
			}
			return word, nil
		})
		return schema.Simple(&schema.Shape{Kind: "string", Enum: words}, text.Renderer(schema.View{}), text.Parser(schema.View{}))
	}
}

// maxSizes is the maximum number of groups of job_sizes.
const maxSizes = 100

func jobSizeLimits() schema.Type[[]uint64] {
	return asList(func(s string) (list []uint64, err error) {
		for _, word := range words(s) {
			n, err := strconv.ParseUint(word, 10, 32)
			if err != nil || n == 0 || len(list) > 0 && n <= list[len(list)-1] || len(list) == maxSizes {
				return nil, fmt.Errorf("expected ascending numbers of CPUs such as 50,250,500, got %q", schema.Shorten(s))
			}
			list = append(list, n)
		}
		return list, nil
	})
}

var GetUsage = declare(scope.SlurmdbRead, usageParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "usage/", ID: "get_usage",
	Doc: "Report the usage of resources", Answer: Usage,
	Description: "Returns how much clusters, accounts, users, associations, workload keys or qualities of service used of each trackable resource, as sreport does. " +
		"The accounting daemon adds up (\"rolls up\") the usage of each hour after its end; end and rolled_up say how far it is. A record without usage is absent. " +
		"Records also contain deleted accounts and users. In users and top_users, what a user used in associations with partitions is counted once. " +
		"With `Accept: text/csv` the answer is a table of the records.",
	AnswerDoc:  "The usage",
	SlurmSince: slurmNever, SchedOnly: true, CSV: true,
})
