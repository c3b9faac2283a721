package api

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// nodeArray is the type of an array of node names or host lists. Its parser
// also accepts a single string.
var nodeArray = schema.Named("hostlist_string", nodeList)

// condition returns a type like typ, for a condition that selects jobs. Its
// parser refuses an empty value, because without the condition a request would
// also cancel other jobs.
func condition[T any](typ func() schema.Type[T]) func() schema.Type[T] {
	return func() schema.Type[T] { return conditionType[T]{typ()} }
}

type conditionType[T any] struct{ schema.Type[T] }

func (t conditionType[T]) Parser(v schema.View) func(*schema.Report, *schema.Value, *T) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *T) bool {
		isEmpty := func(v schema.Value) bool { return v.Kind == schema.Text && strings.Trim(v.Text, ", \t") == "" }
		if isEmpty(*doc) || doc.Kind == schema.Array && (len(doc.Items) == 0 || slices.ContainsFunc(doc.Items, isEmpty)) {
			return r.Error(doc, "is empty; omit it if any value may match")
		}
		return parse(r, doc, into)
	}
}

// oneState returns the type of an array that contains one job state.
func oneState() schema.Type[model.JobState] { return oneStateType{jobStates.Type()} }

type oneStateType struct{ schema.Type[model.JobState] }

func (t oneStateType) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.JobState) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.JobState) bool {
		if doc.Kind == schema.Array && len(doc.Items) > 1 {
			return r.Error(doc, "expected one state, got %d", len(doc.Items))
		}
		return parse(r, doc, into)
	}
}

// killedJobs is the type of the list of jobs to kill.
var killedJobs = schema.Named("string_array", schema.List(killedJob))

// killedJob returns the type of a job to kill. Its parser refuses a text without the
// number of a job, because slurmctld does not say which element it refuses.
// slurmctld parses the rest: tasks, a component or a step, or an SLUID.
func killedJob() schema.Type[string] {
	text := schema.String()
	return schema.Simple(text.Shape(schema.View{}), text.Renderer(schema.View{}), func(r *schema.Report, doc *schema.Value, into *string) bool {
		return schema.ParseText(r, doc, into) &&
			(startsWithJob(*into) || r.Error(doc, "expected a job such as 12, 12_3 or 12+1, got %q", schema.Shorten(*into)))
	})
}

// startsWithJob reports whether s is an SLUID, or begins with the number of a
// job. Like slurmctld, it ignores white space and a + before the number.
func startsWithJob(s string) bool {
	s = strings.TrimPrefix(strings.TrimLeft(s, " \t\n\v\f\r"), "+")
	end := strings.IndexAny(s+".", "_+.")
	n, err := strconv.ParseUint(s[:end], 10, 32)
	return err == nil && n != 0 || end == len(sluidText(1)) && s[0] == 's'
}

// KillJobsBody declares the fields of a request to signal jobs.
var KillJobsBody = schema.Object("kill_jobs_msg", func() schema.Fields[model.KillJobs] {
	return schema.Fields[model.KillJobs]{
		schema.F("account", condition(schema.String), func(k *model.KillJobs) *string { return &k.Account }, "Account that the jobs are charged to"),
		schema.F("flags", warnFlags.Type, func(k *model.KillJobs) *uint16 { return (*uint16)(&k.Flags) }, "Processes that receive the signal; defaults to all processes of each job"),
		schema.F("job_name", condition(schema.String), func(k *model.KillJobs) *string { return &k.Name }, "Name of the jobs"),
		schema.F("jobs", condition(schema.Named("kill_jobs_msg_jobs_array", killedJobs)), func(k *model.KillJobs) *[]string { return &k.Jobs }, "The jobs, such as \"12\", \"12_3\" or \"12+1\""),
		schema.F("partition", condition(schema.String), func(k *model.KillJobs) *string { return &k.Partition }, "Partition of the jobs"),
		schema.F("qos", condition(schema.String), func(k *model.KillJobs) *string { return &k.QOS }, "Quality of service of the jobs"),
		schema.F("reservation", condition(schema.String), func(k *model.KillJobs) *string { return &k.Reservation }, "Reservation that the jobs run in"),
		schema.Set("signal", schema.String, func(k *model.KillJobs, s string) (err error) { k.Signal, err = parseSignal(s); return err }, "Name or number of the signal; default: KILL, which cancels the jobs"),
		schema.Set("job_state", condition(oneState), setState, "Base state of the jobs"),
		schema.Set("user_id", condition(schema.String), setKilledUser, "User of the jobs, by number or name"),
		schema.Set("user_name", condition(schema.String), setKilledUser, "User of the jobs, by name"),
		schema.F("wckey", condition(schema.String), func(k *model.KillJobs) *string { return &k.WCKey }, "Workload key of the jobs"),
		schema.F("nodes", condition(nodeArray), func(k *model.KillJobs) *string { return &k.Nodes }, "Nodes, as a host list; matches jobs that use at least one of them"),
	}
})

func setState(k *model.KillJobs, s model.JobState) error {
	if s&^jobBase != 0 {
		return errors.New("expected a base state, such as PENDING or RUNNING")
	}
	k.State = model.Some(s)
	return nil
}

// setKilledUser parses the number or name of the user whose jobs are to be
// killed. If the client sends two different numbers or two different names,
// setKilledUser returns an error, because it can't know whose jobs to kill.
func setKilledUser(k *model.KillJobs, s string) error {
	number, name, err := identity(s)
	switch {
	case err != nil:
		return err
	case name == "" && !number.Set:
		return nil
	case number.Set && k.UserID.Set && number != k.UserID, name != "" && k.UserName != "" && name != k.UserName:
		return errors.New("user_id and user_name name different users")
	}
	if number.Set {
		k.UserID = number
	} else {
		k.UserName = name
	}
	return nil
}

// JobsKilled declares the fields of a KilledAnswer that answers DeleteJobs.
var JobsKilled = enveloped("openapi_kill_jobs_resp", func(a *KilledAnswer) *Envelope { return &a.Envelope },
	killResults,
)

// DeleteJobs cancels several jobs.
var DeleteJobs = declare(scope.ComputeCancel, noParams, Endpoint{
	Method: http.MethodDelete, Path: "jobs/", ID: "delete_jobs",
	Doc: "Cancel several jobs", Request: KillJobsBody, Answer: JobsKilled,
	Example:     `{"jobs": ["12", "13"]}`,
	Description: "Cancels all jobs that match every condition in the body, or sends them a signal. A body without any condition is refused, because it would match every job. The answer lists the jobs to which the signal could not be sent.",
	RequestDoc:  "The jobs to signal, and the signal",
	AnswerDoc:   "The controller has accepted the request; jobs that could not be signalled are listed",
})
