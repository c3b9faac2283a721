package dbd

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestJobs checks which recorded jobs a running daemon returns.
func TestJobs(t *testing.T) {
	s := newSite(t)
	s.run(t)
	ctx, c := context.Background(), s.clients["unix"]
	endedJob := job(1, 100, model.JobFailed)
	endedJob.Account, endedJob.Partition, endedJob.StartTime, endedJob.EndTime, endedJob.ExitCode, endedJob.NumNodes,
		endedJob.NumCPUs, endedJob.Nodes = "lab", "debug", 110, 150, 3<<8, 1, 4, "n[1-2]"
	endedJob.TRESAlloc, endedJob.TRESReq, endedJob.TimeLimit = "cpu=4,mem=1.5G,node=1,billing=4", "cpu=4,mem=100M", model.Some[uint32](10)
	task := job(8, 200, model.JobRunning)
	task.ArrayJobID, task.ArrayTaskID, task.StartTime, task.Name, task.UserID = 7, model.Some[uint32](3), 210, "task", 1001
	reusedJob := job(1, 300, model.JobPending)
	otherJob := job(5, 100, model.JobComplete)
	otherJob.Cluster, otherJob.EndTime = "c2", 120
	if err := c.RecordJobs(ctx, model.Credential{}, []model.Job{endedJob, task, reusedJob, otherJob}); err != nil {
		t.Fatal(err)
	}
	type key struct {
		id        uint32
		submitted model.Time
	}
	all := []key{{1, 100}, {5, 100}, {8, 200}, {1, 300}}
	step := func(s model.SelectedStep, id uint32) model.SelectedStep { s.Step.JobID = id; return s }
	for _, tt := range []struct {
		name   string
		filter model.AccountingJobFilter
		want   []key
	}{
		{"all", model.AccountingJobFilter{}, all},
		{"a cluster", model.AccountingJobFilter{Clusters: []string{"c1"}}, []key{{1, 100}, {8, 200}, {1, 300}}},
		{"two clusters", model.AccountingJobFilter{Clusters: []string{"c2", "c3"}}, []key{{5, 100}}},
		{"an account", model.AccountingJobFilter{Accounts: []string{"lab"}}, []key{{1, 100}}},
		{"a name", model.AccountingJobFilter{Names: []string{"task", "no"}}, []key{{8, 200}}},
		{"a user", model.AccountingJobFilter{UserIDs: []string{"1001"}}, []key{{8, 200}}},
		{"a state", model.AccountingJobFilter{States: []string{"5", "0"}, Flags: model.JobFilterNoDefaultUsage}, []key{{1, 100}, {1, 300}}},
		{"a state now", model.AccountingJobFilter{States: []string{"5", "0", "1"}}, []key{{8, 200}, {1, 300}}},
		{"ended in a period", model.AccountingJobFilter{States: []string{"5"}, UsageStart: 140, UsageEnd: 150}, []key{{1, 100}}},
		{"ended after a period", model.AccountingJobFilter{States: []string{"5"}, UsageStart: 120, UsageEnd: 149}, nil},
		{"ended when a period without an end began", model.AccountingJobFilter{States: []string{"5"}, UsageStart: 150}, []key{{1, 100}}},
		{"ended later", model.AccountingJobFilter{States: []string{"5"}, UsageStart: 140}, nil},
		{"ran in a period", model.AccountingJobFilter{States: []string{"1"}, UsageStart: 120, UsageEnd: 130}, []key{{1, 100}}},
		{"waited in a period", model.AccountingJobFilter{States: []string{"0"}, UsageStart: 100, UsageEnd: 105}, []key{{1, 100}, {5, 100}}},
		{"a named job in a state", model.AccountingJobFilter{States: []string{"5"}, Steps: []model.SelectedStep{step(model.SelectedStep{}, 1)}}, []key{{1, 100}}},
		{"an association or none", model.AccountingJobFilter{AssocIDs: []string{"4", "0"}, Accounts: []string{"lab"}}, []key{{1, 100}}},
		{"an array", model.AccountingJobFilter{Steps: []model.SelectedStep{step(model.SelectedStep{}, 7)}}, []key{{8, 200}}},
		{"a task",
			model.AccountingJobFilter{Steps: []model.SelectedStep{step(model.SelectedStep{ArrayTaskID: model.Some[uint32](3)}, 7)}},
			[]key{{8, 200}}},
		{"another task",
			model.AccountingJobFilter{Steps: []model.SelectedStep{step(model.SelectedStep{ArrayTaskID: model.Some[uint32](4)}, 7)}},
			nil},
		{"a job", model.AccountingJobFilter{Steps: []model.SelectedStep{step(model.SelectedStep{}, 1)}}, []key{{1, 100}, {1, 300}}},
		{"a node", model.AccountingJobFilter{UsedNodes: "n[2-3]"}, []key{{1, 100}}},
		{"processors", model.AccountingJobFilter{CPUsMin: 4, CPUsMax: 4}, []key{{1, 100}}},
		{"since", model.AccountingJobFilter{UsageStart: 130}, []key{{1, 100}, {8, 200}, {1, 300}}},
		{"until", model.AccountingJobFilter{UsageEnd: 150}, []key{{1, 100}, {5, 100}}},
		{"submitted since", model.AccountingJobFilter{UsageStart: 130, Flags: model.JobFilterNoDefaultUsage}, []key{{8, 200}, {1, 300}}},
		{"an exit code", model.AccountingJobFilter{ExitCode: 3 << 8}, []key{{1, 100}}},
	} {
		tt.filter.Flags |= model.JobFilterDuplicates
		var got []key
		err := client.Records(ctx, c, model.Credential{}, tt.filter, func(j *model.AccountingJob) error {
			got = append(got, key{j.JobID, j.SubmitTime})
			return nil
		})
		if err != nil || !cmp.Equal(tt.want, got, cmp.AllowUnexported(key{})) {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}

	for flags, want := range map[model.JobFilterFlags][3]model.Time{0: {130, 140, 10}, model.JobFilterNoTruncation: {110, 150, 40}} {
		f := model.AccountingJobFilter{Accounts: []string{"lab"}, UsageStart: 130, UsageEnd: 140, Flags: flags}
		err := client.Records(ctx, c, model.Credential{}, f, func(j *model.AccountingJob) error {
			if got := [3]model.Time{j.StartTime, j.EndTime, model.Time(j.Elapsed)}; got != want {
				t.Errorf("flags %d: start, end and duration are %v, want %v", flags, got, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	began, now := task, model.At(time.Now())
	began.StartTime = now - 1000
	ended := truncatedTimes(&began, 0, now-600)
	if e := elapsed(&began, now); e != 1000 || ended != [3]model.Time{now - 1000, now - 600, 400} {
		t.Errorf("a job that runs: %d s, truncated %v", e, ended)
	}
	var last []model.AccountingJob
	filter := model.AccountingJobFilter{Steps: []model.SelectedStep{step(model.SelectedStep{}, 1)}}
	err := client.Records(ctx, c, model.Credential{}, filter, func(j *model.AccountingJob) error { last = append(last, *j); return nil })
	if err != nil || len(last) != 1 || last[0].SubmitTime != 300 {
		t.Errorf("without duplicates: %+v, %v", last, err)
	}
	err = client.Records(ctx, c, model.Credential{}, model.AccountingJobFilter{Accounts: []string{"lab"}}, func(j *model.AccountingJob) error {
		if j.TRESAlloc != "1=4,2=1536,4=1" || j.TRESReq != "1=4,2=100" || j.Elapsed != 40 || j.Cluster != "c1" ||
			j.ExitCode != 3<<8 || j.TimeLimit.Number != 10 {
			t.Errorf("got %+v", *j)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, filter := range []model.AccountingJobFilter{
		{AssocIDs: []string{"1"}}, {QOS: []string{"1"}}, {Constraints: []string{"x"}},
		{Flags: model.JobFilterRunaway}, {JobFlags: model.Some[uint32](4)},
	} {
		err := client.Records(ctx, c, model.Credential{}, filter, func(*model.AccountingJob) error { return nil })
		if err == nil || errs.KindOf(err) == errs.Internal {
			t.Errorf("%+v: %v", filter, err)
		}
	}
}

// TestLists checks that a request that selects no records is answered with an
// empty list, not with an error.
// truncatedTimes returns the start, the end and the duration of a job in the time from
// start to end.
func truncatedTimes(j *model.Job, start, end model.Time) [3]model.Time {
	a := accountingJob("c1", j)
	truncate(&a, start, end)
	return [3]model.Time{a.StartTime, a.EndTime, model.Time(a.Elapsed)}
}

func TestLists(t *testing.T) {
	s := newSite(t)
	s.run(t)
	ctx, c, cred := context.Background(), s.clients["unix"], model.Credential{}
	if err := c.RecordJobs(ctx, cred, []model.Job{job(1, 100, model.JobRunning)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tt := range []struct {
		name  string
		query func() error
		want  []string
	}{
		{"tres", func() error {
			return client.Records(ctx, c, cred, model.TRESFilter{}, func(r *model.TRES) error { got = append(got, r.Type); return nil })
		}, []string{"cpu", "mem", "energy", "node"}},
		{"one of them", func() error {
			return client.Records(ctx, c, cred, model.TRESFilter{IDs: []string{"2"}},
				func(r *model.TRES) error { got = append(got, r.Type); return nil })
		}, []string{"mem"}},
		{"clusters", func() error {
			return client.Records(ctx, c, cred, model.ClusterFilter{}, func(r *model.Cluster) error { got = append(got, r.Name); return nil })
		}, []string{"c1"}},
		{"no cluster", func() error {
			return client.Records(ctx, c, cred, model.ClusterFilter{Names: []string{"c2"}},
				func(r *model.Cluster) error { got = append(got, r.Name); return nil })
		}, nil},
		{"associations", func() error {
			return client.Records(ctx, c, cred, model.AssocFilter{}, func(r *model.Association) error { got = append(got, r.User); return nil })
		}, []string{"", "root"}},
		{"accounts", func() error {
			return client.Records(ctx, c, cred, model.AccountFilter{}, func(r *model.Account) error { got = append(got, r.Name); return nil })
		}, []string{"root"}},
		{"users", func() error {
			return client.Records(ctx, c, cred, model.UserFilter{}, func(r *model.User) error { got = append(got, r.Name); return nil })
		}, []string{"root"}},
		{"qos", func() error {
			return client.Records(ctx, c, cred, model.QOSFilter{}, func(r *model.QOS) error { got = append(got, r.Name); return nil })
		}, []string{"normal"}},
	} {
		got = nil
		if err := tt.query(); err != nil || !cmp.Equal(tt.want, got) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// TestRequeuedRuns checks that a run after which a job was requeued counts as ended,
// not as waiting, and that it is found beside the next one.
func TestRequeuedRuns(t *testing.T) {
	s := open(t, storeFile(t))
	first, next := job(1, 100, model.JobPending|model.JobRequeued), job(1, 200, model.JobPending)
	first.StartTime, first.EndTime, first.Nodes, first.Run.HasUsage, next.RestartCnt = 110, 150, "n1", true, 1
	if err := s.Record(ctx, "c1", []model.Job{first, next}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter model.AccountingJobFilter
		want   []model.Time // of submissions
	}{
		{"all", model.AccountingJobFilter{Flags: model.JobFilterDuplicates}, []model.Time{100, 200}},
		{"the latest", model.AccountingJobFilter{}, []model.Time{200}},
		{"waiting", model.AccountingJobFilter{States: []string{"0"}, Flags: model.JobFilterNoDefaultUsage | model.JobFilterDuplicates}, []model.Time{200}},
		{"waiting now", model.AccountingJobFilter{States: []string{"0"}, Flags: model.JobFilterDuplicates}, []model.Time{200}},
		{"running then", model.AccountingJobFilter{States: []string{"1"}, UsageStart: 120, UsageEnd: 130}, []model.Time{100}},
		{"in a later period", model.AccountingJobFilter{UsageStart: 160, UsageEnd: 170, Flags: model.JobFilterDuplicates}, nil},
	} {
		var got []model.Time
		for _, j := range queryJobs(t, s, &tt.filter, model.Opt[uint32]{}) {
			got = append(got, j.SubmitTime)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if a := accountingJob("c1", &first); a.Elapsed != 40 || len(a.Steps) != 1 || a.Steps[0].State != model.JobCancelled || a.Steps[0].EndTime != 150 {
		t.Errorf("%+v", a)
	}
}

// TestBatchSteps checks the step of a job in each state, and its usage.
func TestBatchSteps(t *testing.T) {
	run := model.JobRun{HasUsage: true, Status: 15, UserTime: 2_500_000, SystemTime: 700_000, MaxRSS: 5 << 20}
	for _, tt := range []struct {
		state, want model.JobState
		run         model.JobRun
	}{
		{model.JobComplete, model.JobComplete, run}, {model.JobFailed, model.JobFailed, run},
		{model.JobOutOfMemory, model.JobOutOfMemory, run}, {model.JobCancelled, model.JobCancelled, run},
		{model.JobTimeout, model.JobCancelled, run}, {model.JobRunning, model.JobRunning, model.JobRun{}},
	} {
		j := job(1, 100, tt.state)
		j.StartTime, j.EndTime, j.Nodes, j.NumNodes, j.TRESAlloc, j.Run = 110, 150, "n1", 1, "cpu=2,mem=1M,node=1", tt.run
		if tt.state == model.JobRunning {
			j.EndTime = 0
		}
		a := accountingJob("c1", &j)
		if len(a.Steps) != 1 {
			t.Fatalf("%d: %d steps", tt.state, len(a.Steps))
		}
		s := a.Steps[0]
		if s.State != tt.want || s.StepID != (model.StepID{JobID: 1, Step: model.Some(model.BatchStep)}) || s.Name != "batch" ||
			s.StartTime != 110 || s.EndTime != j.EndTime || s.ExitCode != tt.run.Status || s.TRESAlloc != "1=2,2=1,4=1" {
			t.Errorf("%d: %+v", tt.state, s)
		}
		if !tt.run.HasUsage {
			if s.TotalCPUSec != 0 || s.Stats.In.Total != "" {
				t.Errorf("it runs: %+v", s)
			}
			continue
		}
		if s.UserCPUSec != 2 || s.UserCPUUsec != 500_000 || s.SystemCPUUsec != 700_000 || s.TotalCPUSec != 3 || s.TotalCPUUsec != 200_000 ||
			s.Stats.In.Total != "1=3200,2=5242880" || a.TotalCPUSec != 3 || a.TotalCPUUsec != 200_000 || a.SystemCPUUsec != 700_000 {
			t.Errorf("%d: %+v", tt.state, s)
		}
	}
	for name, j := range map[string]model.Job{"waits": job(1, 100, model.JobPending), "cancelled while it waited": job(1, 100, model.JobCancelled),
		"recorded by an older release": func() model.Job { j := job(1, 100, model.JobComplete); j.Nodes = "n1"; return j }()} {
		if a := accountingJob("c1", &j); a.Steps == nil || len(a.Steps) > 0 {
			t.Errorf("%s: %+v", name, a.Steps)
		}
	}
	cancelled := job(1, 100, model.JobCancelled)
	cancelled.Run.CancelledBy = model.Some[uint32](0)
	if a := accountingJob("c1", &cancelled); a.ReqUserID != 0 {
		t.Errorf("cancelled by %d", a.ReqUserID)
	}
}
