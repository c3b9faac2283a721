package dbd

import (
	"cmp"
	"database/sql/driver"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"

	"schedrestd/model"
)

// A condition is one term of a query's WHERE clause. It implements one filter.
type condition struct {
	sql  string
	args []any
	from string // table and index that let SQLite read only the matching jobs; "": no index helps
}

// Ways to read the table.
const (
	byID     = "job NOT INDEXED"
	bySubmit = "job INDEXED BY job_by_submit"
	byUse    = "job INDEXED BY job_by_use"
	byColumn = "job INDEXED BY job_by_" // followed by the name of the column
	byNumber = byColumn + "job_id"
	allJobs  = bySubmit
)

// conditions returns the conditions that f sets. A job must meet all of them.
// If owner is set, the job must also belong to that user.
func conditions(f *model.AccountingJobFilter, owner model.Opt[uint32]) []condition {
	states := baseStates(f.States)
	if len(f.States) > 0 && f.Flags&model.JobFilterNoDefaultUsage == 0 {
		f = withPeriod(f, model.At(time.Now()))
		states = inStates(f.States, f.UsageStart, f.UsageEnd)
	}
	list := []condition{steps(f.Steps)}
	if owner.Set {
		list = append(list, equal("user_id", int64(owner.Number)))
	}
	list = append(list,
		numbers("user_id", f.UserIDs),
		texts("name", f.Names),
		recordNames("account", f.Accounts),
		numbers("group_id", f.GroupIDs),
		recordNames("wckey", f.WCKeys),
		texts("partition", f.Partitions),
		states,
	)
	if f.ExitCode != 0 {
		list = append(list, equal("exit_code", int64(f.ExitCode)))
	}
	list = append(list, times(f)...)
	list = append(list, unindexed(recordNames("cluster", f.Clusters)), unindexed(numbers("state_reason", f.Reasons)))
	list = append(list, between("cpus", f.CPUsMin, f.CPUsMax)...)
	list = append(list, between("node_count", f.NodesMin, f.NodesMax)...)
	list = append(list, between("time_limit", f.TimeLimitMin, f.TimeLimitMax)...)
	if f.UsedNodes != "" {
		// The most expensive condition comes last.
		list = append(list, condition{sql: overlap + "(nodes, ?)", args: []any{f.UsedNodes}})
	}
	active := list[:0]
	for _, c := range list {
		if c.sql != "" {
			active = append(active, c)
		}
	}
	return active
}

// times returns the conditions on the time of submission and on the time during
// which a job existed.
func times(f *model.AccountingJobFilter) (list []condition) {
	from, column := byUse, "used_until"
	if f.Flags&model.JobFilterNoDefaultUsage != 0 {
		from, column = bySubmit, "submit_time"
	}
	if f.UsageStart != 0 {
		list = append(list, condition{column + " >= ?", []any{int64(f.UsageStart)}, from})
	}
	if f.UsageEnd != 0 {
		list = append(list, condition{"submit_time <= ?", []any{int64(f.UsageEnd)}, bySubmit})
	}
	return list
}

// steps returns the condition that a job matches one of the elements in
// selected. An element that has only a job id matches the job with this id. If
// the id is that of an array or a heterogeneous job, the element matches all
// tasks or components. An element with ArrayTaskID or HetOffset matches only
// that task or component.
func steps(selected []model.SelectedStep) condition {
	if len(selected) == 0 {
		return condition{}
	}
	var ids, tasks, components []any
	for _, s := range selected {
		id := int64(s.Step.JobID)
		switch {
		case s.ArrayTaskID.Set:
			tasks = append(tasks, id, int64(s.ArrayTaskID.Number))
		case s.HetOffset.Set:
			components = append(components, id, int64(s.HetOffset.Number))
		default:
			ids = append(ids, id)
		}
	}
	c := condition{from: byID}
	var parts []string
	add := func(columns, value string, args []any) {
		if len(args) > 0 {
			values := repeated(value, len(args)/strings.Count(value, "?"))
			parts = append(parts, "SELECT id FROM job WHERE "+columns+" IN (VALUES "+values+")")
			c.args = append(c.args, args...)
		}
	}
	add("job_id", "(?)", ids)
	add("array_job_id", "(?)", ids)
	add("het_job_id", "(?)", ids)
	add("(array_job_id, array_task_id)", "(?, ?)", tasks)
	add("(het_job_id, het_offset)", "(?, ?)", components)
	c.sql = "id IN (" + strings.Join(parts, " UNION ALL ") + ")"
	return c
}

func repeated(item string, n int) string { return strings.Repeat(item+", ", n-1) + item }

func equal(column string, value int64) condition {
	return condition{column + " = ?", []any{value}, byColumn + column}
}

// unindexed returns c without an index. It is for conditions on columns for
// which jobIndices creates no index.
func unindexed(c condition) condition {
	c.from = ""
	return c
}

// texts returns the condition that the value in a column is in list. If list is
// empty, texts returns an empty condition.
func texts(column string, list []string) condition {
	if len(list) == 0 {
		return condition{}
	}
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	return condition{column + " IN (" + repeated("?", len(args)) + ")", args, byColumn + column}
}

// recordNames is like texts, but ignores case, as model.SameName does: the column
// has names of records.
func recordNames(column string, list []string) condition {
	c := texts(column, list)
	c.sql = strings.Replace(c.sql, column, column+" COLLATE NOCASE", 1)
	return c
}

// numbers returns the condition that the number in a column is in list. A
// string that is not the usual decimal form of a number, such as "007", matches
// no job.
func numbers(column string, list []string) condition {
	if len(list) == 0 {
		return condition{}
	}
	var args []any
	for _, s := range list {
		if n, err := strconv.ParseUint(s, 10, 32); err == nil && strconv.FormatUint(n, 10) == s {
			args = append(args, int64(n))
		}
	}
	if len(args) == 0 {
		return condition{sql: "0"}
	}
	return condition{column + " IN (" + repeated("?", len(args)) + ")", args, byColumn + column}
}

// baseStates returns the condition that the state of a job, without its flags,
// is in list. No state in a list stands for a run after which the job was
// requeued: that is not pending, but has the flag 1024.
func baseStates(list []string) condition {
	c := numbers("state & 255", list)
	if c.from != "" {
		c.sql += " AND state & 1024 = 0"
		c.from = byColumn + "state"
	}
	return c
}

// withPeriod returns a copy of f, which has states, whose period is complete. As in
// slurmdbd, a period without a start begins now or, if f names jobs, at any time,
// and one without an end ends when it begins.
func withPeriod(f *model.AccountingJobFilter, now model.Time) *model.AccountingJobFilter {
	complete := *f
	if f.UsageStart == 0 && len(f.Steps) == 0 {
		complete.UsageStart = now
	}
	complete.UsageEnd = cmp.Or(f.UsageEnd, complete.UsageStart, now)
	if complete.UsageEnd == complete.UsageStart || complete.UsageEnd == now {
		complete.UsageEnd++
	}
	return &complete
}

// inStates returns the condition that a job was waiting or running at some time in
// a period, or has ended in it, in one of the states in list. Of suspended jobs
// only the current state is known.
func inStates(list []string, start, end model.Time) (c condition) {
	var parts []string
	for _, s := range list {
		part := baseStates([]string{s})
		switch s {
		case "0": // PENDING
			part = condition{sql: "submit_time < ? AND (state & 1279 = 0 OR iif(start_time = 0, used_until, start_time) > ?)", args: []any{int64(end), int64(start)}}
		case "1": // RUNNING
			part = condition{sql: "state & 1279 <> 0 AND start_time <> 0 AND start_time < ? AND used_until > ?", args: []any{int64(end), int64(start)}}
		case "2": // SUSPENDED
		default:
			part.sql += " AND used_until BETWEEN ? AND ?"
			part.args = append(part.args, int64(start), int64(end))
		}
		parts, c.args = append(parts, part.sql), append(c.args, part.args...)
	}
	c.sql = "(" + strings.Join(parts, " OR ") + ")"
	return c
}

// between returns the conditions that the value in a column is at least lower
// and at most upper. A bound of 0 means no limit.
func between(column string, lower, upper uint32) (list []condition) {
	if lower != 0 {
		list = append(list, condition{sql: column + " >= ?", args: []any{int64(lower)}})
	}
	if upper != 0 {
		list = append(list, condition{sql: column + " <= ?", args: []any{int64(upper)}})
	}
	return list
}

// overlap is the name of an SQL function. The function reports whether a job's
// nodes and a host list expression have a name in common.
const overlap = "hosts_overlap"

func init() {
	sqlite.MustRegisterDeterministicScalarFunction(overlap, 2, hostsOverlap)
}

func hostsOverlap(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	nodes, _ := args[0].(string)
	pattern, _ := args[1].(string)
	for host := range model.Hosts(nodes) {
		if model.HostlistHas(pattern, host) {
			return int64(1), nil
		}
	}
	return int64(0), nil
}
