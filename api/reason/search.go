package reason

import (
	"strings"

	"schedrestd/model"
)

// A search looks for the limit that keeps a job from starting.
type search struct {
	facts            *Facts
	job              *model.Job
	kind, what, part string
	measure          measure
	asked            map[string]uint64 // of each trackable resource
	found            *Limit
	exhausted        bool
}

// A gauge is where a limit is, and what is used of it.
type gauge struct {
	name      string
	of, whose string
	limits    []model.Opt[uint64] // for each trackable resource
	used      func(i int) uint64  // nil if only the job counts
	reserved  func(i int) uint64  // nil if what running jobs may still use does not count
	limit     model.Opt[uint32]   // of jobs and of run time
	usedN     uint64
	factor    float64 // multiplies limits; 0 for none
}

// associations tries the limits of the job's association and of those above it.
func (s *search) associations() {
	factor := s.limitFactor()
	a := s.facts.Associations[s.job.AssocID]
	for depth := 0; a != nil && depth < maxDepth && !s.exhausted; depth++ {
		of, whose := "account "+a.Account, ""
		if a.User != "" {
			whose = "user " + a.User
		}
		if a.Partition != "" {
			of += ", partition " + a.Partition
		}
		u := &a.Usage
		g := gauge{of: of, whose: whose}
		switch s.measure {
		case resources:
			g.name, g.limits, g.used, g.factor = "GrpTRES", a.TRES, at(u.TRES, 1), factor
		case jobs:
			g.name, g.limit, g.usedN = "GrpJobs", a.GrpJobs, uint64(u.Jobs)
			if s.kind == "Max" {
				g.name, g.limit = "MaxJobs", a.MaxJobs
			}
		case submitted:
			g.name, g.limit, g.usedN = "GrpSubmitJobs", a.GrpSubmitJobs, uint64(u.SubmitJobs)
			if s.kind == "Max" {
				g.name, g.limit = "MaxSubmitJobs", a.MaxSubmitJobs
			}
		case wall:
			g.name, g.limit, g.usedN = "GrpWall", a.GrpWall, uint64(u.Wall/60)
		case minutes:
			g.name, g.limits, g.used, g.reserved = "GrpTRESMins", a.TRESMinutes, usedUp(u.TRESSeconds), at(u.TRESRunSeconds, 60)
		case runMinutes:
			g.name, g.limits, g.used = "GrpTRESRunMins", a.TRESRunMinutes, at(u.TRESRunSeconds, 60)
		case perJob:
			g.name, g.limits, g.factor = "MaxTRESPerJob", a.MaxTRES, factor
		case perNode:
			g.name, g.limits = "MaxTRESPerNode", a.MaxTRESPerNode
		case wallPerJob:
			g.name, g.limit = "MaxWallDurationPerJob", a.MaxWallPJ
		case minutesPerJob:
			g.name, g.limits = "MaxTRESMinsPerJob", a.MaxTRESMinutes
		}
		s.try(g)
		if s.kind == "Max" { // those of the accounts above are inherited
			return
		}
		a = s.facts.Associations[a.ParentID]
	}
}

// maxDepth limits the depth of the tree of accounts, because what the controller
// sends may contain a cycle.
const maxDepth = 100

// qos tries the limits of the QOS of the job and of its partition, in the order in
// which the controller applies them: it ignores a limit of the second if the first
// has one, too.
func (s *search) qos() {
	for _, q := range s.facts.qosOf(s.job) {
		if s.found == nil {
			s.try(s.qosGauge(q))
		}
	}
}

func (s *search) qosGauge(q *model.QOSLimits) gauge {
	g := gauge{of: "QOS " + q.Name}
	u := &q.Usage
	var used *model.UsedLimits
	switch s.part {
	case "PerUser":
		used, g.whose = usedBy(u.Users, func(l *model.UsedLimits) bool { return l.UserID == s.job.UserID }), "user "+s.facts.user(s.job)
	case "PerAccount":
		used, g.whose = usedBy(u.Accounts, func(l *model.UsedLimits) bool { return l.Account == s.job.Account }), "account "+s.job.Account
	}
	user := s.part == "PerUser"
	switch s.measure {
	case resources:
		g.name, g.limits, g.used = "GrpTRES", q.TRES, at(u.TRES, 1)
		if used != nil {
			g.name, g.limits, g.used = either(user, "MaxTRESPerUser", "MaxTRESPerAccount"), either(user, q.MaxTRESPerUser, q.MaxTRESPerAcct), at(used.TRES, 1)
		}
	case jobs:
		g.name, g.limit, g.usedN = "GrpJobs", q.GrpJobs, uint64(u.Jobs)
		if used != nil {
			g.name, g.limit, g.usedN = either(user, "MaxJobsPerUser", "MaxJobsPerAccount"), either(user, q.MaxJobsPU, q.MaxJobsPA), uint64(used.Jobs)
		}
	case submitted:
		g.name, g.limit, g.usedN = "GrpSubmitJobs", q.GrpSubmitJobs, uint64(u.SubmitJobs)
		if used != nil {
			g.name, g.limit, g.usedN = either(user, "MaxSubmitJobsPerUser", "MaxSubmitJobsPerAccount"), either(user, q.MaxSubmitJobsPU, q.MaxSubmitJobsPA), uint64(used.SubmitJobs)
		}
	case wall:
		g.name, g.limit, g.usedN = "GrpWall", q.GrpWall, uint64(u.Wall/60)
	case minutes:
		g.name, g.limits, g.used, g.reserved = "GrpTRESMins", q.TRESMinutes, usedUp(u.TRESSeconds), at(u.TRESRunSeconds, 60)
	case runMinutes:
		g.name, g.limits, g.used = "GrpTRESRunMins", q.TRESRunMinutes, at(u.TRESRunSeconds, 60)
		if used != nil {
			g.name, g.limits, g.used = either(user, "MaxTRESRunMinsPerUser", "MaxTRESRunMinsPerAccount"), either(user, q.RunMinsPerUser, q.RunMinsPerAcct), at(used.TRESRunSeconds, 60)
			if used.TRESRunMinutes != nil {
				g.used = at(used.TRESRunMinutes, 1)
			}
		}
	case perJob:
		g.name, g.limits = "MaxTRESPerJob", q.MaxTRES
	case perNode:
		g.name, g.limits = "MaxTRESPerNode", q.MaxTRESPerNode
	case wallPerJob:
		g.name, g.limit = "MaxWallDurationPerJob", q.MaxWallPJ
	case minutesPerJob:
		g.name, g.limits = "MaxTRESMinsPerJob", q.MaxTRESMinutes
	case atLeast:
		g.name, g.limits = "MinTRESPerJob", q.MinTRES
	}
	return g
}

// try notes the limit of g if it is exhausted, or if it is the first one.
func (s *search) try(g gauge) {
	l := Limit{Name: g.name, Of: g.of, Whose: g.whose, measure: s.measure}
	switch s.measure {
	case jobs, submitted:
		if g.limit.Set {
			l.Allowed, l.Used = uint64(g.limit.Number), model.Some(g.usedN)
			s.note(l)
		}
	case wall, wallPerJob:
		if g.limit.Set {
			l.Allowed, l.Unit, l.Requested = uint64(g.limit.Number), "min", s.timeLimit()
			if s.measure == wall {
				l.Used = model.Some(g.usedN)
			}
			s.note(l)
		}
	default:
		for i, tres := range s.facts.TRES {
			if i < len(g.limits) && g.limits[i].Set && isOf(s.what, tres) {
				l.Resource, l.Unit, l.Allowed, l.Requested = tres, unitOf(tres), g.limits[i].Number, s.request(tres)
				if g.factor > 0 {
					l.Allowed = uint64(float64(l.Allowed) * g.factor)
				}
				if g.used != nil {
					l.Used = model.Some(g.used(i))
				}
				if g.reserved != nil {
					l.Reserved = model.Some(g.reserved(i))
				}
				if s.measure == minutes || s.measure == runMinutes || s.measure == minutesPerJob {
					l.Unit = strings.TrimPrefix(l.Unit+" min", " ")
				}
				s.note(l)
			}
		}
	}
}

func (s *search) note(l Limit) {
	if s.exhausted {
		return
	}
	if s.exhausted = l.exhausted(); s.exhausted || s.found == nil {
		s.found = &l
	}
}

// timeLimit returns the time limit of the job in minutes.
func (s *search) timeLimit() model.Opt[uint64] {
	t := s.job.TimeLimit
	return model.Opt[uint64]{Number: uint64(t.Number), Set: t.Set, Infinite: t.Infinite}
}

// request returns what the job asks for of a trackable resource, in the measure of
// the limit.
func (s *search) request(tres string) model.Opt[uint64] {
	n, ok := s.asked[tres]
	if !ok {
		return model.Opt[uint64]{}
	}
	switch s.measure {
	case perNode:
		n /= max(s.asked["node"], 1)
	case minutes, runMinutes, minutesPerJob:
		t := s.timeLimit()
		t.Number *= n
		return t
	}
	return model.Some(n)
}

// limitFactor returns the factor by which the QOS multiplies limits of associations.
func (s *search) limitFactor() float64 {
	for _, q := range s.facts.qosOf(s.job) {
		if f := q.LimitFactor; f != model.FloatInfinite && f != model.FloatNotSet {
			return f
		}
	}
	return 0
}

// overPartitionQOS is the bit of a QOS whose limits come before those of the
// partition's QOS.
const overPartitionQOS = 0x80

// qosOf returns the QOS whose limits apply to j, in the order in which the controller
// applies them.
func (f *Facts) qosOf(j *model.Job) (list []*model.QOSLimits) {
	name, _, _ := strings.Cut(j.QOS, ",")
	own := f.QOS[name]
	for partition := range strings.SplitSeq(j.Partition, ",") {
		if p := f.Partitions[partition]; p != nil && f.QOS[p.QOS] != nil {
			list = append(list, f.QOS[p.QOS])
		}
	}
	switch {
	case own == nil:
	case own.Flags&overPartitionQOS != 0:
		list = append([]*model.QOSLimits{own}, list...)
	default:
		list = append(list, own)
	}
	return list
}

// user returns the name of the user of j.
func (f *Facts) user(j *model.Job) string {
	if j.UserName == "" && f.User != nil {
		return f.User(j.UserID)
	}
	return j.UserName
}

// usedBy returns what a user or an account uses of a QOS, which is nothing if the
// list does not have it.
func usedBy(list []model.UsedLimits, is func(*model.UsedLimits) bool) *model.UsedLimits {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return new(model.UsedLimits)
}

// at returns a function that returns the elements of list, divided by n.
func at(list []uint64, n uint64) func(i int) uint64 {
	return func(i int) uint64 {
		if i >= len(list) {
			return 0
		}
		return list[i] / n
	}
}

// usedUp returns a function that returns the minutes that jobs have used of a
// resource.
func usedUp(seconds []float64) func(i int) uint64 {
	return func(i int) uint64 {
		if i >= len(seconds) || !(seconds[i] >= 0) {
			return 0
		}
		return uint64(seconds[i] / 60)
	}
}

func either[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
