package api

import (
	"slices"
	"strings"

	"schedrestd/api/schema"
)

// Leniency is an exception in Slurm's spelling: an answer on which clients of
// slurmrestd rely, although this project's spelling answers differently. The
// texts continue the sentence "If REQUEST, ANSWER." of documents.
//
// The table below contains every exception. The OpenAPI document and
// docs/generated/SPELLINGS.md are generated from it, and handlers can ask for the
// spelling of a request only with a row of the table. To add an exception, add
// a row, call the handlers' function lenient with it, and run make golden.
type Leniency struct {
	Operations []string // such as "slurm_get_node", "slurmdb_post_qos"; nil for all that change nothing or, with Changes, for all others
	Changes    bool
	Request    string // condition, such as "the node does not exist"
	Slurm      string // answer in Slurm's spelling
	Sched      string // answer in this project's spelling
	Reason     string // clients that rely on the answer in Slurm's spelling
}

// Leniencies lists the exceptions in the order of their declarations.
var Leniencies []*Leniency

var (
	UnknownParameter = exception(Leniency{
		Request: "a request that changes nothing has a parameter that the operation does not have",
		Slurm:   "the parameter is ignored, with a warning",
		Sched:   "the answer is 422 if the parameter is a filter of another operation, or until; otherwise the parameter is ignored, with a warning",
		Reason:  "clients send one set of filters to several operations, such as FirecREST",
	})

	MissingIsError = exception(Leniency{
		Operations: []string{"slurm_get_node", "slurm_get_partition", "slurm_get_reservation"},
		Request:    "the named object does not exist",
		Slurm:      "the answer is 200 with an empty list and an error",
		Sched:      "the answer is 404",
		Reason:     "clients check the length of the list, such as Slinky's operator, which asks for a reservation before it exists",
	})

	MissingIsWarning = exception(Leniency{
		Operations: []string{"slurmdb_get_account", "slurmdb_get_cluster", "slurmdb_get_job", "slurmdb_get_single_qos", "slurmdb_get_user", "slurmdb_get_wckey"},
		Request:    "there is no such record",
		Slurm:      "the answer is 200 with an empty list and a warning",
		Sched:      "the answer is 404",
		Reason:     "clients check the length of the list",
	})

	NothingFound = exception(Leniency{
		Operations: []string{"slurmdb_get_accounts", "slurmdb_get_association", "slurmdb_get_associations", "slurmdb_get_clusters", "slurmdb_get_instance", "slurmdb_get_instances",
			"slurmdb_get_jobs", "slurmdb_get_qos", "slurmdb_get_tres", "slurmdb_get_users", "slurmdb_get_wckeys"},
		Request: "no record matches the request",
		Slurm:   "the answer has a warning",
		Sched:   "the answer has no warning",
		Reason:  "clients check whether there is a warning, such as SchedMD's tests",
	})

	UnchangedIsWarning = exception(Leniency{
		Operations: []string{"slurm_get_conf"},
		Request:    "the configuration has not changed since update_time",
		Slurm:      "the answer is 200 with a warning, without the configuration",
		Sched:      "the answer is 304",
		Reason:     "generated clients treat 304 as an error",
	})

	HarmlessValue = exception(Leniency{
		Changes: true,
		Request: "a body has a value without an effect that is empty, 0 or false, the reason_uid of a node, or the environment of an existing job",
		Slurm:   "the answer has no warning about it",
		Sched:   "the answer has a warning",
		Reason:  "generated clients send a value for each field; SchedMD's tests send reason_uid and environment, and check that there is no warning",
	})

	LooseJSON = exception(Leniency{
		Changes: true,
		Request: "a JSON body has a comma before a closing bracket, or a line break or tab inside a string",
		Slurm:   "the body is read like one without the comma, or with an escape such as `\\n`",
		Sched:   "the answer is 400",
		Reason:  "shell scripts write bodies by hand, and paste the job's script into them",
	})

	NothingToRemove = exception(Leniency{
		Operations: []string{"slurmdb_delete_account", "slurmdb_delete_association", "slurmdb_delete_associations", "slurmdb_delete_cluster",
			"slurmdb_delete_single_qos", "slurmdb_delete_user", "slurmdb_delete_wckey"},
		Request: "there is no such record",
		Slurm:   "the answer is 200 with an empty list and a warning",
		Sched:   "the answer is 404",
		Reason:  "clients remove records that may not exist; slurmrestd answers 304 or 200",
	})

	NoRecords = exception(Leniency{
		Operations: []string{"slurm_post_partitions", "slurm_post_reservations",
			"slurmdb_post_accounts", "slurmdb_post_associations", "slurmdb_post_qos", "slurmdb_post_users", "slurmdb_post_wckeys"},
		Request: "the list of records in the body is empty",
		Slurm:   "the answer is 200 with a warning",
		Sched:   "the answer is 422",
		Reason:  "clients that synchronize records and have nothing to change",
	})

	UserWithoutRecord = exception(Leniency{
		Operations: []string{"slurmdb_post_associations", "slurmdb_post_wckeys"},
		Request:    "the user of a new record does not exist",
		Slurm:      "the record is created, with a warning",
		Sched:      "the answer is 404",
		Reason:     "clients that create the association before the user",
	})

	EmptyLimits = exception(Leniency{
		Operations: []string{"slurmdb_post_qos"},
		Request:    "a list of limits is empty, although the QOS has such limits",
		Slurm:      "the limits stay, with a warning",
		Sched:      "all limits of the list are removed",
		Reason:     "generated clients send an empty list for each field that is not set",
	})

	LimitsReplaced = exception(Leniency{
		Operations: []string{"slurmdb_post_associations"},
		Request:    "a list of limits is not empty, and an existing association has limits of resources that the list does not name",
		Slurm:      "these limits are removed",
		Sched:      "these limits stay",
		Reason:     "clients send all limits of the list and compare them with the association afterwards, such as Apache Airavata and Waldur's agent",
	})

	KeysOfSeveralUsers = exception(Leniency{
		Operations: []string{"slurmdb_delete_wckey"},
		Request:    "several workload keys have the name",
		Slurm:      "all of them are removed, as by sacctmgr",
		Sched:      "the answer is 422 with the number of each key",
		Reason:     "clients that remove a key from all users",
	})

	LastOfEachNumber = exception(Leniency{
		Operations: []string{"slurmdb_get_jobs"},
		Request:    "the request has no parameters, and several jobs had the same number",
		Slurm:      "the answer contains only the last of them",
		Sched:      "the answer contains all of them",
		Reason:     "clients that identify jobs by their number",
	})

	StatesAtStart = exception(Leniency{
		Operations: []string{"slurmdb_get_jobs"},
		Request:    "the request has state, but lacks start_time or end_time",
		Slurm:      "the answer contains the jobs that were in the state at start_time or, without it, are in it now, as with sacct; of those that have ended, only the ones that ended in this second",
		Sched:      "the period begins at any time or ends now; if both are missing, the answer contains the jobs that are or ended in the state",
		Reason:     "clients that ask which jobs ran at one time",
	})

	NodeQueryText = exception(Leniency{
		Operations: []string{"slurm_get_node"},
		Request:    "the node does not exist",
		Slurm:      "the error's text begins with `Failure to query node`",
		Sched:      "the error's text only says so",
		Reason:     "clients compare the beginning of the text, such as Slurm-web",
	})

	RemarkPrefix = exception(Leniency{
		Operations: []string{"slurm_post_job_submit"},
		Request:    "the controller accepts a job with a remark, such as that the job is held",
		Slurm:      "the answer has two warnings with the remark, and the text of the first begins with `Job submission resulted in non-zero return code: ` or, for a heterogeneous job, `HetJob submission …`",
		Sched:      "the answer has a warning with the remark",
		Reason:     "clients look for the beginning of the text",
	})

	// ExitStatus is asked for by the type of the field, which also knows the spelling.
	ExitStatus = exception(Leniency{
		Operations: []string{"slurmdb_post_job", "slurmdb_post_jobs"},
		Request:    "the return_code of derived_exit_code is 256, 512 or another status of a process that has ended with an exit code",
		Slurm:      "the exit code is stored",
		Sched:      "the answer is 422",
		Reason:     "to slurmrestd the number is a wait status, as SchedMD's tests send it",
	})

	GoneJob = exception(Leniency{
		Operations: []string{"slurm_delete_job"},
		Request:    "the job has ended or is unknown",
		Slurm:      "the answer is 200; from v0.0.42 on, status has Slurm's error number, 2021 or 2017",
		Sched:      "the answer is 409 or 404",
		Reason:     "clients cancel jobs that may just have ended, such as JupyterHub's spawners, FirecREST and slurm-bridge",
	})

	NoChange = exception(Leniency{
		Operations: []string{"slurm_post_job", "slurm_post_node", "slurm_post_nodes", "slurm_post_partitions", "slurm_post_reservation", "slurm_post_reservations"},
		Request:    "a body has no field to change",
		Slurm:      "the answer is 200, with a warning",
		Sched:      "the answer is 422",
		Reason:     "clients send a record whose other fields are not set",
	})
)

// exception returns a row, and adds it to Leniencies.
func exception(l Leniency) *Leniency {
	Leniencies = append(Leniencies, &l)
	return &l
}

// Covers reports whether the exception is about the operation.
func (l *Leniency) Covers(e *Endpoint) bool {
	if l.Operations == nil {
		return e.Changing() == l.Changes
	}
	return slices.Contains(l.Operations, e.operation())
}

// operation returns the name of e without a version, such as "slurm_get_node".
func (e *Endpoint) operation() string { return e.Segment(schema.Slurm) + "_" + e.ID }

// DescriptionIn returns the operation's description in one spelling, which
// includes the exceptions that name the operation.
func (e *Endpoint) DescriptionIn(s schema.Spelling) string {
	parts := []string{e.Description}
	for _, l := range Leniencies {
		if l.Operations != nil && l.Covers(e) {
			parts = append(parts, l.Sentence(s))
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// Sentence describes the answer in one spelling, as in "If the node does not
// exist, the answer is 404."
func (l *Leniency) Sentence(s schema.Spelling) string {
	answer := l.Sched
	if s == schema.Slurm {
		answer = l.Slurm
	}
	return "If " + l.Request + ", " + answer + "."
}
