package reason

import (
	"cmp"
	"slices"
	"strings"

	"schedrestd/model"
)

// Facts are what the controller knows about why jobs wait, beyond their own
// records. Facts that are missing are not in the sentences. The zero value has
// none.
type Facts struct {
	TRES         []string // names of the trackable resources
	Associations map[uint32]*model.AssocLimits
	QOS          map[string]*model.QOSLimits
	Partitions   map[string]*model.Partition
	Licenses     map[string]model.License
	Nodes        map[string]Node // those that start no jobs
	Reservations []model.Reservation
	Factors      map[FactorsKey]*model.JobPriority
	Queues       map[string]*Queue // by partition
	User         func(uid uint32) string
}

// FactorsKey identifies the parts of a job's priority in one partition.
type FactorsKey struct {
	Job       uint32
	Partition string
}

// Node is a node that starts no jobs.
type Node struct {
	Name, State, Reason string
}

// Need is a set of facts.
type Need uint8

// The facts that an explanation may need. Each is one request to the controller.
const (
	NeedLimits Need = 1 << iota // Associations and QOS
	NeedPartitions
	NeedLicenses
	NeedNodes
	NeedReservations
	NeedQueues // also Factors
)

// Needs returns the facts that the explanation of a waiting job needs.
func Needs(j *model.Job) Need {
	name := Name(j.StateReason)
	limit := limitName.FindStringSubmatch(name)
	switch {
	case limit != nil && limit[1] == "Assoc":
		return NeedLimits
	case limit != nil: // the partition may have a QOS, which has its own limits
		return NeedLimits | NeedPartitions
	}
	return details[name].needs
}

// A Queue has the priorities of the jobs that wait in a partition and may start.
type Queue struct {
	keys   []uint64
	sorted bool
}

// queueKey orders jobs as the scheduler does: by priority, then by age.
func queueKey(priority, id uint32) uint64 { return uint64(priority)<<32 | uint64(^id) }

// Add adds a job.
func (q *Queue) Add(priority, id uint32) {
	q.keys, q.sorted = append(q.keys, queueKey(priority, id)), false
}

// place returns the position of a job, from 1 on.
func (q *Queue) place(priority, id uint32) int {
	if !q.sorted {
		slices.Sort(q.keys)
		q.sorted = true
	}
	at, _ := slices.BinarySearch(q.keys, queueKey(priority, id)+1)
	return len(q.keys) - at + 1
}

// Waits reports whether j waits for its turn: it is neither held nor waits for
// something else that must happen first.
func Waits(j *model.Job) bool {
	if j.State.Base() != model.JobPending || j.Priority == 0 {
		return false
	}
	switch name := Name(j.StateReason); {
	case strings.HasPrefix(name, "Dependency"), strings.HasPrefix(name, "JobHe"), name == "BeginTime":
		return false
	}
	return true
}

// PartitionPriorities calls the function each with the priority of j in each of
// its partitions.
func PartitionPriorities(j *model.Job, each func(partition string, priority uint32)) {
	names := strings.Split(cmp.Or(j.PriorityArrayNames, j.Partition), ",")
	for i, name := range names {
		priority := j.Priority
		if len(j.PriorityArray) == len(names) {
			priority = j.PriorityArray[i]
		}
		each(name, priority)
	}
}

// Place is the position of a waiting job in its partition.
type Place struct {
	Partition string
	Position  int // 1 for the job that comes first
	Waiting   int // number of jobs that wait there for their turn
	Priority  uint32
	Factors   *model.JobPriority // nil if not known
}

// place returns the best position of j in its partitions, or nil if it is not
// known.
func (f *Facts) place(j *model.Job) (best *Place) {
	PartitionPriorities(j, func(partition string, priority uint32) {
		q := f.Queues[partition]
		if q == nil || len(q.keys) == 0 {
			return
		}
		p := &Place{Partition: partition, Position: q.place(priority, j.StepID.JobID), Waiting: len(q.keys), Priority: priority,
			Factors: f.Factors[FactorsKey{j.StepID.JobID, partition}]}
		if p.Waiting = max(p.Waiting, p.Position); best == nil || p.Position < best.Position {
			best = p
		}
	})
	return best
}

// wantedLicenses returns the licenses for which j waits, with the number that it
// asks for.
func (f *Facts) wantedLicenses(j *model.Job) (list []License) {
	for item := range strings.FieldsFuncSeq(j.Licenses, func(r rune) bool { return r == ',' || r == ';' || r == '|' }) {
		name, count, found := strings.Cut(item, ":")
		if l, ok := f.Licenses[name]; ok {
			wanted := uint64(1)
			if found {
				wanted = number(count)
			}
			list = append(list, License{License: l, Requested: wanted})
		}
	}
	return list
}

// License is a license for which a job waits.
type License struct {
	model.License
	Requested uint64
}

// Limits on the work for the explanation of a job. A job may ask for every node of a
// cluster.
const (
	maxNodes        = 10 // nodes in an explanation
	maxWanted       = 500
	maxReserved     = 4 // nodes that are looked up in reservations
	maxReservations = 32
)

// missingNodes returns the nodes that start no jobs, of those that j asks for or,
// if it asks for none, of those that the controller names.
func (f *Facts) missingNodes(j *model.Job) (list []Node) {
	wanted := j.ReqNodes
	if _, named, ok := strings.Cut(j.StateDescription, "UnavailableNodes:"); wanted == "" && ok {
		wanted, _, _ = strings.Cut(named, " ")
	}
	tried := 0
	for host := range model.Hosts(wanted) {
		if tried++; len(list) == maxNodes || tried > maxWanted {
			break
		}
		if n, ok := f.Nodes[host]; ok {
			list = append(list, n)
		}
	}
	return list
}

// reservationOf returns the reservation of j, or else the first one that has a node
// which j asks for. It returns nil if there is none.
func (f *Facts) reservationOf(j *model.Job) (first *model.Reservation) {
	if j.Reservation != "" {
		if i := slices.IndexFunc(f.Reservations, func(r model.Reservation) bool { return r.Name == j.Reservation }); i >= 0 {
			return &f.Reservations[i]
		}
		return nil
	}
	tried := 0
	for host := range model.Hosts(j.ReqNodes) {
		if tried++; tried > maxReserved {
			break
		}
		for i := range f.Reservations[:min(len(f.Reservations), maxReservations)] {
			if r := &f.Reservations[i]; model.HostlistHas(r.Nodes, host) && (first == nil || r.StartTime < first.StartTime) {
				first = r
			}
		}
	}
	return first
}

// CompactAssociation returns a copy of a without the lists that contain no limit,
// because there may be many associations.
func CompactAssociation(a *model.AssocLimits) *model.AssocLimits {
	c := *a
	for _, list := range []*[]model.Opt[uint64]{&c.TRESMinutes, &c.TRESRunMinutes, &c.TRES, &c.MaxTRESMinutes, &c.MaxTRESRunMins, &c.MaxTRES, &c.MaxTRESPerNode} {
		if !slices.ContainsFunc(*list, func(o model.Opt[uint64]) bool { return o.Set }) {
			*list = nil
		}
	}
	return &c
}
