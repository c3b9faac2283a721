package handlers

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// partial is a controller that makes a part of a change, and refuses the rest.
type partial struct {
	*fake
	make    func(*fake)
	refusal error
}

func (p partial) UpdateJob(context.Context, model.Credential, string, *model.JobDesc) ([]model.TaskResult, error) {
	p.make(p.fake)
	return nil, p.refusal
}

func (p partial) UpdateReservation(context.Context, model.Credential, *model.ReservationUpdate) error {
	p.make(p.fake)
	return p.refusal
}

func (p partial) UpdatePartition(context.Context, model.Credential, *model.PartitionUpdate) error {
	p.make(p.fake)
	return p.refusal
}

// TestPartlyMade checks that the error of a refused change names the fields of
// the request that were changed nevertheless, and no others.
func TestPartlyMade(t *testing.T) {
	const noFederation = "cluster_constraint: the job is in no federation"
	for _, tt := range []struct {
		name, path, body string
		make             func(*fake)
		refusal          error // nil: permission is denied
		status           int   // for refusal
		want             string
	}{
		{name: "a job", path: "job/16", body: `{"deadline": 1796098909, "minimum_nodes": 3, "comment": "c"}`,
			make: func(f *fake) { f.jobs[0].NumNodes, f.jobs[0].Priority = 3, 77 }, want: "minimum_nodes"},
		{name: "two fields of a job", path: "job/16", body: `{"constraints": "big", "comment": "c", "priority": 9}`,
			make: func(f *fake) { f.jobs[0].Features, f.jobs[0].Comment = "big", "c" }, want: "constraints, comment"},
		{name: "a job, whose field the daemon names", path: "job/16", body: `{"comment": "c", "cluster_constraint": "x"}`,
			make: func(f *fake) { f.jobs[0].Comment = "c" }, refusal: &errs.Error{Kind: errs.Invalid, Number: fault.Unspecified, Message: noFederation, Detail: noFederation}, status: http.StatusUnprocessableEntity, want: "comment"},
		{name: "nothing of a job", path: "job/16", body: `{"deadline": 1796098909, "minimum_nodes": 3}`, make: func(*fake) {}},
		{name: "a reservation", path: "reservation", body: `{"name": "r", "comment": "c", "purge_completed": {"time": {"set": true, "number": 60}}, "groups": ["g"]}`,
			make: func(f *fake) { f.reservations[0].PurgeCompleted = model.Some[uint32](60) }, want: "purge_completed/time"},
		{name: "the comment of a reservation, which answers do not show", path: "reservation", body: `{"name": "r", "comment": "c", "node_list": ["nosuch"]}`,
			make: func(f *fake) { f.reservations[0].Comment = "c" }, want: "comment"},
		{name: "one of several reservations", path: "reservations", body: `{"reservations": [{"name": "r", "accounts": ["a"], "users": ["bob"]}]}`,
			make: func(f *fake) { f.reservations[0].Accounts = "a" }, want: "accounts"},
		{name: "a partition", path: "partitions", body: `{"partitions": [{"name": "p", "nodes": {"allowed_allocation": "n1"}, "qos": {"assigned": "normal"}}]}`,
			make: func(f *fake) { f.partitions[0].AllowAllocNodes = "n1" }, want: "nodes/allowed_allocation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.jobs = []model.Job{{StepID: model.StepID{JobID: 16}, NumNodes: 1, Priority: 5, State: model.JobPending}}
			f.reservations = []model.Reservation{{Name: "r", Comment: "old"}}
			f.partitions = []model.Partition{{Name: "p"}}
			cfg := config(f)
			refusal, status := tt.refusal, tt.status
			if refusal == nil {
				refusal, status = fault.Of(2002, ""), http.StatusForbidden
			}
			cfg.Controller = partial{f, tt.make, refusal}
			w := serve(t, cfg, request(http.MethodPost, "/slurm/v0.0.45/"+tt.path, tt.body))
			body := envelope(t, w.Body.Bytes())
			if w.Code != status || len(body.Errors) != 1 {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			_, got, _ := strings.Cut(body.Errors[0].Description, "; changed nevertheless: ")
			if got != tt.want {
				t.Errorf("%q, want %q", body.Errors[0].Description, tt.want)
			}
		})
	}
}

// TestShownJobFields checks that the names of fields exist.
func TestShownJobFields(t *testing.T) {
	view := schema.View{Version: api.V45}
	names := func(s *schema.Shape) map[string]bool {
		known := map[string]bool{}
		for _, p := range s.Fields {
			known[p.Name] = true
		}
		return known
	}
	sent, shown := names(api.JobUpdate.Shape(view)), names(api.Job.Shape(view))
	for from, to := range shownJobFields {
		if !sent[from] || !shown[to] || shown[from] && from != "nodes" {
			t.Errorf("%s is shown as %s", from, to)
		}
	}
}
