package handlers

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// TestRecordFilters checks which filter the accounting daemon gets for a query.
// The queries use parameters of several versions.
func TestRecordFilters(t *testing.T) {
	jobs := func(change func(*model.AccountingJobFilter)) model.AccountingJobFilter {
		f := model.AccountingJobFilter{Flags: defaultJobFlags, Clusters: []string{"demo"}}
		change(&f)
		return f
	}
	for _, tt := range []struct {
		path string
		want any
	}{
		{"v0.0.43/jobs", model.AccountingJobFilter{Flags: defaultJobFlags}},
		{"v0.0.43/jobs?account=a,b&job_name=n&partition=p&wckey=k&reservation=r&reservation_id=4&association=7", jobs(func(f *model.AccountingJobFilter) {
			f.Accounts, f.Names, f.Partitions, f.WCKeys, f.ReservationIDs, f.AssocIDs = []string{"a", "b"}, []string{"n"}, []string{"p"}, []string{"k"}, []string{"4"}, []string{"7"}
		})}, // reservations are selected from the daemon's answer
		{"v0.0.43/jobs?cluster=x&constraints=c&exit_code=3&node=n[1-2]&start_time=10&end_time=20", jobs(func(f *model.AccountingJobFilter) {
			f.Clusters, f.Constraints, f.ExitCode, f.UsedNodes, f.UsageStart, f.UsageEnd = []string{"x"}, []string{"c"}, 3<<8, "n[1-2]", 10, 20
		})},
		{"v0.0.43/jobs?qos=fast,1&state=FAILED,running,7&reason=Priority,2", jobs(func(f *model.AccountingJobFilter) {
			f.QOS, f.States, f.Reasons = []string{"2", "1"}, []string{"5", "1", "7"}, []string{"1", "2"}
			f.Flags |= model.JobFilterNoDefaultUsage
		})},
		{"v0.0.43/jobs?state=FAILED&end_time=20", jobs(func(f *model.AccountingJobFilter) { f.States, f.UsageStart, f.UsageEnd = []string{"5"}, 1, 20 })},
		{"v0.0.43/jobs?state=FAILED&start_time=10&end_time=20", jobs(func(f *model.AccountingJobFilter) { f.States, f.UsageStart, f.UsageEnd = []string{"5"}, 10, 20 })},
		{"v0.0.43/jobs?skip_steps=true&whole_hetjob=yes&show_duplicates=false", jobs(func(f *model.AccountingJobFilter) {
			f.Flags = model.JobFilterNoSteps | model.JobFilterWholeHetJob
		})},
		{"v0.0.42/jobs?skip_steps&whole_hetjob=&show_duplicates=no&users=", jobs(func(f *model.AccountingJobFilter) { f.Flags = model.JobFilterNoSteps })}, // as in slurmrestd
		{"v0.0.42/jobs?scheduled_by_main=1&job_started=true", jobs(func(f *model.AccountingJobFilter) { f.JobFlags = model.Some[uint32](4 | 16) })},
		{"v0.0.40/jobs?submit_time=5&cpus_min=2&cpus_max=3&nodes_min=4&nodes_max=5&timelimit_min=6&timelimit_max=7", jobs(func(f *model.AccountingJobFilter) {
			f.UsageStart, f.Flags = 5, model.JobFilterNoDefaultUsage
			f.CPUsMin, f.CPUsMax, f.NodesMin, f.NodesMax, f.TimeLimitMin, f.TimeLimitMax = 2, 3, 4, 5, 6, 7
		})},
		{"v0.0.43/jobs?step=12,13_4,14%2B1,15.batch,16.0", jobs(func(f *model.AccountingJobFilter) {
			some := model.Some[uint32]
			f.Steps = []model.SelectedStep{{Step: model.StepID{JobID: 12}}, {Step: model.StepID{JobID: 13}, ArrayTaskID: some(4)}, {Step: model.StepID{JobID: 14}, HetOffset: some(1)},
				{Step: model.StepID{JobID: 15, Step: some(0xfffffffb)}}, {Step: model.StepID{JobID: 16, Step: some(0)}}}
		})},
		{"v0.0.43/jobs?users=20001&groups=5", jobs(func(f *model.AccountingJobFilter) { f.UserIDs, f.GroupIDs = []string{"20001"}, []string{"5"} })},
		{"v0.0.43/jobs?users=alice,20002&groups=bob", jobs(func(*model.AccountingJobFilter) {})},                   // these are selected from the daemon's answer
		{"v0.0.43/jobs?users=alice", jobs(func(f *model.AccountingJobFilter) { f.AssocIDs = []string{"4", "0"} })}, // the client
		{"v0.0.43/jobs?users=alice&association=3", jobs(func(f *model.AccountingJobFilter) { f.AssocIDs = []string{"3"} })},
		{"v0.0.43/jobs?users=bob", jobs(func(*model.AccountingJobFilter) {})},
		{"v0.0.43/job/12_3", jobs(func(f *model.AccountingJobFilter) {
			f.Steps = []model.SelectedStep{{Step: model.StepID{JobID: 12}, ArrayTaskID: model.Some[uint32](3)}}
		})},
		{"v0.0.43/accounts?DELETED=true&WithAssociations=true&description=d", model.AccountFilter{Flags: model.AccountWithDeleted | model.AccountWithAssocs | model.AccountWithCoordinators, Descriptions: []string{"d"}}},
		{"v0.0.40/accounts?with_coords=true", model.AccountFilter{Flags: model.AccountWithCoordinators}},
		{"v0.0.43/account/lab?with_deleted=true", model.AccountFilter{Flags: model.AccountWithDeleted | model.AccountWithCoordinators, Assoc: model.AssocFilter{Accounts: []string{"lab"}}}},
		{"v0.0.43/users?admin_level=Operator&default_account=lab&default_wckey=k&with_deleted=true", model.UserFilter{AdminLevel: 2, DefaultAccounts: []string{"lab"}, DefaultWCKeys: []string{"k"}, WithDeleted: true}},
		{"v0.0.43/user/bob?with_wckeys=1&with_coords=1", model.UserFilter{WithWCKeys: true, WithCoordinates: true, Assoc: model.AssocFilter{Users: []string{"bob"}}}},
		{"v0.0.43/associations?account=lab&cluster=demo&default_qos=fast&qos=1&id=4&parent_account=root&partition=p&user=alice&Include%20usage=true&usage_start=20&usage_end=10",
			model.AssocFilter{Accounts: []string{"lab"}, Clusters: []string{"demo"}, DefaultQOSIDs: []string{"2"}, QOSIDs: []string{"1"}, IDs: []string{"4"}, ParentAccounts: []string{"root"}, Partitions: []string{"p"}, Users: []string{"alice"},
				Flags: model.AssocWithUsage, UsageStart: 10, UsageEnd: 20}},
		{"v0.0.41/association?only_defaults=true&with_sub_accts=true", model.AssocFilter{Flags: model.AssocOnlyDefaults | model.AssocSubAccounts}},
		{"v0.0.42/qos?Include%20deleted%20QOS=true&name=fast&preempt_mode=REQUEUE,GANG&id=fast", model.QOSFilter{Flags: model.QOSWithDeleted, Names: []string{"fast"}, PreemptMode: 0x8002, IDs: []string{"2"}}},
		{"v0.0.43/qos/2?with_deleted=true", model.QOSFilter{Flags: model.QOSWithDeleted, IDs: []string{"2"}}},
		{"v0.0.43/cluster/demo?classification=CAPACITY&federation=f&flags=EXTERNAL&rpc_version=10752&with_deleted=true",
			model.ClusterFilter{Names: []string{"demo"}, Classification: 2, Federations: []string{"f"}, Flags: model.Some[uint32](1 << 12), RPCVersions: []string{"10752"}, WithDeleted: true}},
		{"v0.0.40/clusters?cluster=a,b&federation=f", model.ClusterFilter{Names: []string{"a", "b"}, Federations: []string{"f"}}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			f := demo()
			serve(t, config(f), request(http.MethodGet, "/scheddb/"+tt.path, ""))
			if len(f.recorded.filters) == 0 {
				t.Fatal("nothing was asked")
			}
			if d := cmp.Diff(tt.want, f.recorded.filters[len(f.recorded.filters)-1]); d != "" {
				t.Errorf("wanted (-), asked (+):\n%s", d)
			}
		})
	}
}

// TestPeriodOfStates checks that a search by state ends now if it has a start, but
// no end, and that it stays as it is in Slurm's spelling.
func TestPeriodOfStates(t *testing.T) {
	for path, lenient := range map[string]bool{"/scheddb/": false, "/slurmdb/": true} {
		f, before := demo(), model.At(time.Now())
		serve(t, config(f), request(http.MethodGet, path+"v0.0.43/jobs?state=FAILED&start_time=10", ""))
		got := f.recorded.filters[len(f.recorded.filters)-1].(model.AccountingJobFilter)
		if lenient && got.UsageEnd != 0 || !lenient && (got.UsageEnd < before || got.UsageEnd > model.At(time.Now())) || got.UsageStart != 10 || got.Flags != defaultJobFlags {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestHiddenAssociations checks that a search for the user's own jobs stays whole
// if the daemon shows none of their associations.
func TestHiddenAssociations(t *testing.T) {
	f := demo()
	f.recorded.associations = nil
	serve(t, config(f), request(http.MethodGet, "/scheddb/v0.0.43/jobs?users=alice", ""))
	if got := f.recorded.filters[len(f.recorded.filters)-1].(model.AccountingJobFilter); got.AssocIDs != nil {
		t.Errorf("%+v", got)
	}
}

// TestJobsOfOtherUsers checks for which users and clients slurmdbd gets the numbers of
// associations instead of sending the jobs of all users.
func TestJobsOfOtherUsers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		level uint16
		query string
		want  []string
	}{
		{"an administrator", administrator, "users=bob", []string{"2", "0"}},
		{"an operator", operator, "users=bob,alice", []string{"2", "4", "0"}},
		{"a user, who may not see all associations", adminNone, "users=bob", nil},
		{"a uid beside a name", administrator, "users=bob,20001", nil},
		{"a condition of the client's own", administrator, "users=bob&association=3", []string{"3"}},
		{"a user without an association", administrator, "users=zoe", nil},
	} {
		f := demo()
		f.recorded.users = []model.User{{Name: "alice", AdminLevel: tt.level}}
		f.recorded.associations = append(f.recorded.associations, model.Association{ID: 2, Account: "lab", Cluster: "demo", User: "bob"})
		serve(t, config(f), request(http.MethodGet, "/scheddb/v0.0.43/jobs?"+tt.query, ""))
		got := f.recorded.filters[len(f.recorded.filters)-1].(model.AccountingJobFilter).AssocIDs
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(tt.want))) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestUsageOfConfig checks that all records are requested with their usage, as
// by slurmrestd.
func TestUsageOfConfig(t *testing.T) {
	f := demo()
	serve(t, config(f), request(http.MethodGet, "/slurmdb/v0.0.43/config", ""))
	for _, want := range []any{
		model.ClusterFilter{WithDeleted: true, WithUsage: true},
		model.WCKeyFilter{WithDeleted: true, WithUsage: true},
		model.AssocFilter{Flags: model.AssocWithDeleted | model.AssocWithUsage},
	} {
		if !slices.ContainsFunc(f.recorded.filters, func(got any) bool { return cmp.Equal(want, got) }) {
			t.Errorf("no request with %+v", want)
		}
	}
}

// TestRecordsByName checks that a client can select records by the name of a
// user, a group or a reservation, and by their exit code, even if the daemon does
// not.
func TestRecordsByName(t *testing.T) {
	for query, want := range map[string]string{
		"users=alice":              "old",
		"users=bob":                "waits", // this record has no user name
		"users=alice,bob":          "old waits",
		"users=alice,20002":        "old waits",
		"users=nobody":             "",
		"users=alice&groups=bob":   "old",
		"users=alice&groups=alice": "",
		"reservation=r2":           "old",
		"reservation=r1,r2":        "old",
		"reservation=r1":           "",
		"reservation=r2&users=bob": "",
		"exit_code=3":              "old",
		"exit_code=0":              "waits",
		"exit_code=1":              "",
	} {
		var body struct{ Jobs []struct{ Name string } }
		w := serve(t, config(demo()), request(http.MethodGet, "/scheddb/v0.0.43/jobs?"+query, ""))
		unmarshal(t, w.Body.Bytes(), &body)
		var names []string
		for _, j := range body.Jobs {
			names = append(names, j.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestBadRecordRequests checks the status of the answers to requests with
// invalid values or unknown names.
func TestBadRecordRequests(t *testing.T) {
	for path, status := range map[string]int{
		"jobs?state=DREAMING":             http.StatusUnprocessableEntity,
		"jobs?reason=Boredom":             http.StatusUnprocessableEntity,
		"jobs?step=12..3":                 http.StatusUnprocessableEntity,
		"jobs?step=":                      http.StatusUnprocessableEntity,
		"jobs?start_time=yesterday":       http.StatusUnprocessableEntity,
		"jobs?skip_steps=perhaps":         http.StatusUnprocessableEntity,
		"jobs?skip_steps&skip_steps=true": http.StatusUnprocessableEntity,
		"jobs?qos=nosuch":                 http.StatusUnprocessableEntity,
		"jobs?exit_code=-1":               http.StatusUnprocessableEntity,
		"jobs?exit_code=256":              http.StatusUnprocessableEntity,
		"users?admin_level=King":          http.StatusUnprocessableEntity,
		"associations?default_qos=nosuch": http.StatusUnprocessableEntity,
		"qos?preempt_mode=PLEASE":         http.StatusUnprocessableEntity,
		"cluster/demo?cluster=other":      http.StatusNotFound,
		"cluster/nosuch":                  http.StatusNotFound,
		"account/lab,root":                http.StatusNotFound,
		"user/nosuch":                     http.StatusNotFound,
		"qos/nosuch":                      http.StatusNotFound,
		"job/0":                           http.StatusNotFound,
		"job/4294967294":                  http.StatusNotFound,
		"job/12_x":                        http.StatusNotFound,
		"job/99":                          http.StatusNotFound,
		"job/99999999999999999999":        http.StatusNotFound,
		"account/":                        http.StatusNotFound,
	} {
		w := serve(t, config(demo()), request(http.MethodGet, "/scheddb/v0.0.43/"+path, ""))
		if w.Code != status {
			t.Errorf("%s: status %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
}

// TestErrorAfterRecords checks that the client gets a daemon's error, even if
// it comes after the first record.
func TestErrorAfterRecords(t *testing.T) {
	for _, path := range []string{"tres", "clusters", "cluster/demo", "qos", "qos/fast", "accounts", "account/lab", "users", "user/bob", "associations", "association", "jobs", "job/12"} {
		f := demo()
		f.midwayErr = errs.New(errs.Denied, "not for you")
		if w := serve(t, config(f), request(http.MethodGet, "/scheddb/v0.0.43/"+path, "")); w.Code != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}
