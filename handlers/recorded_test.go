package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"schedrestd/model"
)

// recorded contains the records of a fake accounting daemon, and the requests
// that the daemon received.
type recorded struct {
	lists

	changes   []any                              // changes in order
	saved     *lists                             // while a transaction is open: the records without its changes
	committed []bool                             // for each transaction, whether its changes were committed
	refuse    func(change any) ([]string, error) // returns the result of a change; if nil, the result is the change's type

	filters []any // filters of the requests
}

// lists contains the records of a fake. The fake filters them only by names and
// ids.
type lists struct {
	jobs         []model.AccountingJob
	associations []model.Association
	shown        []model.Association // the associations with what they inherit; nil: the same
	accounts     []model.Account
	users        []model.User
	qos          []model.QOS
	clusters     []model.Cluster
	tres         []model.TRES
	wckeys       []model.WCKey
	conf         model.AccountingConf
	more         []recordLookup // records that only one test uses
	pages        bool           // whether the daemon selects the jobs of a page
}

// listRecords calls the listing's function with those records of list for which
// the function want returns true. As with a real daemon, a record is valid only
// during the call.
func listRecords[T any](a accounts, call string, cred model.Credential, l model.Listing, list []T, want func(*T) bool) error {
	each := l.Each.(func(*T) error)
	a.recorded.filters = append(a.recorded.filters, l.Filter)
	if err := a.logCall(call, cred); err != nil {
		return err
	}
	var reused T
	for i := range list {
		if reused = list[i]; !want(&reused) {
			continue
		}
		if err := each(&reused); err != nil {
			return err
		}
	}
	var zero T
	reused = zero
	if a.midwayCall != "" && a.midwayCall != call {
		return nil
	}
	return a.midwayErr
}

func oneOf(names []string, name string) bool { return names == nil || model.HasName(names, name) }

// inClusters reports whether a record is in one of the clusters. Like slurmdbd,
// the fake does not ignore case in these names.
func inClusters(names []string, name string) bool {
	return names == nil || slices.Contains(names, name)
}

// List filters records only by name. It does not see the changes of an open
// transaction.
func (a accounts) List(_ context.Context, cred model.Credential, l model.Listing) error {
	if a.recorded.saved != nil {
		own := a.recorded.lists
		a.recorded.lists = *a.recorded.saved
		defer func() { a.recorded.lists = own }()
	}
	return a.list(cred, l)
}

func (a accounts) list(cred model.Credential, l model.Listing) error {
	switch f := l.Filter.(type) {
	case model.AccountingJobFilter:
		return listRecords(a, "recorded jobs", cred, l, a.recorded.jobs, func(j *model.AccountingJob) bool {
			return (len(f.Steps) == 0 || f.Steps[0].Step.JobID == j.JobID || f.Steps[0].Step.JobID == j.ArrayJobID) && inClusters(f.Clusters, j.Cluster)
		})
	case model.AccountingJobPage:
		list := a.recorded.jobs
		if a.recorded.pages {
			list = slices.Clone(list)
			slices.SortFunc(list, func(x, y model.AccountingJob) int { return x.Key().Compare(y.Key()) })
			list = slices.DeleteFunc(list, func(j model.AccountingJob) bool {
				return j.Key().Compare(f.After) <= 0 || !inClusters(f.Clusters, j.Cluster)
			})
			list = list[:min(len(list), int(f.Limit))]
		}
		return listRecords(a, "recorded jobs", cred, l, list, func(j *model.AccountingJob) bool { return inClusters(f.Clusters, j.Cluster) })
	case model.AssocFilter:
		list := a.recorded.associations
		if f.Flags&model.AssocWithoutParentLimits == 0 && a.recorded.shown != nil {
			list = a.recorded.shown
		}
		return listRecords(a, "associations", cred, l, list, func(r *model.Association) bool {
			return selects(f, r)
		})
	case model.AccountFilter:
		return listRecords(a, "accounts", cred, l, a.recorded.accounts, func(r *model.Account) bool {
			if f.Flags&model.AccountWithAssocs == 0 {
				r.Associations = nil
			}
			return oneOf(f.Assoc.Accounts, r.Name)
		})
	case model.UserFilter:
		return listRecords(a, "users", cred, l, a.recorded.users, func(u *model.User) bool {
			if !f.WithAssocs { // a user's defaults come from their associations
				u.Associations, u.DefaultAccount = nil, ""
			}
			return oneOf(f.Assoc.Users, u.Name)
		})
	case model.QOSFilter:
		return listRecords(a, "qos", cred, l, a.recorded.qos, func(q *model.QOS) bool { return oneOf(f.Names, q.Name) && oneOf(f.IDs, fmt.Sprint(q.ID)) })
	case model.ClusterFilter:
		return listRecords(a, "clusters", cred, l, a.recorded.clusters, func(c *model.Cluster) bool { return oneOf(f.Names, c.Name) })
	case model.WCKeyFilter:
		return listRecords(a, "wckeys", cred, l, a.recorded.wckeys, func(k *model.WCKey) bool {
			return (oneOf(f.Names, k.Name) || oneOf(f.Names, strings.TrimPrefix(k.Name, "*"))) && oneOf(f.Users, k.User) && inClusters(f.Clusters, k.Cluster) && oneOf(f.IDs, fmt.Sprint(k.ID))
		})
	case model.TRESFilter:
		return listRecords(a, "tres", cred, l, a.recorded.tres, func(t *model.TRES) bool { return f.WithDeleted || t.ID != 1000 })
	}
	for _, lookup := range a.recorded.more {
		if list := lookup(l.Filter); list != nil {
			return list(a, cred, l)
		}
	}
	panic(fmt.Sprintf("no records for %T", l.Filter))
}

func selects(f model.AssocFilter, r *model.Association) bool {
	return oneOf(f.IDs, fmt.Sprint(r.ID)) && oneOf(f.Users, r.User) && oneOf(f.Accounts, r.Account) && inClusters(f.Clusters, r.Cluster) && oneOf(f.Partitions, r.Partition)
}

// A recordLookup returns a function that lists the records that a filter
// selects. It returns nil if the filter is for another kind of record.
type recordLookup func(filter any) func(accounts, model.Credential, model.Listing) error

// lookupIn returns a recordLookup for the records in list. The function wants
// reports whether a filter selects a record. The fake logs requests with the
// text in call.
func lookupIn[F model.Filter[T], T any](call string, wants func(F, *T) bool, list ...T) recordLookup {
	return func(filter any) func(accounts, model.Credential, model.Listing) error {
		f, ok := filter.(F)
		if !ok {
			return nil
		}
		return func(a accounts, cred model.Credential, l model.Listing) error {
			return listRecords(a, call, cred, l, list, func(one *T) bool { return wants(f, one) })
		}
	}
}

func (a accounts) Conf(_ context.Context, cred model.Credential) (*model.AccountingConf, error) {
	return &a.recorded.conf, a.logCall("conf", cred)
}

// Edit calls f with an editor for the fake's records. Later requests can read
// what f adds and removes. All other changes are only logged.
func (a accounts) Edit(_ context.Context, cred model.Credential, f func(model.Editor) error) error {
	if err := a.logCall("edit", cred); err != nil {
		return err
	}
	before := a.recorded.lists
	a.recorded.saved = &before
	defer func() { a.recorded.saved = nil }()
	err := f(editor{a, cred})
	if err != nil {
		a.recorded.lists = before
	}
	a.recorded.committed = append(a.recorded.committed, err == nil)
	return err
}

type editor struct {
	accounts
	cred model.Credential
}

func (e editor) List(l model.Listing) error { return e.accounts.list(e.cred, l) }

func (e editor) Context() context.Context { return context.Background() }

func (e editor) Change(change any) ([]string, error) {
	e.recorded.changes = append(e.recorded.changes, change)
	if e.recorded.refuse != nil {
		return e.recorded.refuse(change)
	}
	switch ch := change.(type) {
	case model.Add[model.Account]:
		e.recorded.accounts = slices.Concat(e.recorded.accounts, ch.Records)
	case model.Add[model.Association]:
		e.recorded.associations = slices.Concat(e.recorded.associations, ch.Records)
	case model.Add[model.Cluster]:
		e.recorded.clusters = slices.Concat(e.recorded.clusters, ch.Records)
	case model.Add[model.QOS]:
		e.recorded.qos = slices.Concat(e.recorded.qos, ch.Records)
	case model.Add[model.User]:
		e.recorded.users = slices.Concat(e.recorded.users, ch.Records)
	case model.Add[model.WCKey]:
		e.recorded.wckeys = slices.Concat(e.recorded.wckeys, ch.Records)
	case model.Remove[model.Account]:
		remove(&e.recorded.accounts, ch.Filter.(model.AccountFilter).Assoc.Accounts, accountName)
	case model.Remove[model.Association]:
		f := ch.Filter.(model.AssocFilter)
		e.recorded.associations = slices.DeleteFunc(slices.Clone(e.recorded.associations), func(r model.Association) bool { return selects(f, &r) })
	case model.Remove[model.Cluster]:
		remove(&e.recorded.clusters, ch.Filter.(model.ClusterFilter).Names, func(c *model.Cluster) string { return c.Name })
	case model.Remove[model.QOS]:
		remove(&e.recorded.qos, ch.Filter.(model.QOSFilter).IDs, func(q *model.QOS) string { return fmt.Sprint(q.ID) })
	case model.Remove[model.User]:
		remove(&e.recorded.users, ch.Filter.(model.UserFilter).Assoc.Users, userName)
	case model.Remove[model.WCKey]:
		f := ch.Filter.(model.WCKeyFilter)
		remove(&e.recorded.wckeys, []string{f.Names[0] + f.Users[0]}, func(k *model.WCKey) string { return k.Name + k.User })
	}
	return []string{fmt.Sprintf("%T", change)}, nil
}

// remove removes the records with the given keys. If keys is nil, it removes all.
func remove[T any](list *[]T, keys []string, key func(*T) string) {
	*list = slices.DeleteFunc(slices.Clone(*list), func(r T) bool { return oneOf(keys, key(&r)) })
}

// demoRecorded returns the records of the demo cluster. They include at least
// one example of each form in which records are rendered.
func demoRecorded() recorded {
	unlimited, some := model.Infinite[uint32](), model.Some[uint32]
	assoc := model.Association{Account: "lab", Cluster: "demo", User: "alice", Partition: "debug", ID: 4, Flags: 1 | 1<<16, Shares: 1, IsDefault: model.Some[uint16](1), Lineage: "/lab/0-alice/",
		DefaultQOSID: 2, QOSIDs: []string{"1", "+2", "-9"}, GrpTRES: "1=4,1001=2,7=9", MaxTRESPJ: "2=18446744073709551614", GrpJobs: some(3), MaxJobs: unlimited, MaxWallPJ: some(60), Priority: some(7), Comment: "c",
		Usage: []model.Usage{{AllocSecs: 90, TRES: model.TRES{ID: 1, Type: "cpu", Count: 3}, ID: 4, PeriodStart: 1_795_000_000}}}
	return recorded{lists: lists{
		conf: model.AccountingConf{ArchiveDir: "/tmp", CommitDelay: 1, Host: "ctl1", Port: 6819, DebugFlags: 0x200, DebugLevel: 3, SerializerParams: "compact", Serializers: "json,yaml", Flags: 1 | 1<<4, LogFile: "/var/log/dbd.log",
			MaxTimeRange: 90061, PurgeEvent: 12 | model.PurgeMonths | model.PurgeArchive, PurgeJob: model.NoVal32, PurgeStep: 5 | model.PurgeDays, SyslogDebug: 10, TrackWCKey: true, PersistFlags: 1 | 1<<3 | 1<<7},
		wckeys: []model.WCKey{
			{Name: "k", Cluster: "demo", User: "alice", ID: 3, Flags: 1, Usage: assoc.Usage},
			{Name: "other", Cluster: "demo", User: "bob", ID: 4},
		},
		more: []recordLookup{
			lookupIn("instances", func(f model.InstanceFilter, i *model.Instance) bool { return inClusters(f.Clusters, i.Cluster) },
				model.Instance{Cluster: "demo", Extra: "x", InstanceID: "i-1", InstanceType: "large", Node: "n1", TimeStart: 1_795_000_000, TimeEnd: 1_795_000_500}),
		},
		tres: []model.TRES{{ID: 1, Type: "cpu"}, {ID: 2, Type: "mem"}, {ID: 4, Type: "node"}, {ID: 1001, Type: "gres", Name: "gpu"}},
		clusters: []model.Cluster{{Name: "demo", ControlHost: "ctl1", ControlPort: 6817, Flags: 1 | 1<<7 | 1<<9, Nodes: "n[1-2]", RPCVersion: 42 << 8, TRES: "1=12,4=2", RootAssoc: model.Association{Account: "root", Cluster: "demo", ID: 1},
			Usage: []model.ClusterUsage{{AllocSecs: 7, DownSecs: 6, IdleSecs: 5, OverSecs: 4, PlannedDownSecs: 3, PlannedSecs: 2, PeriodStart: 1_699_999_200, TRES: model.TRES{ID: 1, Type: "cpu", Count: 12}}}}, {Name: "other", Flags: 2}},
		associations: []model.Association{{Account: "lab", Cluster: "demo", ID: 3, ParentAccount: "root", GrpWall: some(9), MinPrioThreshold: some(5)}, assoc},
		accounts: []model.Account{{Name: "lab", Description: "the lab", Organization: "uni", Flags: 1 | 4 | 1<<16, Associations: []model.Association{assoc},
			Coordinators: []model.Coordinator{{Name: "bob", Direct: model.Some[uint16](1)}, {Name: "eve"}}}},
		users: []model.User{{Name: "alice", AdminLevel: 2, DefaultAccount: "lab", DefaultWCKey: "k", Associations: []model.Association{assoc}, Coordinates: []model.Coordinator{{Name: "lab", Direct: model.Some[uint16](1)}},
			WCKeys: []model.WCKey{{Name: "k", Cluster: "demo", User: "alice", ID: 5, Flags: 1, Usage: assoc.Usage}}}, {Name: "bob", Flags: 1, AdminLevel: 1}},
		qos: []model.QOS{{ID: 1, Name: "normal", MaxWallPJ: unlimited, Priority: some(0), UsageFactor: 1, UsageThreshold: model.FloatInfinite, LimitFactor: model.FloatNotSet},
			{ID: 2, Name: "fast", Description: "first", Flags: 1<<2 | 1<<12, PreemptMode: 0x8002, PreemptIDs: model.Bitmap{Len: 8, Set: true, Bits: []byte{0b0100_0010}}, GrpTRESMins: "1=600", MaxTRESPU: "1001=1",
				GrpSubmitJobs: some(5), MaxJobsPU: some(2), PreemptExemptTime: some(30), GraceTime: 10, UsageFactor: 0.5}},
		jobs: []model.AccountingJob{{JobID: 12, Name: "old", Account: "lab", Cluster: "demo", AssocID: 4, User: "alice", UserID: 20001, GroupID: 20002, QOSID: 2, ArrayJobID: 12, ArrayTaskID: some(3), ArrayTasks: "0x492", ArrayMaxTasks: 2,
			SubmitTime: 1_794_000_000, EligibleTime: 1_794_000_010, StartTime: 1_794_000_025, EndTime: 1_794_000_030, Elapsed: 5, TimeLimit: unlimited, State: model.JobFailed, StateReason: 24, ExitCode: 3 << 8, DerivedExitCode: 9,
			ReqMem: 512 | model.MemPerCPU, ReqCPUs: 2, ReqUserID: 20002, Flags: 4 | 16, Priority: some(0), TRESAlloc: "1=2,1001=1,99=7", TRESReq: "1=2", WCKey: "*k", Nodes: "n[1-2]", AllocNodes: 2,
			StdOut: "out-%A_%a-%u-%x", WorkDir: "/home/alice", DerivedExitText: "it failed", SubmitLine: "sbatch x", RestartCnt: 1, SegmentSize: 2, Reservation: "r2", ReservationID: 3, ReservationReq: "r1,r2",
			Steps: []model.AccountingStep{{Name: "batch", StepID: model.StepID{JobID: 12, Step: some(0xfffffffb)}, Nodes: "n[1-2]", NodeCount: 1, NumTasks: 1, State: model.JobFailed, TaskDist: 0x112, CPUFreqGov: 0x84000000, TimeLimit: unlimited, ReqUserID: 0xffffffff,
				StdErr: "err-%j", TRESAlloc: "1=1", Stats: model.StepStats{CPUFreq: 2000.5, ConsumedEnergy: model.Some[uint64](7), In: model.StepUsage{Average: "2=5", Max: "1=0,2=9", MaxNode: "1=0,2=1", MaxTask: "1=0,2=3", Total: "2=10"}}}}},
			{JobID: 13, DBIndex: 1<<63 | 33, SLUID: 1<<63 | 32, Exclusive: "NODE", Oversubscribe: "NO", Name: "waits", Cluster: "demo", UserID: 20002, ReqUserID: 0xffffffff, ReqMem: 100, Priority: some(1)}},
	}}
}
