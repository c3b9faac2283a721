package handlers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"schedrestd/api/reason"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// Limits on the facts for explanations. Beyond them, explanations lack numbers.
const (
	maxQueued       = 1_000_000 // waiting jobs whose order is known
	maxFacts        = 20_000    // nodes, and other records of each kind
	maxNamedUsers   = 16        // users whose associations are requested by name; with more users, all associations are
	maxFactorsOfJob = 20        // partitions of a job whose parts of the priority are known
)

// explainer collects the facts for the explanations in one answer. It requests
// each kind of fact at most once, and only if a job in the answer needs it.
type explainer struct {
	h     *handler
	c     *rest.Call
	facts *reason.Facts

	needs      reason.Need
	users      map[uint32]string
	accounts   map[string]bool
	assocs     map[uint32]bool
	qos        map[string]bool
	partitions map[string]bool
	jobs       map[uint32]bool // those whose place matters
	queued     int
}

// explain returns the facts for the explanations of the jobs that match, or nil if
// the client wants none. It reads the first of the lists, which the answer reads
// afterwards, so that the answer contains no older facts than jobs, and the facts
// are part of what identifies its records. The last list is one of all jobs.
func (h *handler) explain(c *rest.Call, wanted bool, q model.Query, match func(*model.Job) bool, sources ...feed.Source[model.Job]) (*reason.Facts, error) {
	if !wanted || !c.Shows("jobs", "explanation") {
		return nil, nil
	}
	c.ReadTwice()
	e := &explainer{h: h, c: c, facts: &reason.Facts{User: h.Users.User},
		users: map[uint32]string{}, accounts: map[string]bool{}, assocs: map[uint32]bool{}, qos: map[string]bool{}, partitions: map[string]bool{}, jobs: map[uint32]bool{}}
	first, all := &sources[0], &sources[len(sources)-1]
	q.Undated, q.Without = c.Waits(), model.JobAllocation|model.JobNodeIndexes
	_, err := first.Read(c.Context(), q, func(j *model.Job) error {
		if match(j) {
			e.note(j)
		}
		if first.Whole {
			e.queue(j)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if e.needs&reason.NeedQueues != 0 && !first.Whole {
		q := q
		q.Undated = true
		_, err := all.Read(c.Context(), q, func(j *model.Job) error { e.queue(j); return nil })
		if err := e.missing("the order of the waiting jobs", err); err != nil {
			return nil, err
		}
	}
	return e.facts, e.request(len(e.jobs) == 1 && !first.Whole)
}

// note notes which facts the explanation of j needs.
func (e *explainer) note(j *model.Job) {
	if j.State.Base() != model.JobPending {
		return
	}
	needs := reason.Needs(j)
	e.needs |= needs
	if needs&reason.NeedQueues != 0 && len(e.jobs) < 2 {
		e.jobs[j.StepID.JobID] = true
	}
	if needs&(reason.NeedLimits|reason.NeedPartitions) == 0 || len(e.assocs) >= maxFacts || len(e.qos) >= maxFacts {
		return
	}
	e.users[j.UserID] = cmp.Or(j.UserName, e.h.Users.User(j.UserID))
	e.accounts[j.Account], e.assocs[j.AssocID] = true, true
	for name := range strings.SplitSeq(j.QOS, ",") {
		e.qos[name] = true
	}
	for name := range strings.SplitSeq(j.Partition, ",") {
		e.partitions[name] = true
	}
}

// queue adds j to the jobs that wait for their turn.
func (e *explainer) queue(j *model.Job) {
	if !reason.Waits(j) || e.queued >= maxQueued {
		return
	}
	reason.PartitionPriorities(j, func(partition string, priority uint32) {
		if e.facts.Queues == nil {
			e.facts.Queues = map[string]*reason.Queue{}
		}
		q := e.facts.Queues[partition]
		if q == nil {
			q = new(reason.Queue)
			e.facts.Queues[partition] = q
		}
		q.Add(priority, j.StepID.JobID)
		e.queued++
	})
}

// request requests the facts that are needed. The parts of priorities are only
// requested for a single job, because the controller sends those of all jobs.
func (e *explainer) request(single bool) error {
	if e.queued >= maxQueued {
		e.facts.Queues = nil
	}
	for _, r := range []struct {
		needed bool
		what   string
		read   func(context.Context, model.Credential) error
	}{
		{e.needs&reason.NeedPartitions != 0, "partitions", e.readPartitions},
		{e.needs&reason.NeedLimits != 0, "the use of limits", e.readLimits},
		{e.needs&reason.NeedLicenses != 0, "licenses", e.readLicenses},
		{e.needs&reason.NeedNodes != 0, "nodes", e.readNodes},
		{e.needs&reason.NeedReservations != 0, "reservations", e.readReservations},
		{e.needs&reason.NeedQueues != 0 && single, "the parts of priorities", e.readFactors},
	} {
		if !r.needed {
			continue
		}
		if err := e.missing(r.what, r.read(e.c.Context(), e.c.Credential())); err != nil {
			return err
		}
	}
	return nil
}

// missing warns that explanations lack facts, unless the controller has no such
// facts. It returns an error only if the request has ended.
func (e *explainer) missing(what string, err error) error {
	switch {
	case err == nil, errs.KindOf(err) == errs.Unsupported:
		return nil
	case e.c.Context().Err() != nil:
		return err
	}
	e.c.Warn(rest.InQuery+"explain", "the explanations lack %s: %s", what, rest.Problem(err).Description)
	return nil
}

func (e *explainer) readPartitions(ctx context.Context, cred model.Credential) error {
	e.facts.Partitions = map[string]*model.Partition{}
	_, err := e.h.Controller.Partitions(ctx, cred, model.Query{Flags: model.ShowAll, Undated: true}, func(p *model.Partition) error {
		if e.partitions[p.Name] {
			copied := *p
			e.facts.Partitions[p.Name] = &copied
			if p.QOS != "" {
				e.qos[p.QOS] = true
			}
		}
		return nil
	})
	return err
}

func (e *explainer) readLimits(ctx context.Context, cred model.Credential) error {
	q := model.LimitsQuery{Associations: true, QOS: slices.Sorted(maps.Keys(e.qos))}
	if len(e.users) <= maxNamedUsers {
		q.Users = slices.Sorted(maps.Values(e.users))
	}
	e.facts.Associations, e.facts.QOS = map[uint32]*model.AssocLimits{}, map[string]*model.QOSLimits{}
	return e.h.Controller.Limits(ctx, cred, q, func(tres []string, a *model.AssocLimits) error {
		e.facts.TRES = tres
		if (a.User == "" || e.assocs[a.ID]) && len(e.facts.Associations) < maxFacts {
			e.facts.Associations[a.ID] = reason.CompactAssociation(a)
		}
		return nil
	}, func(tres []string, l *model.QOSLimits) error {
		e.facts.TRES = tres
		if len(e.facts.QOS) < maxFacts {
			copied := *l
			copied.Usage.Users = slices.DeleteFunc(slices.Clone(l.Usage.Users), func(u model.UsedLimits) bool { return e.users[u.UserID] == "" })
			copied.Usage.Accounts = slices.DeleteFunc(slices.Clone(l.Usage.Accounts), func(u model.UsedLimits) bool { return !e.accounts[u.Account] })
			e.facts.QOS[l.Name] = &copied
		}
		return nil
	})
}

func (e *explainer) readLicenses(ctx context.Context, cred model.Credential) error {
	e.facts.Licenses = map[string]model.License{}
	_, err := e.h.Controller.Licenses(ctx, cred, model.Query{Flags: model.ShowAll}, func(l *model.License) error {
		if len(e.facts.Licenses) < maxFacts {
			e.facts.Licenses[l.Name] = *l
		}
		return nil
	})
	return err
}

func (e *explainer) readNodes(ctx context.Context, cred model.Credential) error {
	e.facts.Nodes = map[string]reason.Node{}
	_, err := e.h.Controller.Nodes(ctx, cred, model.Query{Flags: model.ShowAll | model.ShowMixed, Undated: true}, func(n *model.Node) error {
		if state := outOfService(n.State); state != "" && len(e.facts.Nodes) < maxFacts {
			e.facts.Nodes[n.Name] = reason.Node{Name: n.Name, State: state, Reason: n.Reason}
		}
		return nil
	})
	return err
}

// outOfService returns why a node in this state starts no jobs, or "" if it does.
func outOfService(s model.NodeState) string {
	switch {
	case s&model.NodeMaint != 0:
		return "in maintenance"
	case s.Base() == model.NodeDown && s&(model.NodePoweredDown|model.NodePoweringDown) == 0:
		return "down"
	case s&model.NodeDrain != 0:
		return "drained"
	case s&model.NodeFail != 0, s.Base() == model.NodeError:
		return "failing"
	case s&model.NodeNotResponding != 0:
		return "not responding"
	case s&model.NodeReserved != 0:
		return "reserved"
	case s.Base() == model.NodeFuture:
		return "not there yet"
	}
	return ""
}

func (e *explainer) readReservations(ctx context.Context, cred model.Credential) error {
	_, err := e.h.Controller.Reservations(ctx, cred, model.Query{Undated: true}, func(r *model.Reservation) error {
		if len(e.facts.Reservations) < maxFacts {
			e.facts.Reservations = append(e.facts.Reservations, *r)
		}
		return nil
	})
	return err
}

func (e *explainer) readFactors(ctx context.Context, cred model.Credential) error {
	e.facts.Factors = map[reason.FactorsKey]*model.JobPriority{}
	return e.h.Controller.Priorities(ctx, cred, func(p *model.JobPriority) error {
		id := p.StepID.JobID
		if e.jobs[id] && p.Direct == 0 && len(e.facts.Factors) < maxFactorsOfJob {
			copied := *p
			e.facts.Factors[reason.FactorsKey{Job: id, Partition: p.Partition}] = &copied
		}
		return nil
	})
}

// recordFacts returns the facts for the explanations of jobs in a stream of changes,
// which are those in the records alone, or nil if the client wants no explanations.
func (h *handler) recordFacts(wanted bool) *reason.Facts {
	if !wanted {
		return nil
	}
	return &reason.Facts{User: h.Users.User}
}
