package handlers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// used returns rows of slurmdbd's tables: pairs of a resource and an amount, in
// the hour at 1700000000 seconds.
func used(qos uint32, pairs ...uint64) (list []model.Usage) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, model.Usage{AllocSecs: pairs[i+1], TRES: model.TRES{ID: uint32(pairs[i])}, IDAlt: qos, PeriodStart: 1_699_999_200})
	}
	return list
}

// withUsage returns a fake whose records have usage. In lineage, associations
// without a partition contain the usage of those with one.
func withUsage(lineage bool) *fake {
	f := demo()
	association := func(account, user, partition string, usage ...model.Usage) model.Association {
		a := model.Association{Cluster: "demo", Account: account, User: user, Partition: partition, Usage: usage}
		if lineage {
			a.Lineage = "/x/"
		}
		return a
	}
	f.recorded.associations = []model.Association{
		association("root", "", "", used(0, 1, 900, 1001, 30)...),
		association("lab", "", "", append(used(1, 1, 600), used(77, 1, 20)...)...),
		association("lab", "alice", "", used(0, 1, 300, 1001, 30)...),
		association("lab", "alice", "long", used(0, 1, 100)...),
		association("lab", "bob", "long", used(0, 1, 250)...),
		association("root", "bob", "", used(0, 1, 200)...),
		association("root", "eve", ""),
	}
	f.recorded.wckeys = []model.WCKey{
		{Name: "k", Cluster: "demo", User: "alice", Usage: used(0, 1, 5)},
		{Name: "k", Cluster: "demo", User: "bob", Usage: used(0, 1, 7)},
		{Name: "=1+1,\"x\"", Cluster: "demo", User: "bob", Usage: used(0, 1, 9)},
	}
	job := func(account, tres string, elapsed uint32) model.AccountingJob {
		return model.AccountingJob{Cluster: "demo", Account: account, User: "alice", TRESAlloc: tres, Elapsed: elapsed}
	}
	f.recorded.jobs = []model.AccountingJob{
		job("lab", "1=4,2=100", 10), job("lab", "1=49", 1), job("lab", "1=50", 2), job("lab", "1=1000", 3), job("lab", "1=4", 0), job("lab", "2=4", 5), job("art", "1=2", 6),
	}
	return f
}

const usagePath = "/scheddb/v0.0.45/usage?start=1699999200&end=1700006400"

func getCSV(t *testing.T, f *fake, path string) string {
	t.Helper()
	r := request(http.MethodGet, path, "")
	r.Header.Set("Accept", "text/csv")
	w := serve(t, config(f), r)
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || kind != "text/csv" {
		t.Fatalf("%s: status %d, %s: %s", path, w.Code, kind, w.Body)
	}
	return w.Body.String()
}

// TestUsageReports checks the rows of each report, and its columns.
func TestUsageReports(t *testing.T) {
	const end = ",1699999200,1700002800," // usage is rolled up to the end of the first hour
	for _, tt := range []struct {
		name, query string
		noLineage   bool // slurmdbd before 23.11
		want        []string
	}{
		{name: "cluster", query: "", want: []string{"cluster,tres,start,end,allocated,down,planned_down,idle,planned,overcommitted,reported,count", "demo,cpu" + end + "7,6,3,5,2,4,23,12"}},
		{name: "accounts", query: "&report=accounts&tres=cpu", want: []string{"cluster,account,tres,start,end,allocated", "demo,root,cpu" + end + "900", "demo,lab,cpu" + end + "620"}},
		{name: "associations", query: "&report=associations&tres=cpu&account=lab", want: []string{"cluster,account,user,partition,tres,start,end,allocated",
			"demo,lab,,,cpu" + end + "620", "demo,lab,alice,,cpu" + end + "300", "demo,lab,alice,long,cpu" + end + "100", "demo,lab,bob,long,cpu" + end + "250"}},
		{name: "users", query: "&report=users", want: []string{"cluster,account,user,tres,start,end,allocated",
			"demo,lab,alice,cpu" + end + "300", "demo,lab,alice,gres/gpu" + end + "30", "demo,lab,bob,cpu" + end + "250", "demo,root,bob,cpu" + end + "200"}},
		{name: "users of an old slurmdbd", query: "&report=users&tres=cpu", noLineage: true, want: []string{"cluster,account,user,tres,start,end,allocated",
			"demo,lab,alice,cpu" + end + "400", "demo,lab,bob,cpu" + end + "250", "demo,root,bob,cpu" + end + "200"}},
		{name: "top users", query: "&report=top_users&tres=cpu", want: []string{"cluster,user,accounts,tres,start,end,allocated",
			`demo,bob,"lab,root",cpu` + end + "450", "demo,alice,lab,cpu" + end + "300"}},
		{name: "the top user by another resource", query: "&report=top_users&tres=gres/gpu,cpu&top=1", want: []string{"cluster,user,accounts,tres,start,end,allocated",
			"demo,alice,lab,cpu" + end + "300", "demo,alice,lab,gres/gpu" + end + "30"}},
		{name: "QOS", query: "&report=qos&account=lab", want: []string{"cluster,account,qos,tres,start,end,allocated", "demo,lab,77,cpu" + end + "20", "demo,lab,normal,cpu" + end + "600"}},
		{name: "workload keys", query: "&report=wckeys", want: []string{"cluster,user,wckey,tres,start,end,allocated",
			`demo,,"'=1+1,""x""",cpu` + end + "9", `demo,bob,"'=1+1,""x""",cpu` + end + "9", "demo,,k,cpu" + end + "12", "demo,alice,k,cpu" + end + "5", "demo,bob,k,cpu" + end + "7"}},
		{name: "job sizes", query: "&report=job_sizes&tres=cpu", want: []string{"cluster,account,min_size,max_size,jobs,tres,start,end,allocated",
			"demo,art,0,49,1,cpu,1699999200,1700006400,12", "demo,lab,0,49,2,cpu,1699999200,1700006400,89", "demo,lab,50,249,1,cpu,1699999200,1700006400,100", "demo,lab,1000,,1,cpu,1699999200,1700006400,3000"}},
		{name: "own job sizes", query: "&report=job_sizes&tres=cpu&sizes=3&account=lab&fields=account,min_size,allocated", want: []string{"account,min_size,allocated", "art,0,12", "lab,3,3189"}},
		{name: "no rows", query: "&report=users&user=nosuch", want: []string{"cluster,account,user,tres,start,end,allocated"}},
		{name: "hours", query: "&report=accounts&by=hour&tres=gres/gpu&fields=start,end,allocated", want: []string{"start,end,allocated", "1699999200,1700002800,30"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Split(strings.TrimSuffix(getCSV(t, withUsage(!tt.noLineage), usagePath+tt.query), "\n"), "\n")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestUsageRequests checks what is requested from the daemon.
func TestUsageRequests(t *testing.T) {
	for _, tt := range []struct {
		query string
		want  any
	}{
		{"report=accounts&account=lab", model.AssocFilter{Accounts: []string{"lab"}, Clusters: []string{"demo"}, Users: []string{""}, UsageStart: 1_699_999_200, UsageEnd: 1_700_006_400,
			Flags: model.AssocWithDeleted | model.AssocWithUsage | model.AssocSubAccounts | model.AssocWithoutParentInfo | model.AssocWithoutParentLimits}},
		{"report=qos&qos=fast", model.AssocFilter{Clusters: []string{"demo"}, Users: []string{""}, QOSIDs: []string{"2"}, UsageStart: 1_699_999_200, UsageEnd: 1_700_006_400,
			Flags: model.AssocWithDeleted | model.AssocWithUsage | model.AssocQOSUsage | model.AssocSubAccounts | model.AssocWithoutParentInfo | model.AssocWithoutParentLimits}},
		{"report=users&user=alice&account=lab", model.AssocFilter{Accounts: []string{"lab"}, Clusters: []string{"demo"}, Users: []string{"alice"}, UsageStart: 1_699_999_200, UsageEnd: 1_700_006_400,
			Flags: model.AssocWithDeleted | model.AssocWithUsage | model.AssocWithoutParentInfo | model.AssocWithoutParentLimits}},
		{"report=wckeys&wckey=k&user=bob", model.WCKeyFilter{Names: []string{"k"}, Clusters: []string{"demo"}, Users: []string{"bob"}, WithUsage: true, WithDeleted: true, UsageStart: 1_699_999_200, UsageEnd: 1_700_006_400}},
		{"report=cluster&cluster=demo,other", model.ClusterFilter{Names: []string{"demo", "other"}, WithUsage: true, WithDeleted: true, UsageStart: 1_699_999_200, UsageEnd: 1_700_006_400}},
	} {
		f := withUsage(true)
		getCSV(t, f, usagePath+"&"+tt.query)
		if diff := cmp.Diff(tt.want, f.recorded.filters[len(f.recorded.filters)-1]); diff != "" {
			t.Errorf("%s (want -, requested +):\n%s", tt.query, diff)
		}
	}
}

// TestUsageRefused checks requests that are refused. The answer is JSON, even if
// the client wants CSV.
func TestUsageRefused(t *testing.T) {
	for _, tt := range []struct {
		path, source string
		failure      error // of the daemon
		status       int
	}{
		{usagePath + "&report=nosuch", "query/report", nil, http.StatusUnprocessableEntity},
		{usagePath + "&by=week", "query/by", nil, http.StatusUnprocessableEntity},
		{usagePath + "&report=top_users&by=day", "query/by", nil, http.StatusUnprocessableEntity},
		{usagePath + "&report=job_sizes&by=day", "query/by", nil, http.StatusUnprocessableEntity},
		{usagePath + "&report=job_sizes&sizes=5,4", "query/sizes", nil, http.StatusUnprocessableEntity},
		{usagePath + "&tres=cpu,colour", "query/tres", nil, http.StatusUnprocessableEntity},
		{usagePath + "&qos=nosuch", "query/qos", nil, http.StatusUnprocessableEntity},
		{usagePath + "&fields=colour", "query/fields", nil, http.StatusUnprocessableEntity},
		{usagePath + "&report=users", "", errs.New(errs.Denied, "no"), http.StatusForbidden},
		{"/slurmdb/v0.0.45/usage", "", nil, http.StatusNotFound},
	} {
		f := withUsage(true)
		if tt.failure != nil {
			f.midwayErr, f.midwayCall = tt.failure, "associations"
		}
		r := request(http.MethodGet, tt.path, "")
		r.Header.Set("Accept", "text/csv, application/json;q=0.1")
		w := serve(t, config(f), r)
		if kind := w.Header().Get("Content-Type"); w.Code != tt.status || kind != "application/json" {
			t.Errorf("%s: status %d, %s: %.200s", tt.path, w.Code, kind, w.Body)
			continue
		}
		if found := envelope(t, w.Body.Bytes()).Errors; len(found) != 1 || found[0].Source != tt.source && tt.source != "" {
			t.Errorf("%s: %+v", tt.path, found)
		}
	}
	r := request(http.MethodGet, "/scheddb/v0.0.45/wckeys", "")
	r.Header.Set("Accept", "text/csv")
	if w := serve(t, config(demo()), r); w.Code != http.StatusNotAcceptable {
		t.Errorf("another list as CSV: status %d", w.Code)
	}
}

// TestUsageTag checks that a client that asks again learns that further usage is
// rolled up, even if there is none.
func TestUsageTag(t *testing.T) {
	f := withUsage(true)
	f.recorded.associations = nil
	get := func(tag string) *httptest.ResponseRecorder {
		r := request(http.MethodGet, usagePath+"&report=users", "")
		r.Header.Set("If-None-Match", tag)
		return serve(t, config(f), r)
	}
	tag := get("").Header().Get("ETag")
	if w := get(tag); w.Code != http.StatusNotModified {
		t.Errorf("status %d", w.Code)
	}
	usage := f.recorded.clusters[0].Usage
	usage[len(usage)-1].PeriodStart += 3600
	if w := get(tag); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"usage":[],"rolled_up":[{"cluster":"demo",`) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// TestUsageMemory checks that a report that needs too much memory is refused.
func TestUsageMemory(t *testing.T) {
	l := newUsageLedger(&usageSpan{}, nil, new(noMemory))
	if err := l.addTo(usageKey{}, 1); errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
}

type noMemory struct{}

func (noMemory) Grow(int) bool { return false }
func (noMemory) Shrink(int)    {}
func (noMemory) Size() int     { return 0 }
