package ctld

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

// TestSelectedJobs checks which jobs a request to cancel jobs selects.
func TestSelectedJobs(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID})
	submitHeld := func(change func(*model.JobDesc)) uint32 {
		d := desc("/tmp", "true")
		d.Priority = model.Some[uint32](0)
		change(d)
		return submit(t, c, d)
	}
	plain := submitHeld(func(*model.JobDesc) {})
	namedID := submitHeld(func(d *model.JobDesc) { d.Name = "n" })
	charged := submitHeld(func(d *model.JobDesc) { d.Name, d.Account, d.QOS, d.WCKey = "n", "A", "q", "W" })
	otherID := waitingJob(t, c)
	for _, tt := range []struct {
		name   string
		client server.Identity
		k      model.KillJobs
		want   []uint32
	}{
		{"name", admin, model.KillJobs{Name: "n"}, []uint32{namedID, charged}},
		{"name and account", admin, model.KillJobs{Name: "n", Account: "a"}, []uint32{charged}},
		{"qos", admin, model.KillJobs{QOS: "q"}, []uint32{charged}},
		{"wckey", admin, model.KillJobs{WCKey: "w"}, []uint32{charged}},
		{"partition", admin, model.KillJobs{Partition: "batch"}, []uint32{plain, namedID, charged, otherID}},
		{"another partition", admin, model.KillJobs{Partition: "x"}, nil},
		{"state", admin, model.KillJobs{State: model.Some(model.JobPending)}, []uint32{plain, namedID, charged, otherID}},
		{"another state", admin, model.KillJobs{State: model.Some(model.JobRunning)}, nil},
		{"user", admin, model.KillJobs{UserID: model.Some(owner.UID)}, []uint32{otherID}},
		{"nodes", admin, model.KillJobs{Nodes: "here"}, nil}, // no job has started on a node
		{"what a user sees", owner, model.KillJobs{Partition: "batch"}, []uint32{otherID}},
		{"jobs", admin, model.KillJobs{Jobs: []string{"1", "99"}}, []uint32{plain, 99}},
		{"jobs with a name", admin, model.KillJobs{Jobs: []string{"1", "2"}, Name: "n"}, []uint32{namedID}},
	} {
		var got []uint32
		for _, n := range c.selectJobs(tt.client, &tt.k, conditionsOf(&tt.k)) {
			got = append(got, n.id)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestKillJobs checks that named and selected jobs are cancelled, and that the
// answer contains the expected results.
func TestKillJobs(t *testing.T) {
	c, _ := controller(t, Config{CPUs: 1})
	rpc, cred := newClient(t, c, codec.Newest), model.Credential{}
	var ids []uint32
	for range 3 {
		ids = append(ids, submit(t, c, desc(t.TempDir(), "sleep 60")))
	}
	awaitState(t, c, ids[0], model.JobRunning)
	for _, k := range []model.KillJobs{{Signal: 9}, {Signal: 9, Flags: model.KillVerbose}} {
		_, err := rpc.KillJobs(t.Context(), cred, &k)
		if e, _ := errors.AsType[*errs.Error](err); e == nil || e.Number != fault.NothingSelected {
			t.Errorf("without a condition: %v", err)
		}
	}
	if _, err := rpc.KillJobs(t.Context(), cred, &model.KillJobs{Reservation: "x", Signal: 9}); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("reservation: %v", err)
	}
	results, err := rpc.KillJobs(t.Context(), cred, &model.KillJobs{Jobs: []string{"99", "1_2", "2"}, Signal: 9})
	if err != nil {
		t.Fatal(err)
	}
	var codes []uint32
	for _, r := range results {
		codes = append(codes, r.Code)
	}
	if !slices.Equal(codes, []uint32{fault.InvalidJobID, fault.InvalidJobID}) {
		t.Errorf("%+v", results)
	}
	awaitState(t, c, ids[1], model.JobCancelled)
	results, err = rpc.KillJobs(t.Context(), cred, &model.KillJobs{Name: "test", Signal: 9, Flags: model.KillVerbose})
	if err != nil || len(results) != 2 || results[0].Code != 0 || results[0].ID.Step.JobID != ids[0] {
		t.Errorf("%+v, %v", results, err)
	}
	awaitState(t, c, ids[0], model.JobCancelled)
	awaitState(t, c, ids[2], model.JobCancelled)
	if _, err := rpc.KillEach(t.Context(), cred, "1", 9, 0); errs.KindOf(err) != errs.Conflict {
		t.Errorf("one that has ended: %v", err)
	}
}

// TestKillJobsOfOthers checks that ordinary users can't select and cancel other
// users' jobs, even if they may see those jobs.
func TestKillJobsOfOthers(t *testing.T) {
	c, _ := controller(t, Config{})
	id := waitingJob(t, c)
	for _, private := range []bool{true, false} {
		if !private {
			c.privacy.Hidden = conf.PrivateNone
		}
		got := c.killEach(t.Context(), &server.Request{Identity: server.Identity{UID: 65000}}, &model.KillJobs{Signal: 9},
			c.selectJobs(server.Identity{UID: 65000}, &model.KillJobs{}, nil))
		if private && len(got) != 0 || !private && (len(got) != 1 || got[0].Code != fault.AccessDenied) {
			t.Errorf("private %v: %+v", private, got)
		}
	}
	if j := viewJob(t, c, id); j.State != model.JobPending {
		t.Errorf("state %d", j.State)
	}
}
