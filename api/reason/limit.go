package reason

import (
	"regexp"
	"strings"

	"schedrestd/model"
)

// limitName matches the names of limits in accounting: whose limit, of which kind,
// of what, and for which part.
var limitName = regexp.MustCompile(`^(Assoc|QOS|)(Grp|Max|Min)(SubmitJobs?|Jobs|WallDuration|Wall|Cpu|CPU|Memory|Mem|Node|GRES|License|Energy|BB|Billing|Unknown)(RunMinutes|RunMins|Minutes|)(PerJob|PerNode|PerUser|PerAccount|NotSatisfied|)(?:Limit)?$`)

// A Limit is a limit that keeps a job from starting.
type Limit struct {
	Name      string // as sacctmgr and scontrol spell it, such as "MaxTRESPerUser"
	Resource  string // trackable resource; "" for jobs and for time
	Of        string // what has the limit, such as "QOS normal"
	Whose     string // whose use counts, such as "user ann"; "" for all jobs, or if only this job counts
	Unit      string // "MiB", "min", "CPU min" or similar; "" for a number
	Allowed   uint64
	Used      model.Opt[uint64] // not set if only this job counts
	Reserved  model.Opt[uint64] // what running jobs may still use; only set if the limit is on what jobs have used in the past
	Requested model.Opt[uint64] // by this job; not set if each job counts as one

	measure measure
}

// measure is what a limit limits.
type measure int

const (
	resources  measure = iota // of running jobs
	jobs                      // running
	submitted                 // waiting and running
	wall                      // run time
	minutes                   // of a resource, used up
	runMinutes                // of a resource, of running jobs
	perJob
	perNode
	perCPU
	wallPerJob
	minutesPerJob
	atLeast
)

// measureOf returns what the limit with these parts of its name limits.
func measureOf(kind, what, time, part string) measure {
	switch {
	case strings.HasPrefix(what, "Submit"):
		return submitted
	case what == "Jobs":
		return jobs
	case what == "WallDuration", what == "Wall" && kind == "Max":
		return wallPerJob
	case what == "Wall":
		return wall
	case kind == "Min":
		return atLeast
	case time == "RunMinutes" || time == "RunMins":
		return runMinutes
	case time == "Minutes" && part == "PerJob":
		return minutesPerJob
	case time == "Minutes":
		return minutes
	case part == "PerJob":
		return perJob
	case part == "PerNode":
		return perNode
	}
	return resources
}

// isOf reports whether a trackable resource is what a limit's name calls so.
func isOf(what, tres string) bool {
	kind, _, _ := strings.Cut(tres, "/")
	switch what {
	case "Cpu", "CPU":
		return tres == "cpu"
	case "Mem", "Memory":
		return tres == "mem"
	case "Unknown":
		switch kind {
		case "cpu", "mem", "node", "energy", "billing", "gres", "license", "bb":
			return false
		}
		return true
	}
	return kind == strings.ToLower(what)
}

// limit returns the limit that keeps j from starting according to the name of its
// reason, or nil if it is not known. If several limits have this name, as those of
// an account and of the account above it, it is the one that is exhausted.
func (f *Facts) limit(name string, j *model.Job) *Limit {
	m := limitName.FindStringSubmatch(name)
	if m == nil {
		return f.partitionLimit(name, j)
	}
	s := search{facts: f, job: j, kind: m[2], what: m[3], part: m[5], measure: measureOf(m[2], m[3], m[4], m[5]), asked: parseTRES(j.TRESReq)}
	if m[1] == "Assoc" {
		s.associations()
	} else {
		s.qos()
	}
	return s.found
}

// partitionLimit returns the limit of a partition that keeps j from starting, or nil
// if it is not known.
func (f *Facts) partitionLimit(name string, j *model.Job) *Limit {
	p := f.Partitions[j.Partition]
	if p == nil {
		return nil
	}
	l := &Limit{Of: "partition " + p.Name}
	switch nodes := uint64(j.NumNodes); {
	case name == "PartitionTimeLimit" && p.MaxTime.Set:
		l.Name, l.Unit, l.measure, l.Allowed = "MaxTime", "min", wallPerJob, uint64(p.MaxTime.Number)
		l.Requested = model.Opt[uint64]{Number: uint64(j.TimeLimit.Number), Set: j.TimeLimit.Set, Infinite: j.TimeLimit.Infinite}
	case name == "PartitionNodeLimit" && j.NumNodes < p.MinNodes:
		l.Name, l.Resource, l.measure, l.Allowed, l.Requested = "MinNodes", "node", atLeast, uint64(p.MinNodes), model.Some(nodes)
	case name == "PartitionNodeLimit" && p.MaxNodes.Set && j.NumNodes > p.MaxNodes.Number:
		l.Name, l.Resource, l.measure, l.Allowed, l.Requested = "MaxNodes", "node", perJob, uint64(p.MaxNodes.Number), model.Some(nodes)
	case name == "PartitionNodeLimit" && j.NumNodes > p.TotalNodes:
		l.Name, l.Resource, l.measure, l.Allowed, l.Requested = "TotalNodes", "node", perJob, uint64(p.TotalNodes), model.Some(nodes)
	case name == "MaxMemPerLimit" && p.MaxMemPerCPU != 0 && p.MaxMemPerCPU < memoryNotSet && (p.MaxMemPerCPU^j.MinMemory)&model.MemPerCPU == 0:
		l.Name, l.Resource, l.Unit, l.measure = "MaxMemPerNode", "mem", "MiB", perNode
		if j.MinMemory&model.MemPerCPU != 0 {
			l.Name, l.measure = "MaxMemPerCPU", perCPU
		}
		l.Allowed, l.Requested = p.MaxMemPerCPU&^model.MemPerCPU, model.Some(j.MinMemory&^model.MemPerCPU)
	default:
		return nil
	}
	return l
}

// memoryNotSet is the number for "not set" in the partition's amount of memory.
const memoryNotSet = ^uint64(0) - 1

// exhausted reports whether l keeps the job from starting.
func (l *Limit) exhausted() bool {
	switch {
	case l.measure == atLeast:
		return l.Requested.Set && l.Requested.Number < l.Allowed
	case l.Used.Set && l.Used.Number >= l.Allowed, l.Requested.Infinite:
		return true
	}
	return l.Used.Number+l.Reserved.Number+l.Requested.Number > l.Allowed
}

// unitOf returns the unit of a trackable resource.
func unitOf(tres string) string {
	switch kind, _, _ := strings.Cut(tres, "/"); kind {
	case "mem", "bb":
		return "MiB"
	case "energy":
		return "J"
	}
	return ""
}
