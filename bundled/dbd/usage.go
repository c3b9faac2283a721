package dbd

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"schedrestd/bundled/dbd/catalog"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/zone"
	"schedrestd/model"
	"schedrestd/rpc/server"
)

// This daemon has no tables of usage. It computes usage from the records of the
// jobs that have ended, for the periods for which slurmdbd would have it.

// maxUsage is the maximum number of amounts that an answer is computed from.
const maxUsage = 500_000

// A usedKey says what used a resource, and in which period.
type usedKey struct {
	cluster string
	lineage string // of the association, as in package catalog
	start   model.Time
	tres    uint32
}

// used contains how much jobs used, in seconds times units of a resource.
type used struct {
	start, end model.Time // on the hour; only whole hours that are over
	length     string     // of the periods
	lineages   map[[3]string]string
	sums       map[usedKey]uint64
}

// usageOf computes the usage from start to end, which may be 0, in the clusters, or
// in all if clusters is nil. If owner is set, it is the usage of that user's jobs.
func (d *Daemon) usageOf(ctx context.Context, r *server.Request, clusters []string, start, end model.Time, owner model.Opt[uint32]) (*used, error) {
	now := time.Now()
	from, to := zone.Midnight(now, -1), zone.Midnight(now, 0)
	if start != 0 {
		from = zone.Hour(start.Go())
	}
	if end != 0 {
		to = zone.Hour(end.Go())
	}
	if to.Sub(from) < time.Hour {
		to = from.Add(time.Hour)
	}
	u := &used{start: model.At(from), length: model.UsageTable(from, to, now), lineages: map[[3]string]string{}, sums: map[usedKey]uint64{}}
	u.end = min(model.At(to), model.At(zone.Hour(now)))
	for _, a := range d.records(r.Session).ListAssociations(&model.AssocFilter{Flags: model.AssocWithoutParentLimits}) {
		if a.Partition == "" {
			u.lineages[[3]string{a.Cluster, a.Account, a.User}] = a.Lineage
		}
	}
	if u.end <= u.start {
		return u, nil
	}
	filter := &model.AccountingJobFilter{Clusters: clusters, UsageStart: u.start, UsageEnd: u.end, Flags: model.JobFilterDuplicates}
	err := d.store.Jobs(ctx, filter, owner, func(n int, next func() (string, *model.Job, error)) error {
		for range n {
			cluster, j, err := next()
			if err != nil {
				return err
			}
			if err := u.add(cluster, j); err != nil {
				return err
			}
		}
		return nil
	})
	return u, err
}

// add adds the usage of a job.
func (u *used) add(cluster string, j *model.Job) error {
	if !hasEnded(j) || elapsed(j, j.EndTime) == 0 {
		return nil
	}
	lineage := cmp.Or(u.lineages[[3]string{cluster, j.Account, j.UserName}], u.lineages[[3]string{cluster, j.Account, ""}], "/")
	amounts := strings.Split(tresByID(j.TRESAlloc), ",")
	from, to := max(j.StartTime, u.start), min(j.EndTime, u.end)
	for from < to {
		start, next := zone.Period(from.Go(), u.length)
		until := min(to, model.At(next))
		for _, amount := range amounts {
			id, count, ok := parseAmount(amount)
			if !ok {
				continue
			}
			u.sums[usedKey{cluster, lineage, max(model.At(start), u.start), id}] += count * uint64(until-from)
		}
		if len(u.sums) > maxUsage {
			return errs.New(errs.Invalid, "the usage has more than %d amounts", maxUsage).WithHint("ask for a shorter time")
		}
		from = until
	}
	return nil
}

// ofClusters adds usage to clusters. The daemon does not know how much of each
// resource a cluster has, so only the use by jobs is set. Each cluster has a row
// for its last period, from which clients can see up to when usage is known.
func (u *used) ofClusters(list []model.Cluster) {
	if u.end <= u.start {
		return
	}
	last, _ := zone.Period((u.end - 1).Go(), u.length)
	at := map[string]int{}
	sums := map[usedKey]uint64{}
	for i := range list {
		at[list[i].Name] = i
		sums[usedKey{list[i].Name, "", max(model.At(last), u.start), cpu}] = 0
	}
	for k, amount := range u.sums {
		k.lineage = ""
		sums[k] += amount
	}
	for k, amount := range sums {
		if i, ok := at[k.cluster]; ok {
			list[i].Usage = append(list[i].Usage, model.ClusterUsage{AllocSecs: amount, TRES: resource(k.tres), PeriodStart: k.start})
		}
	}
	for i := range list {
		slices.SortFunc(list[i].Usage, func(a, b model.ClusterUsage) int {
			return cmp.Or(cmp.Compare(a.PeriodStart, b.PeriodStart), cmp.Compare(a.TRES.ID, b.TRES.ID))
		})
	}
}

// ofAssociations adds usage to associations. As in slurmdbd, an association
// contains the usage of those below it.
func (u *used) ofAssociations(list []model.Association) {
	at := map[[2]string]int{}
	for i := range list {
		at[[2]string{list[i].Cluster, list[i].Lineage}] = i
	}
	sums := map[usedKey]uint64{}
	for k, amount := range u.sums {
		for i, c := range k.lineage {
			if c == '/' {
				above := k
				above.lineage = k.lineage[:i+1]
				sums[above] += amount
			}
		}
	}
	for k, amount := range sums {
		if i, ok := at[[2]string{k.cluster, k.lineage}]; ok {
			list[i].Usage = append(list[i].Usage, model.Usage{AllocSecs: amount, TRES: resource(k.tres), ID: list[i].ID, PeriodStart: k.start})
		}
	}
	for i := range list {
		slices.SortFunc(list[i].Usage, func(a, b model.Usage) int {
			return cmp.Or(cmp.Compare(a.PeriodStart, b.PeriodStart), cmp.Compare(a.TRES.ID, b.TRES.ID))
		})
	}
}

// resource returns the resource with an id, without an amount.
func resource(id uint32) model.TRES {
	i := slices.IndexFunc(resources, func(t model.TRES) bool { return t.ID == id })
	return resources[i] // tresByID returns no others
}

// addUsage adds the usage that a filter for associations asks for.
func (d *Daemon) addUsage(ctx context.Context, r *server.Request, f *model.AssocFilter, list []model.Association) error {
	switch {
	case f.Flags&model.AssocQOSUsage != 0:
		return errs.New(errs.Unsupported, "this accounting daemon has no usage by quality of service")
	case f.Flags&model.AssocWithUsage == 0 || len(list) == 0:
		return nil
	}
	owner := d.privacy.OwnerFilter(r.Identity.UID, conf.PrivateUsage)
	if d.adminLevel(r) >= catalog.Operator {
		owner = model.Opt[uint32]{}
	}
	u, err := d.usageOf(ctx, r, f.Clusters, f.UsageStart, f.UsageEnd, owner)
	if err == nil {
		u.ofAssociations(list)
	}
	return err
}
