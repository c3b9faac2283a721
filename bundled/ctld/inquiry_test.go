package ctld

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
)

// TestInquiries checks, in old and new protocol versions, that the lists of
// reservations, licenses and shares are empty. It also checks that the
// statistics count jobs, and that only jobs that wait have a priority.
func TestInquiries(t *testing.T) {
	for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
		c, _ := controller(t, Config{Node: "here"})
		c.startedAt = c.startedAt.Add(-2 * time.Second)
		rpc, ctx, cred := newClient(t, c, v), t.Context(), model.Credential{}
		last, err := rpc.Reservations(ctx, cred, model.Query{}, func(r *model.Reservation) error { t.Error(r); return nil })
		if err != nil || last == 0 {
			t.Errorf("reservations: %d %v", last, err)
		}
		if _, err := rpc.Reservations(ctx, cred, model.Query{Since: last}, nil); errs.KindOf(err) != errs.Unchanged {
			t.Errorf("reservations since: %v", err)
		}
		last, err = rpc.Licenses(ctx, cred, model.Query{}, func(l *model.License) error { t.Error(l); return nil })
		if err != nil || last == 0 {
			t.Errorf("licenses: %d %v", last, err)
		}
		if _, err := rpc.Licenses(ctx, cred, model.Query{Since: last}, nil); errs.KindOf(err) != errs.Unchanged {
			t.Errorf("licenses since: %v", err)
		}
		unexpected := func([]string, *model.Share) error { t.Error("a share"); return nil }
		if totals, err := rpc.Shares(ctx, cred, nil, []string{"a"}, unexpected); err != nil || totals.Shares != 0 {
			t.Errorf("shares: %v %v", totals, err)
		}

		d := desc(t.TempDir(), "sleep 60")
		first, err := rpc.Submit(ctx, cred, d)
		if err != nil {
			t.Fatal(err)
		}
		d.Priority = model.Some[uint32](0) // held
		second, err := rpc.Submit(ctx, cred, d)
		if err != nil {
			t.Fatal(err)
		}
		if first.ErrorCode != 0 || second.ErrorCode != fault.JobHeld {
			t.Errorf("remarks %d and %d about a job and a held job", first.ErrorCode, second.ErrorCode)
		}
		awaitState(t, c, first.StepID.JobID, model.JobRunning)
		stats, err := rpc.Stats(ctx, cred)
		if err != nil {
			t.Fatal(err)
		}
		if stats.JobsSubmitted != 2 || stats.JobsStarted != 1 || stats.JobsRunning != 1 || stats.JobsPending != 1 ||
			stats.JobsCompleted != 0 || stats.StatsStart == 0 {
			t.Errorf("stats: %+v", stats)
		}
		if v < codec.V2311 {
			if err := rpc.Priorities(ctx, cred, nil); errs.KindOf(err) != errs.Unsupported {
				t.Errorf("priorities: %v", err)
			}
			continue
		}
		for _, tt := range []struct {
			jobs []model.JobSelection
			want map[uint32]model.JobState
		}{
			{nil, map[uint32]model.JobState{first.StepID.JobID: model.JobRunning, second.StepID.JobID: model.JobPending}},
			{[]model.JobSelection{{JobID: second.StepID.JobID}, {JobID: 4000}}, map[uint32]model.JobState{second.StepID.JobID: model.JobPending}},
			{[]model.JobSelection{{JobID: first.StepID.JobID, ArrayTaskID: model.Some[uint32](0)}}, map[uint32]model.JobState{}},
		} {
			got := map[uint32]model.JobState{}
			err := rpc.JobStates(ctx, cred, tt.jobs, func(s *model.JobStateEntry) error { got[s.JobID] = s.State; return nil })
			if d := cmp.Diff(tt.want, got); d != "" || err != nil {
				t.Errorf("states of %v: %v %s", tt.jobs, err, d)
			}
		}
		d.Priority, d.BeginTime = model.Opt[uint32]{}, model.At(time.Now().Add(time.Hour))
		third, err := rpc.Submit(ctx, cred, d)
		if err != nil {
			t.Fatal(err)
		}
		var waiting *model.Job
		if _, err := rpc.Job(ctx, cred, third.StepID.JobID, model.Query{}, func(j *model.Job) error { waiting = j; return nil }); err != nil {
			t.Fatal(err)
		}
		var got []model.JobPriority
		want := []model.JobPriority{{StepID: model.StepID{JobID: waiting.StepID.JobID}, Partition: waiting.Partition, UserID: waiting.UserID, Direct: float64(waiting.Priority)}}
		err = rpc.Priorities(ctx, cred, func(p *model.JobPriority) error { got = append(got, *p); return nil })
		if d := cmp.Diff(want, got); d != "" || err != nil || waiting.Priority == 0 {
			t.Errorf("priorities: %v %s", err, d)
		}
	}
}
