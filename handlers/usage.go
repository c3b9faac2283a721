package handlers

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A usageReport is a request for usage.
type usageReport struct {
	h       *handler
	c       *rest.Call
	params  *api.UsageParams
	records *api.Records
	span    usageSpan
	tres    map[uint32]bool       // resources to report; nil for all
	sortBy  uint32                // resource by which top_users sorts
	until   map[string]model.Time // up to which time the usage of each cluster is rolled up
}

// usageRows is the list of a report's rows.
type usageRows = schema.Stream[model.UsageRow]

// getUsage reports usage. Like sreport, it gets usage with the lists of clusters,
// associations and workload keys: a request about a single one exists, too, but
// would have to be sent for each of them.
func (h *handler) getUsage(c *rest.Call, p *api.UsageParams) error {
	p.Report = cmp.Or(p.Report, api.UsageReports[0])
	if p.By != "" && (p.Report == "job_sizes" || p.Report == "top_users") {
		return errs.New(errs.Invalid, "the report %s can't be divided into periods", p.Report).WithSource(rest.InQuery + "by").WithHint("omit by, and send a request for each period")
	}
	if err := c.ShowByDefault(api.UsageFields(p.Report)...); err != nil {
		return err
	}
	r := &usageReport{h: h, c: c, params: p, span: newUsageSpan(p.Start, p.End, p.By, c.Started())}
	if err := r.resolve(); err != nil {
		return err
	}
	clusters, err := r.clusters()
	if err != nil {
		return err
	}
	body := api.UsageAnswer{Envelope: c.Envelope(), Usage: r.rows(clusters)}
	for _, k := range clusters {
		body.RolledUp = append(body.RolledUp, model.RolledUp{Cluster: k.Name, Until: r.until[k.Name]})
	}
	return rest.Send(c, http.StatusOK, api.Usage, &body)
}

// resolve translates the names in the request.
func (r *usageReport) resolve() (err error) {
	p := r.params
	if r.records, err = r.h.records(r.c); err != nil {
		return err
	}
	if len(p.Clusters) == 0 && r.h.Cluster != "" {
		p.Clusters = []string{r.h.Cluster}
	}
	if p.Clusters, err = r.h.spellClusters(r.c, p.Clusters); err != nil {
		return err
	}
	if p.QOS, err = qosNumbers(r.records, p.QOS, "qos"); err != nil {
		return err
	}
	r.sortBy = cpuTRES
	for i, name := range p.TRES {
		id, ok := r.tresNumber(name)
		if !ok {
			return errs.New(errs.Invalid, "there is no trackable resource %q", schema.Shorten(name)).WithSource(rest.InQuery + "tres")
		}
		if i == 0 {
			r.tres, r.sortBy = map[uint32]bool{}, id
		}
		r.tres[id] = true
	}
	return nil
}

// cpuTRES is the number of the resource cpu in every cluster.
const cpuTRES = 1

func (r *usageReport) tresNumber(name string) (id uint32, ok bool) {
	for id, t := range r.records.TRES {
		if model.SameName(tresName(t), name) {
			return id, true
		}
	}
	return 0, false
}

func tresName(t model.TRES) string { return strings.TrimSuffix(t.Type+"/"+t.Name, "/") }

// tresOf returns the name of a resource, or its number if it is unknown.
func (r *usageReport) tresOf(id uint32) string {
	return cmp.Or(tresName(r.records.TRES[id]), numberText(id))
}

// clusters returns the clusters with their usage, and sets r.until.
func (r *usageReport) clusters() (list []model.Cluster, err error) {
	start, end, table := r.span.request()
	filter := model.ClusterFilter{Names: r.params.Clusters, WithUsage: true, WithDeleted: true, UsageStart: start, UsageEnd: end}
	r.until = map[string]model.Time{}
	err = recordsOf[model.Cluster](r.h, r.c, filter)(func(k *model.Cluster) error {
		last := model.Time(0)
		for i := range k.Usage {
			last = max(last, k.Usage[i].PeriodStart)
		}
		if last != 0 {
			r.until[k.Name] = r.span.rolledUpBy(last, table)
		}
		kept := model.Cluster{Name: k.Name}
		if r.params.Report == "cluster" {
			kept.Usage = k.Usage
		}
		list = append(list, kept)
		return nil
	})
	return list, err
}

// rows returns the rows of the report.
func (r *usageReport) rows(clusters []model.Cluster) usageRows {
	switch r.params.Report {
	case "accounts":
		return r.associations(model.AssocWithUsage, true, func(a *model.Association, _ *model.Usage) usageOwner {
			return usageOwner{cluster: a.Cluster, account: a.Account}
		})
	case "associations":
		return r.associations(model.AssocWithUsage, false, func(a *model.Association, _ *model.Usage) usageOwner {
			return usageOwner{cluster: a.Cluster, account: a.Account, user: a.User, partition: a.Partition}
		})
	case "qos":
		return r.associations(model.AssocWithUsage|model.AssocQOSUsage, true, func(a *model.Association, u *model.Usage) usageOwner {
			return usageOwner{cluster: a.Cluster, account: a.Account, qos: cmp.Or(r.records.QOS[u.IDAlt], numberText(u.IDAlt))}
		})
	case "users":
		return r.users
	case "top_users":
		return r.topUsers
	case "wckeys":
		return r.wckeys
	case "job_sizes":
		return r.jobSizes
	}
	return func(each func(*model.UsageRow) error) error {
		for i := range clusters {
			if err := r.utilization(&clusters[i], each); err != nil {
				return err
			}
		}
		return nil
	}
}

// utilization passes the utilization of a cluster on.
func (r *usageReport) utilization(k *model.Cluster, each func(*model.UsageRow) error) error {
	type period struct {
		start model.Time
		tres  uint32
	}
	sums, rowCounts := map[period]*model.UsageRow{}, map[period]uint64{}
	var order []period
	for i := range k.Usage {
		u := &k.Usage[i]
		start, end, ok := r.span.period(u.PeriodStart)
		if !ok || r.tres != nil && !r.tres[u.TRES.ID] {
			continue
		}
		at := period{start, u.TRES.ID}
		row := sums[at]
		if row == nil {
			row = &model.UsageRow{Cluster: k.Name, TRES: r.tresOf(u.TRES.ID), Start: start, End: r.end(k.Name, start, end)}
			sums[at], order = row, append(order, at)
		}
		row.Allocated += u.AllocSecs
		row.Down += u.DownSecs
		row.PlannedDown += u.PlannedDownSecs
		row.Idle += u.IdleSecs
		row.Planned += u.PlannedSecs
		row.Over += u.OverSecs
		row.Count += u.TRES.Count
		rowCounts[at]++
	}
	slices.SortFunc(order, func(a, b period) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.tres, b.tres)) })
	for _, at := range order {
		row := sums[at]
		row.Reported = row.Allocated + row.Down + row.PlannedDown + row.Idle + row.Planned
		row.Count /= rowCounts[at]
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// end returns the end of a period, or the time up to which the usage of the
// cluster is rolled up, if that is in the period.
func (r *usageReport) end(cluster string, start, end model.Time) model.Time {
	if until := r.until[cluster]; until > start {
		return min(end, until)
	}
	return end
}

// associationFilter returns a filter for associations with their usage. With
// accountsOnly, it selects no associations of users.
func (r *usageReport) associationFilter(flags model.AssocFilterFlags, accountsOnly bool) model.AssocFilter {
	start, end, _ := r.span.request()
	f := model.AssocFilter{
		Accounts: r.params.Accounts, Clusters: r.params.Clusters, Users: r.params.Users, UsageStart: start, UsageEnd: end,
		Flags: flags | model.AssocWithDeleted | model.AssocWithoutParentInfo | model.AssocWithoutParentLimits,
	}
	if flags&model.AssocQOSUsage != 0 {
		f.QOSIDs = r.params.QOS
	}
	if accountsOnly {
		f.Users = []string{""}
	}
	return f
}

// associations returns rows about one association after the other. The function
// owner returns whose usage a row of slurmdbd's table is.
func (r *usageReport) associations(flags model.AssocFilterFlags, accountsOnly bool, owner func(*model.Association, *model.Usage) usageOwner) usageRows {
	return func(each func(*model.UsageRow) error) error {
		sums := r.ledger()
		defer sums.clear()
		filter := r.associationFilter(flags|model.AssocSubAccounts, accountsOnly)
		return recordsOf[model.Association](r.h, r.c, filter)(func(a *model.Association) error {
			if accountsOnly && a.User != "" {
				return nil
			}
			for i := range a.Usage {
				if err := sums.add(owner(a, &a.Usage[i]), &a.Usage[i]); err != nil {
					return err
				}
			}
			defer sums.clear()
			return r.send(sums, each)
		})
	}
}

func (r *usageReport) ledger() *usageLedger { return newUsageLedger(&r.span, r.tres, r.c.Reserve()) }

// send passes the sums of a ledger on as rows.
func (r *usageReport) send(sums *usageLedger, each func(*model.UsageRow) error) error {
	for _, k := range sums.sorted() {
		row := model.UsageRow{
			Cluster: k.cluster, Account: k.account, User: k.user, Partition: k.partition, WCKey: k.wckey, QOS: k.qos,
			TRES: r.tresOf(k.tres), Start: k.start, End: r.end(k.cluster, k.start, sums.ends[k.start]), Allocated: sums.sums[k],
		}
		if err := each(&row); err != nil {
			return err
		}
	}
	return nil
}

// userSums returns the usage of each user in each account. The sums must be
// cleared.
func (r *usageReport) userSums() (*usageLedger, error) {
	sums, whole := r.ledger(), map[usageOwner]bool{}
	err := recordsOf[model.Association](r.h, r.c, r.associationFilter(model.AssocWithUsage, false))(func(a *model.Association) error {
		if a.User == "" {
			return nil
		}
		owner := usageOwner{cluster: a.Cluster, account: a.Account, user: a.User, partition: a.Partition}
		if a.Partition == "" && a.Lineage != "" {
			whole[owner] = true
		}
		for i := range a.Usage {
			if err := sums.add(owner, &a.Usage[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = sums.countOnce(whole)
	}
	return sums, err
}

func (r *usageReport) users(each func(*model.UsageRow) error) error {
	sums, err := r.userSums()
	defer sums.clear()
	if err != nil {
		return err
	}
	return r.send(sums, each)
}

// topUsers passes the users on who used most, in each cluster.
func (r *usageReport) topUsers(each func(*model.UsageRow) error) error {
	sums, err := r.userSums()
	defer sums.clear()
	if err != nil {
		return err
	}
	type user struct {
		usageOwner
		accounts []string
		used     map[uint32]uint64
	}
	var list []*user
	for _, k := range sums.sorted() { // those of a user follow each other
		owner := usageOwner{cluster: k.cluster, user: k.user}
		if len(list) == 0 || list[len(list)-1].usageOwner != owner {
			list = append(list, &user{usageOwner: owner, used: map[uint32]uint64{}})
		}
		last := list[len(list)-1]
		if !slices.Contains(last.accounts, k.account) {
			last.accounts = append(last.accounts, k.account)
		}
		last.used[k.tres] += sums.sums[k]
	}
	slices.SortStableFunc(list, func(a, b *user) int {
		return cmp.Or(strings.Compare(a.cluster, b.cluster), cmp.Compare(b.used[r.sortBy], a.used[r.sortBy]))
	})
	top, sent := cmp.Or(r.params.Top, defaultTop), map[string]uint32{}
	for _, u := range list {
		if sent[u.cluster]++; sent[u.cluster] > top {
			continue
		}
		for _, id := range sortedNumbers(u.used) {
			row := r.whole(u.cluster, id)
			row.User, row.Accounts, row.Allocated = u.user, u.accounts, u.used[id]
			if err := each(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

const defaultTop = 10

// whole returns a row about the whole time.
func (r *usageReport) whole(cluster string, tres uint32) model.UsageRow {
	start, end := model.At(r.span.start), model.At(r.span.end)
	return model.UsageRow{Cluster: cluster, TRES: r.tresOf(tres), Start: start, End: r.end(cluster, start, end)}
}

// wckeys passes the usage of each workload key on: of all users together, and of
// each user.
func (r *usageReport) wckeys(each func(*model.UsageRow) error) error {
	start, end, _ := r.span.request()
	filter := model.WCKeyFilter{Names: r.params.WCKeys, Clusters: r.params.Clusters, Users: r.params.Users, WithUsage: true, WithDeleted: true, UsageStart: start, UsageEnd: end}
	sums := r.ledger()
	defer sums.clear()
	err := recordsOf[model.WCKey](r.h, r.c, filter)(func(k *model.WCKey) error {
		for i := range k.Usage {
			for _, user := range []string{"", k.User} {
				if err := sums.add(usageOwner{cluster: k.Cluster, wckey: k.Name, user: user}, &k.Usage[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.send(sums, each)
}
