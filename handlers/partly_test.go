package handlers

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// partial is a controller that makes a part of a change, and refuses the rest.
type partial struct {
	*fake
	make func(*fake)
}

func (p partial) UpdateJob(context.Context, model.Credential, string, *model.JobDesc) ([]model.TaskResult, error) {
	p.make(p.fake)
	return nil, fault.Of(2002, "")
}

func (p partial) UpdateReservation(context.Context, model.Credential, *model.ReservationUpdate) error {
	p.make(p.fake)
	return fault.Of(2002, "")
}

func (p partial) UpdatePartition(context.Context, model.Credential, *model.PartitionUpdate) error {
	p.make(p.fake)
	return fault.Of(2002, "")
}

// TestPartlyMade checks that the error of a refused change names the fields of
// the request that were changed nevertheless, and no others.
func TestPartlyMade(t *testing.T) {
	for _, tt := range []struct {
		name, path, body string
		make             func(*fake)
		want             string
	}{
		{name: "a job", path: "job/16", body: `{"deadline": 1796098909, "minimum_nodes": 3, "comment": "c"}`,
			make: func(f *fake) { f.jobs[0].NumNodes, f.jobs[0].Priority = 3, 77 }, want: "minimum_nodes"},
		{name: "two fields of a job", path: "job/16", body: `{"constraints": "big", "comment": "c", "priority": 9}`,
			make: func(f *fake) { f.jobs[0].Features, f.jobs[0].Comment = "big", "c" }, want: "constraints, comment"},
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
			cfg.Controller = partial{f, tt.make}
			w := serve(t, cfg, request(http.MethodPost, "/slurm/v0.0.45/"+tt.path, tt.body))
			body := envelope(t, w.Body.Bytes())
			if w.Code != http.StatusForbidden || len(body.Errors) != 1 {
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
