package dbd

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestUsage checks the usage of clusters and associations that is computed from
// jobs.
func TestUsage(t *testing.T) {
	ctx := context.Background()
	store := open(t, storeFile(t))
	next := store.Catalog().Clone()
	for _, err := range []error{
		next.AddClusters([]model.Cluster{{Name: "c1"}}),
		next.AddAccounts([]model.Account{{Name: "lab"}, {Name: "sub"}}),
		next.AddAssociations([]model.Association{{Cluster: "c1", Account: "lab"}, {Cluster: "c1", Account: "sub", ParentAccount: "lab"}}),
		next.AddUsers([]model.User{{Name: "ann"}, {Name: "bob"}}),
		next.AddAssociations([]model.Association{{Cluster: "c1", Account: "lab", User: "ann"}, {Cluster: "c1", Account: "sub", User: "bob"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Replace(ctx, next); err != nil {
		t.Fatal(err)
	}
	day := time.Date(2025, 3, 3, 0, 0, 0, 0, time.Local)
	at := func(hour, minute int) model.Time {
		return model.At(day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute))
	}
	var jobs []model.Job
	run := func(account, user, tres string, start, end model.Time) {
		j := job(uint32(len(jobs)+1), start, model.JobComplete)
		j.Account, j.UserName, j.TRESAlloc, j.StartTime, j.EndTime = account, user, tres, start, end
		if user == "bob" {
			j.UserID = 1001
		}
		jobs = append(jobs, j)
	}
	run("lab", "ann", "cpu=2,mem=10M", at(9, 30), at(11, 15))
	run("sub", "bob", "cpu=1", at(10, 0), at(10, 1))
	run("gone", "eve", "cpu=4", at(10, 0), at(10, 2))
	run("lab", "ann", "cpu=8", at(-48, 0), at(-47, 0)) // before
	running := job(9, at(9, 0), model.JobRunning)
	running.Account, running.UserName, running.TRESAlloc, running.StartTime = "lab", "ann", "cpu=16", at(9, 0)
	if err := store.Record(ctx, "c1", append(jobs, running)); err != nil {
		t.Fatal(err)
	}
	d := New(store, daemon.Privacy{Hidden: conf.PrivateNone | conf.PrivateUsage, Super: onlyRoot}, quiet)
	conn := serveTokens(t, d)()
	associations := func(uid string, f model.AssocFilter) (got []string) {
		t.Helper()
		f.Flags |= model.AssocWithUsage
		err := client.Records(ctx, conn, model.Credential{Token: uid}, f, func(a *model.Association) error {
			for _, u := range a.Usage {
				got = append(got, fmt.Sprintf("%s/%s %s %s=%d", a.Account, a.User, u.PeriodStart.Go().Format("02T15"), u.TRES.Type, u.AllocSecs))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	for _, tt := range []struct {
		name, uid string
		filter    model.AssocFilter
		want      []string
	}{
		{"hours", "0", model.AssocFilter{UsageStart: at(9, 0), UsageEnd: at(11, 0)}, []string{
			"root/ 03T09 cpu=3600", "root/ 03T09 mem=18000", "root/ 03T10 cpu=7740", "root/ 03T10 mem=36000", "lab/ 03T09 cpu=3600", "lab/ 03T09 mem=18000", "lab/ 03T10 cpu=7260", "lab/ 03T10 mem=36000",
			"lab/ann 03T09 cpu=3600", "lab/ann 03T09 mem=18000", "lab/ann 03T10 cpu=7200", "lab/ann 03T10 mem=36000", "sub/ 03T10 cpu=60", "sub/bob 03T10 cpu=60"}},
		{"a day, of an account alone", "0", model.AssocFilter{UsageStart: at(0, 0), UsageEnd: at(24, 0), Accounts: []string{"lab"}, Users: []string{""}}, []string{"lab/ 03T00 cpu=12660", "lab/ 03T00 mem=63000"}},
		{"of an account and its subaccounts", "0", model.AssocFilter{UsageStart: at(0, 0), UsageEnd: at(24, 0), Accounts: []string{"lab"}, Users: []string{"bob"}, Flags: model.AssocSubAccounts}, []string{"sub/bob 03T00 cpu=60"}},
		{"a user's own", "1001", model.AssocFilter{UsageStart: at(0, 0), UsageEnd: at(24, 0)}, []string{"root/ 03T00 cpu=60", "lab/ 03T00 cpu=60", "sub/ 03T00 cpu=60", "sub/bob 03T00 cpu=60"}},
		{"the future", "0", model.AssocFilter{UsageStart: model.At(time.Now().Add(time.Hour)), UsageEnd: model.At(time.Now().Add(9 * time.Hour))}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, associations(tt.uid, tt.filter)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
	var got []string
	err := client.Records(ctx, conn, model.Credential{Token: "1001"}, model.ClusterFilter{WithUsage: true, UsageStart: at(9, 0), UsageEnd: at(13, 0)}, func(c *model.Cluster) error {
		for _, u := range c.Usage {
			got = append(got, fmt.Sprintf("%s %s %s=%d", c.Name, u.PeriodStart.Go().Format("02T15"), u.TRES.Type, u.AllocSecs))
		}
		return nil
	})
	want := []string{"c1 03T09 cpu=3600", "c1 03T09 mem=18000", "c1 03T10 cpu=7740", "c1 03T10 mem=36000", "c1 03T11 cpu=1800", "c1 03T11 mem=9000", "c1 03T12 cpu=0"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("the cluster: %v, want -, got +:\n%s", err, diff)
	}
	err = client.Records(ctx, conn, model.Credential{Token: "0"}, model.AssocFilter{Flags: model.AssocWithUsage | model.AssocQOSUsage}, func(*model.Association) error { return nil })
	if errs.KindOf(err) != errs.Unsupported {
		t.Errorf("by QOS: %v", err)
	}
}
