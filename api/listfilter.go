package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/internal/typo"
	"schedrestd/model"
)

// The controller's lists have filters under the names of the accounting
// daemon's parameters, so that a client can ask both daemons in the same way.
// An entry must meet every filter that is set. It meets a filter if it has at
// least one of the filter's values.

// JobFilter selects jobs.
type JobFilter struct {
	Jobs         []jobRange
	Users        nameSet // names or uids
	Accounts     recordNames
	Partitions   nameSet
	States       []schema.Word[model.JobState]
	Names        nameSet
	QOS          recordNames
	Nodes        hosts // of these, the job must have at least one
	Reservations nameSet
	WCKeys       recordNames
}

// jobFilterFields returns the filters of a list of jobs. The type and the
// options of the filter job_id are arguments, because slurmrestd has this filter
// in one list.
func jobFilterFields[P any](at func(*P) *JobFilter, jobs func() schema.Type[[]jobRange], opts ...schema.Option) schema.Fields[P] {
	return schema.Fields[P]{
		schema.F("job_id", jobs, func(p *P) *[]jobRange { return &at(p).Jobs }, "Jobs, separated by commas: numbers, ranges such as \"12-20\", tasks such as \"12_3\", components such as \"12+1\"; default: all jobs", opts...),
		filterTexts("users", "Users, by name or uid", func(p *P) *nameSet { return &at(p).Users }),
		filterTexts("account", "Accounts that the jobs are charged to", func(p *P) *recordNames { return &at(p).Accounts }),
		filterTexts("partition", "Partitions of the jobs", func(p *P) *nameSet { return &at(p).Partitions }),
		schema.F("state", filterWords(jobStates), func(p *P) *[]schema.Word[model.JobState] { return &at(p).States }, "States of the jobs: base states or flags, in either case, separated by commas", schema.Extension),
		filterTexts("job_name", "Names of jobs", func(p *P) *nameSet { return &at(p).Names }),
		filterTexts("qos", "Quality of service of the jobs", func(p *P) *recordNames { return &at(p).QOS }),
		filterHosts("node", "Nodes, as a host list; a job matches if it has at least one of them", func(p *P) *hosts { return &at(p).Nodes }),
		filterTexts("reservation", "Reservations that the jobs run in", func(p *P) *nameSet { return &at(p).Reservations }),
		filterTexts("wckey", "Workload keys of the jobs", func(p *P) *recordNames { return &at(p).WCKeys }),
	}
}

// ByState reports whether a job's numbers and state are enough to apply f. It
// also returns the jobs that f names; none means all.
func (f *JobFilter) ByState() (jobs []model.JobSelection, ok bool) {
	ok = len(f.Users)+len(f.Accounts)+len(f.Partitions)+len(f.Names)+len(f.QOS)+len(f.Nodes.names)+len(f.Reservations)+len(f.WCKeys) == 0
	for _, r := range f.Jobs {
		ok = ok && r.JobID == r.last
		jobs = append(jobs, r.JobSelection)
	}
	return jobs, ok
}

// HasState reports whether f selects jobs in this state.
func (f *JobFilter) HasState(s model.JobState) bool { return hasOneWord(f.States, s) }

// OneJob returns the only job that f selects.
func (f *JobFilter) OneJob() (id uint32, ok bool) {
	if len(f.Jobs) != 1 || f.Jobs[0].JobID != f.Jobs[0].last {
		return 0, false
	}
	return f.Jobs[0].JobID, true
}

// OneUser returns the only user, a name or a uid, whose jobs f selects.
func (f *JobFilter) OneUser() (user string, ok bool) {
	for user = range f.Users {
	}
	return user, len(f.Users) == 1
}

// Match reports whether f selects the job.
func (f *JobFilter) Match(j *JobRow) bool {
	return oneMatches(f.Jobs, func(r jobRange) bool { return r.has(j.Job) }) &&
		(len(f.Users) == 0 || f.Users[jobUser(j)] || f.Users[strconv.FormatUint(uint64(j.UserID), 10)]) &&
		f.Accounts.has(j.Account) &&
		oneOfList(f.Partitions, j.Partition) &&
		hasOneWord(f.States, j.State) &&
		f.Names.has(j.Name) &&
		oneOfList(f.QOS, j.QOS) &&
		f.Nodes.match(j.Nodes) &&
		oneOfList(f.Reservations, j.Reservation) &&
		f.WCKeys.has(strings.TrimPrefix(j.WCKey, "*"))
}

// NodeFilter selects nodes.
type NodeFilter struct {
	Nodes      hosts
	Partitions nameSet
	States     []schema.Word[model.NodeState]
	Features   nameSet
}

func nodeFilterFields[P any](at func(*P) *NodeFilter) schema.Fields[P] {
	return schema.Fields[P]{
		filterHosts("node", "Nodes, as a host list", func(p *P) *hosts { return &at(p).Nodes }),
		filterTexts("partition", "Partitions of the nodes", func(p *P) *nameSet { return &at(p).Partitions }),
		schema.F("state", filterWords(nodeStates), func(p *P) *[]schema.Word[model.NodeState] { return &at(p).States }, "States of the nodes: base states or flags, in either case, separated by commas", schema.Extension),
		filterTexts("feature", "Features of the nodes, configured or active", func(p *P) *nameSet { return &at(p).Features }),
	}
}

// OneNode returns the only node that f selects.
func (f *NodeFilter) OneNode() (name string, ok bool) {
	if len(f.Nodes.names) != 1 {
		return "", false
	}
	return f.Nodes.few[0], true
}

// Match reports whether f selects the node.
func (f *NodeFilter) Match(n *NodeRow) bool {
	return (len(f.Nodes.names) == 0 || f.Nodes.names[n.Name]) &&
		(len(f.Partitions) == 0 || slices.ContainsFunc(n.Partitions, f.Partitions.has)) &&
		hasOneWord(f.States, shownState(n)) &&
		(oneOfList(f.Features, n.Features) || oneOfList(f.Features, n.ActiveFeatures))
}

// HostFilter selects partitions or reservations by their nodes.
type HostFilter struct{ Nodes hosts }

func hostFilterFields[P any](at func(*P) *HostFilter) schema.Fields[P] {
	return schema.Fields[P]{filterHosts("node", "Nodes, as a host list; an entry matches if it has at least one of them", func(p *P) *hosts { return &at(p).Nodes })}
}

// Match reports whether f selects an entry with the nodes of the host list.
func (f *HostFilter) Match(list string) bool { return f.Nodes.match(list) }

// oneMatches reports whether a condition is not set, or one of its values
// matches.
func oneMatches[T any](values []T, match func(T) bool) bool {
	return len(values) == 0 || slices.ContainsFunc(values, match)
}

// nameSet is a condition: names of which an entry must have one. The empty set
// is no condition. The time of a look-up does not depend on the number of names,
// which a client chooses.
type nameSet map[string]bool

// has reports whether the condition is not set, or has the name.
func (s nameSet) has(name string) bool { return len(s) == 0 || s[name] }

// recordNames is a nameSet of names that the accounting daemon has records of,
// such as accounts. Its elements are model.NameKey's.
type recordNames map[string]bool

func (s recordNames) has(name string) bool { return len(s) == 0 || s[model.NameKey(name)] }

// oneOfList reports whether the condition s has a name in the comma-separated
// list, or is not set.
func oneOfList(s interface{ has(string) bool }, list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if s.has(name) {
			return true
		}
	}
	return false
}

// hasOneWord reports whether a condition is not set, or n has one of its words.
func hasOneWord[T schema.Integer](words []schema.Word[T], n T) bool {
	return oneMatches(words, func(w schema.Word[T]) bool { return n&w.Mask == w.Value })
}

// filterTexts returns a filter that is a list of names, in a nameSet or in
// recordNames.
func filterTexts[P any, S nameSet | recordNames](name, doc string, at func(*P) *S) schema.Field[P] {
	key := func(name string) string { return name }
	if _, ok := any(*new(S)).(recordNames); ok {
		key = model.NameKey
	}
	names := condition(func() schema.Type[S] {
		parse := csvList().Parser(schema.View{})
		return schema.Simple(csvList().Shape(schema.View{}), nil, func(r *schema.Report, v *schema.Value, into *S) bool {
			var list []string
			if !parse(r, v, &list) {
				return false
			}
			set := S{}
			for _, word := range list {
				set[key(word)] = true
			}
			*into = set
			return true
		})
	})
	return schema.F(name, names, at, doc+", separated by commas", schema.Extension)
}

// filterWords returns the type of a filter that is a list of words of a set, in
// upper or lower case.
func filterWords[T schema.Integer](set *schema.WordSet[T]) func() schema.Type[[]schema.Word[T]] {
	return condition(func() schema.Type[[]schema.Word[T]] {
		return asList(func(s string) (list []schema.Word[T], err error) {
			for _, name := range words(s) {
				w, ok := set.Find(name)
				if !ok {
					known := set.AllNames()
					if near := typo.Nearest(strings.ToUpper(name), known); near != "" {
						return nil, fmt.Errorf("unknown state %q; did you mean %s?", schema.Shorten(name), near)
					}
					return nil, fmt.Errorf("unknown state %q; expected one of %s", schema.Shorten(name), strings.Join(known, ", "))
				}
				list = append(list, w)
			}
			return list, nil
		})
	})
}

// hosts is a set of nodes. The empty set means all nodes.
type hosts struct {
	names map[string]bool
	few   []string // the names, if they are so few that to look for each of them is fast
}

// fewHosts limits the names for which a host list is searched one after another.
// For more names, each name in the list is looked up in the set.
const fewHosts = 16

// match reports whether the set is empty, or has a node of the host list.
func (h *hosts) match(list string) bool {
	if len(h.few) > 0 {
		return slices.ContainsFunc(h.few, func(name string) bool { return model.HostlistHas(list, name) })
	}
	if len(h.names) == 0 {
		return true
	}
	for name := range model.Hosts(list) {
		if h.names[name] {
			return true
		}
	}
	return false
}

// filterHosts returns a filter that is a host list.
func filterHosts[P any](name, doc string, at func(*P) *hosts) schema.Field[P] {
	typ := condition(func() schema.Type[hosts] {
		return asList(func(s string) (h hosts, err error) {
			if !model.HostsWellFormed(s) {
				return h, fmt.Errorf("expected nodes such as node1,n[01-03], got %q", schema.Shorten(s))
			}
			h.names = map[string]bool{}
			if err := new(expansion).add(s, func(name string) { h.names[name] = true }); err != nil {
				return h, err
			}
			if len(h.names) <= fewHosts {
				h.few = slices.Sorted(maps.Keys(h.names))
			}
			return h, nil
		})
	})
	return schema.F(name, typ, at, doc, schema.Extension)
}

// jobRange is a job, a range of jobs, a task of an array or a component of a
// heterogeneous job.
type jobRange struct {
	model.JobSelection
	last uint32 // the last job of the range
}

// has reports whether the range has the job. A job of an array, or a component
// of a heterogeneous job, also has the number of the whole.
func (r jobRange) has(j *model.Job) bool {
	in := func(id uint32) bool { return id != 0 && r.JobID <= id && id <= r.last }
	switch task, offset := r.ArrayTaskID, r.HetOffset; {
	case task.Set:
		if !in(j.ArrayJobID) { // the usual case, in which the list of pending tasks need not be parsed
			return false
		}
		pending := ArrayTasks(j)
		return j.ArrayTaskID == task || pending.Has(int(task.Number))
	case offset.Set:
		return in(j.HetJobID) && j.HetJobOffset == offset.Number
	}
	return in(j.StepID.JobID) || in(j.ArrayJobID) || in(j.HetJobID)
}

// jobRanges returns the type of a list of jobs.
func jobRanges() schema.Type[[]jobRange] {
	return asList(func(s string) (list []jobRange, err error) {
		for _, word := range commaList(s) {
			jobs, err := parseJobRange(strings.TrimSpace(word))
			if err != nil {
				return nil, err
			}
			list = append(list, jobs)
		}
		return list, nil
	})
}

func parseJobRange(word string) (jobRange, error) {
	if from, to, ok := parseRange(word); ok && from > 0 && to < uint64(model.NoVal32) {
		return jobRange{model.JobSelection{JobID: uint32(from)}, uint32(to)}, nil
	}
	job, err := jobSelection(word)
	if err != nil {
		return jobRange{}, fmt.Errorf("expected a job such as 12, 12-20, 12_3 or 12+1, got %q", schema.Shorten(word))
	}
	return jobRange{job, job.JobID}, nil
}
