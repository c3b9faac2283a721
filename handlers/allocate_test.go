package handlers

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

// TestAllocate checks requests for resources. The gateway must not send the
// controller a port for callbacks. If the client does not specify the number of
// nodes, the gateway must request one node. The gateway must refuse a request
// that has no job, that sets both job and hetjob, or that has a script.
func TestAllocate(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		want       []*model.JobDesc
		wantText   string
	}{
		{name: "one", body: `{"job": {"name": "a", "allocation_node_port": 99}}`, status: 200, want: []*model.JobDesc{{Name: "a", AllocNode: "localhost", MinNodes: model.Some[uint32](1)}}, wantText: `"job_id":17`},
		{name: "components", body: `{"hetjob": [{"name": "a"}, {"minimum_nodes": 2, "allocation_node_list": "n1"}]}`, status: 200,
			want: []*model.JobDesc{{AllocNode: "n1", MinNodes: model.Some[uint32](2)}, {Name: "a", AllocNode: "localhost", MinNodes: model.Some[uint32](1)}}},
		{name: "nothing", body: `{}`, status: 422, wantText: "#/job"},
		{name: "no component", body: `{"hetjob": []}`, status: 422, wantText: "#/hetjob"},
		{name: "both", body: `{"job": {}, "hetjob": [{}]}`, status: 422, wantText: "both be set"},
		{name: "a script", body: `{"hetjob": [{}, {"script": "x"}]}`, status: 422, wantText: "#/hetjob/1/script"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request("POST", "/slurm/v0.0.45/job/allocate", tt.body))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if d := cmp.Diff(tt.want, f.submitted); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAllocateDisconnected checks that the gateway stops waiting for resources
// when the client has disconnected.
func TestAllocateDisconnected(t *testing.T) {
	f := demo()
	f.allocating = true
	cfg := config(f)
	var polls atomic.Int32
	cfg.HalfClosed = func(context.Context) bool { return polls.Add(1) > 1 }
	w := serve(t, cfg, request("POST", "/slurm/v0.0.45/job/allocate", `{"job": {"name": "a"}}`))
	if w.Code != http.StatusServiceUnavailable || polls.Load() != 2 {
		t.Errorf("status %d after %d looks: %s", w.Code, polls.Load(), w.Body)
	}
}
