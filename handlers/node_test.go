package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

func TestChangeNodes(t *testing.T) {
	denied := &errs.Error{Kind: errs.Denied, Message: "you are not an administrator", Number: 2010}
	unknown := &errs.Error{Kind: errs.Invalid, Message: "there is no such node", Number: 2018}
	for _, tt := range []struct {
		name, method, path, body string
		refused                  error
		status                   int
		call                     string // expected call of the controller; "" for none
		want                     *model.NodeUpdate
		wantText                 string
	}{
		{name: "drain", method: "POST", path: "node/n1", body: `{"state": ["DRAIN"], "reason": "fan"}`, status: 200, call: "update node n1",
			want: &model.NodeUpdate{Names: "n1", State: model.Some(model.NodeDrain), Reason: "fan", ReasonUID: model.Some[uint32](20001)}},
		{name: "resume", method: "POST", path: "node/n1", body: `{"state": "RESUME"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", State: model.Some(model.NodeResume)}},
		{name: "several", method: "POST", path: "nodes", body: `{"name": ["n1", "n2"], "weight": 5, "resume_after": 60}`, status: 200, call: "update node n1,n2",
			want: &model.NodeUpdate{Names: "n1,n2", Weight: model.Some[uint32](5), ResumeAfter: model.Some[uint32](60)}},
		{name: "one of several does not exist", method: "POST", path: "node/n[1-3]", body: `{"state": ["DRAIN"]}`, status: 404, wantText: "node n3: not found; nothing was changed"},
		{name: "unknown", method: "POST", path: "node/n9", body: `{"state": ["DRAIN"]}`, refused: unknown, status: 404, call: "update node n9", want: &model.NodeUpdate{Names: "n9", State: model.Some(model.NodeDrain)}, wantText: "node n9: "},
		{name: "not an administrator", method: "POST", path: "node/n1", body: `{"comment": "c"}`, refused: denied, status: 403, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Comment: "c"}, wantText: "path/node_name"},
		{name: "another name", method: "POST", path: "node/n1", body: `{"name": "n2", "comment": "c"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Comment: "c"}, wantText: "#/name"},
		{name: "no state", method: "POST", path: "node/n1", body: `{"state": []}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1"}, wantText: "nothing is changed"},
		{name: "empty texts", method: "POST", path: "node/n1", body: `{"comment": "", "features_act": [], "features": "", "extra": ""}`, status: 200, call: "update node n1",
			want: &model.NodeUpdate{Names: "n1", Comment: model.Emptied, Features: model.Emptied, Extra: model.Emptied}},
		{name: "the state of an answer", method: "POST", path: "node/n1", body: `{"state": ["MIXED", "DRAIN"], "reason": "fan", "comment": "c"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Comment: "c"}, wantText: "already"},
		{name: "another state than that of an answer", method: "POST", path: "node/n1", body: `{"state": ["IDLE", "DRAIN"]}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", State: model.Some(model.NodeIdle | model.NodeDrain)}},
		{name: "features of an answer", method: "POST", path: "node/n1", body: `{"features": ["a", "b"], "comment": "c"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Comment: "c"}},
		{name: "other features", method: "POST", path: "node/n1", body: `{"features": ["a", "c"]}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Features: "a,c"}},
		{name: "features of no node", method: "POST", path: "node/n9", body: `{"features": ["a"]}`, refused: unknown, status: 404, call: "update node n9", want: &model.NodeUpdate{Names: "n9", Features: "a"}, wantText: "node n9: "},
		{name: "returns to service", method: "POST", path: "node/n1", body: `{"state": ["DOWN"], "reason": "r", "resume_after": 60}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", State: model.Some(model.NodeDown), Reason: "r", ReasonUID: model.Some[uint32](20001), ResumeAfter: model.Some[uint32](60)}, wantText: `"warnings":[]`},
		{name: "returns to service at a time", method: "POST", path: "node/n1", body: `{"state": ["DOWN"], "resume_after": {"set": true, "number": 1795000000}}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", State: model.Some(model.NodeDown)}, wantText: "#/resume_after"},
		{name: "returns from no state", method: "POST", path: "node/n1", body: `{"resume_after": 60}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", ResumeAfter: model.Some[uint32](60)}, wantText: "#/resume_after"},
		{name: "a reason that the controller does not keep", method: "POST", path: "node/n1", body: `{"reason": "x"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Reason: "x", ReasonUID: model.Some[uint32](20001)}, wantText: "#/reason"},
		{name: "a reason that the controller keeps", method: "POST", path: "node/n1", body: `{"reason": "fan"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Reason: "fan", ReasonUID: model.Some[uint32](20001)}, wantText: `"warnings":[]`},
		{name: "no reason", method: "POST", path: "node/n1", body: `{"reason": "", "comment": "c"}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", Comment: "c"}},
		{name: "an invalid state", method: "POST", path: "node/n1", body: `{"state": ["INVALID"]}`, status: 422, wantText: "#/state"},
		{name: "an invalid state and a flag", method: "POST", path: "node/n1", body: `{"state": "INVALID,BLOCKED"}`, status: 422, wantText: "#/state"},
		{name: "a binding", method: "POST", path: "node/n1", body: `{"cpu_bind": 5}`, status: 200, call: "update node n1", want: &model.NodeUpdate{Names: "n1", CPUBind: 5}},
		{name: "two bindings", method: "POST", path: "node/n1", body: `{"cpu_bind": 6}`, status: 422, wantText: "#/cpu_bind"},
		{name: "all bits of a binding", method: "POST", path: "node/n1", body: `{"cpu_bind": 4294967294}`, status: 422, wantText: "#/cpu_bind"},
		{name: "no node", method: "POST", path: "nodes", body: `{"weight": 5}`, status: 422, wantText: "names no node"},
		{name: "delete", method: "DELETE", path: "node/n1", status: 200, call: "delete node n1"},
		{name: "make", method: "POST", path: "new/node", body: `{"node_conf": "NodeName=d1 State=CLOUD"}`, status: 200, call: "create node NodeName=d1 State=CLOUD"},
		{name: "make what can't be parsed", method: "POST", path: "new/node", body: `{"node_conf": "x=y"}`, refused: &errs.Error{Kind: errs.BadAnswer, Message: "the daemon failed with error number -1: Failed to parse nodeline", Detail: "Failed to parse nodeline", Number: -1}, status: 422, call: "create node x=y", wantText: "create node: Failed to parse nodeline"},
		{name: "make nothing", method: "POST", path: "new/node", body: `{"node_conf": " "}`, status: 422, wantText: "#/node_conf"},
		{name: "make what is missing", method: "POST", path: "new/node", body: `{}`, status: 422, wantText: "#/node_conf"},
		{name: "delete a reservation", method: "DELETE", path: "reservation/maint", status: 200, call: "delete reservation maint"},
		{name: "delete an unknown reservation", method: "DELETE", path: "reservation/r9", refused: &errs.Error{Kind: errs.Invalid, Message: "there is no such reservation", Number: 2053}, status: 404, call: "delete reservation r9", wantText: "reservation r9: "},
		{name: "reconfigure", method: "GET", path: "reconfigure", status: 200, call: "reconfigure"},
		{name: "HEAD reconfigures nothing", method: "HEAD", path: "reconfigure", status: 405},
		{name: "reconfigure, refused", method: "GET", path: "reconfigure", refused: denied, status: 403, call: "reconfigure"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.submitErr = tt.refused
			f.nodes[0].State, f.nodes[0].AllocCPUs, f.nodes[0].EffectiveCPUs, f.nodes[0].Reason, f.nodes[0].Features = model.NodeAllocated|model.NodeDrain, 1, 2, "fan", "a,b"
			w := serve(t, config(f), request(tt.method, "/slurm/v0.0.45/"+tt.path, tt.body))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			var got *model.NodeUpdate
			if len(f.nodeUpdates) > 0 {
				got = f.nodeUpdates[0]
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			var changed string
			for _, call := range f.calls {
				if !strings.HasPrefix(call, "node") && call != "verify" {
					changed = call
				}
			}
			if changed != tt.call {
				t.Errorf("the controller was asked %q", f.calls)
			}
		})
	}
}

// TestPartitionsOfNodes checks that hidden partitions are requested, so that the
// nodes name them, exactly if the flags of the request show what is hidden.
func TestPartitionsOfNodes(t *testing.T) {
	for _, tt := range []struct {
		query string
		want  model.Show
	}{
		{"", model.ShowAll},
		{"?flags=ALL", model.ShowAll},
		{"?flags=DETAIL,ALL", model.ShowAll},
		{"?flags=DETAIL", 0},
		{"?flags=MIXED", 0},
	} {
		for _, path := range []string{"nodes", "node/n1"} {
			f := demo()
			if w := serve(t, config(f), request(http.MethodGet, "/slurm/v0.0.43/"+path+tt.query, "")); w.Code != http.StatusOK {
				t.Fatalf("%s%s: %d %s", path, tt.query, w.Code, w.Body)
			}
			want := []model.Query{{Flags: tt.want, Undated: true}}
			if diff := cmp.Diff(want, f.partitionQueries); diff != "" {
				t.Errorf("%s%s: %s", path, tt.query, diff)
			}
		}
	}
}
