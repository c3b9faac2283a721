package cli

import (
	"net/url"
	"slices"
	"strings"

	"schedrestd/cli/rest"
	"schedrestd/model"
)

// The functions in this file make a request for a part of a list from the
// options of a command. The server may ignore the request and send the whole
// list, so each command also checks every entry. A condition must therefore
// never exclude an entry that the command would select.

// jobKey are the fields that identify a job and the tasks that it stands for.
const jobKey = "job_id,array_job_id,array_task_id,array_task_string,het_job_id,het_job_offset"

// activeStates are the states of which an active job has at least one; see
// rest.Job.Active.
var activeStates = []string{"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED"}

// jobs returns a request for the jobs that f selects. The fields argument
// contains the paths of the fields that the command needs, in addition to those
// that f needs; nil stands for all fields.
func (f *filter) jobs(fields []string) *rest.List {
	l := &rest.List{Filters: url.Values{}}
	add := func(name, field string, values []string) {
		addCondition(l.Filters, name, values)
		if len(values) > 0 && fields != nil {
			fields = append(fields, field)
		}
	}
	add("users", "user_name", f.users)
	add("account", "account", f.accounts)
	add("partition", "partition", f.partitions)
	add("job_name", "name", f.names)
	switch {
	case len(f.states) > 0:
		add("state", "job_state", f.states)
	case !f.all:
		add("state", "job_state", activeStates)
	}
	if len(f.nodes) > 0 {
		addHosts(l.Filters, f.nodes)
		if fields != nil {
			fields = append(fields, "nodes")
		}
	}
	if fields != nil {
		l.Fields = uniqueFields(append(fields, jobKey))
	}
	return l
}

// jobsToChange returns a request for the jobs from which a change selects those
// that ids and f name. Its only condition is the ids or, without ids, the users,
// because all tasks of an array have the same user. Another condition could hide
// tasks that f does not select. The command would then change the whole array
// (see targets).
func (f *filter) jobsToChange(ids []string) *rest.List {
	l := &rest.List{Filters: url.Values{}, Fresh: true}
	switch {
	case len(ids) > 0:
		addCondition(l.Filters, "job_id", ids)
	case len(f.users) > 0:
		addCondition(l.Filters, "users", f.users)
	}
	return l
}

// nodesRequest returns a request for nodes. If nodes are named, the states and
// partitions are no conditions: a node that does not meet them is not unknown.
func nodesRequest(names, states, partitions []string) *rest.List {
	l := &rest.List{Filters: url.Values{}}
	switch {
	case len(names) > 0:
		addHosts(l.Filters, names)
	default:
		addCondition(l.Filters, "state", states)
		addCondition(l.Filters, "partition", partitions)
	}
	return l
}

// uniqueFields returns the paths in the given lists, whose elements are
// separated by commas. It returns each path once.
func uniqueFields(lists []string) []string {
	paths := strings.Split(strings.Join(lists, ","), ",")
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return path == "" })
}

// maxCondition limits the length of a condition in a URL, in bytes. Servers and
// proxies limit the length of a URL, often to 8 KiB.
const maxCondition = 1000

// addCondition adds the condition that an entry has one of the values, unless
// the condition can't be expressed: the server splits the condition at commas
// and removes blanks, and reads a user's name that is a number as a uid.
func addCondition(filters url.Values, name string, values []string) {
	if len(values) == 0 {
		return
	}
	for _, v := range values {
		if v == "" || strings.Contains(v, ",") || strings.TrimSpace(v) != v || name == "users" && strings.Trim(v, "0123456789") == "" {
			return
		}
	}
	if list := strings.Join(values, ","); len(url.QueryEscape(list)) <= maxCondition {
		filters.Set(name, list)
	}
}

// addHosts adds the condition that an entry has one of the nodes.
func addHosts(filters url.Values, names []string) {
	if list := model.FoldHosts(names); len(url.QueryEscape(list)) <= maxCondition && model.HostsWellFormed(list) {
		filters.Set("node", list)
	}
}
