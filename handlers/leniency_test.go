package handlers

import (
	"net/http"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestLenientChanges checks changes of records to which Slurm's spelling gives
// another answer than this project's spelling.
func TestLenientChanges(t *testing.T) {
	const none = ""
	for _, tt := range []struct {
		name, method, path, body string
		setup                    func(*recorded)
		controller               bool   // the operation is one of the controller
		slurm, sched             int    // statuses
		warning                  string // source of the warning in Slurm's spelling; "" for none
		slurmSent, schedSent     string // changes that reach the daemon; "" for none
	}{
		{name: "remove an unknown account", method: "DELETE", path: "account/nosuch", setup: removesNothing, slurm: 200, sched: 404, warning: "path/account_name", slurmSent: "model.Remove[schedrestd/model.Account]", schedSent: "model.Remove[schedrestd/model.Account]"},
		{name: "remove an unknown user", method: "DELETE", path: "user/nosuch", setup: removesNothing, slurm: 200, sched: 404, warning: "path/name", slurmSent: "model.Remove[schedrestd/model.User]", schedSent: "model.Remove[schedrestd/model.User]"},
		{name: "remove an unknown cluster", method: "DELETE", path: "cluster/nosuch", setup: removesNothing, slurm: 200, sched: 404, warning: "path/cluster_name", slurmSent: "model.Remove[schedrestd/model.Cluster]", schedSent: "model.Remove[schedrestd/model.Cluster]"},
		{name: "remove unknown associations", method: "DELETE", path: "associations/?account=nosuch", setup: removesNothing, slurm: 200, sched: 404, warning: "query", slurmSent: "model.Remove[schedrestd/model.Association]", schedSent: "model.Remove[schedrestd/model.Association]"},
		{name: "remove an unknown association", method: "DELETE", path: "association/?account=nosuch", setup: removesNothing, slurm: 200, sched: 404, warning: "query", slurmSent: "model.Remove[schedrestd/model.Association]", schedSent: "model.Remove[schedrestd/model.Association]"},
		{name: "remove an unknown QOS", method: "DELETE", path: "qos/nosuch", slurm: 200, sched: 404, warning: "path/qos"},
		{name: "remove an unknown workload key", method: "DELETE", path: "wckey/nosuch", slurm: 200, sched: 404, warning: "path/id"},
		{name: "remove the key of several users", method: "DELETE", path: "wckey/k", setup: addKey, slurm: 200, sched: 422,
			slurmSent: "model.Remove[schedrestd/model.WCKey] model.Remove[schedrestd/model.WCKey]"},
		{name: "no accounts", method: "POST", path: "accounts/", body: `{"accounts": []}`, slurm: 200, sched: 422, warning: "#/accounts"},
		{name: "no users", method: "POST", path: "users/", body: `{"users": []}`, slurm: 200, sched: 422, warning: "#/users"},
		{name: "no associations", method: "POST", path: "associations/", body: `{"associations": []}`, slurm: 200, sched: 422, warning: "#/associations"},
		{name: "no QOS", method: "POST", path: "qos/", body: `{"qos": []}`, slurm: 200, sched: 422, warning: "#/qos"},
		{name: "no workload keys", method: "POST", path: "wckeys/", body: `{"wckeys": []}`, slurm: 200, sched: 422, warning: "#/wckeys"},
		{name: "no clusters", method: "POST", path: "clusters/", body: `{"clusters": []}`, slurm: 422, sched: 422},
		{name: "no reservations", method: "POST", path: "reservations/", body: `{"reservations": []}`, controller: true, slurm: 200, sched: 422, warning: "#/reservations"},
		{name: "no partitions", method: "POST", path: "partitions/", body: `{"partitions": []}`, controller: true, slurm: 200, sched: 422, warning: "#/partitions"},
		{name: "no jobs", method: "POST", path: "job/submit", body: `{"jobs": []}`, controller: true, slurm: 422, sched: 422},
		{name: "an association of an unknown user", method: "POST", path: "associations/", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "ghost"}]}`, slurm: 200, sched: 404, warning: "#/associations/0/user", slurmSent: "add association demo/lab/ghost"},
		{name: "a workload key of an unknown user", method: "POST", path: "wckeys/", body: `{"wckeys": [{"name": "w", "cluster": "demo", "user": "ghost"}]}`, slurm: 200, sched: 404, warning: "#/wckeys/0/user", slurmSent: "add wckey w/demo/ghost"},
		{name: "an empty list of limits", method: "POST", path: "qos/", body: `{"qos": [{"name": "fast", "limits": {"max": {"tres": {"minutes": {"total": []}}}}}]}`, slurm: 200, sched: 200, warning: "#/qos/0/limits", schedSent: "model.Modify[schedrestd/model.QOS]"},
		{name: "an empty list where there is no limit", method: "POST", path: "qos/", body: `{"qos": [{"name": "fast", "description": "new", "limits": {"max": {"tres": {"total": []}}}}]}`, slurm: 200, sched: 200, warning: none, slurmSent: "model.Modify[schedrestd/model.QOS]", schedSent: "model.Modify[schedrestd/model.QOS]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, spelling := range []struct {
				segment       string
				status        int
				warning, sent string
			}{{"slurmdb", tt.slurm, tt.warning, tt.slurmSent}, {"scheddb", tt.sched, none, tt.schedSent}} {
				f := demo()
				if tt.setup != nil {
					tt.setup(&f.recorded)
				}
				segment := spelling.segment
				if tt.controller {
					segment = strings.TrimSuffix(segment, "db")
				}
				w := serve(t, config(f), request(tt.method, "/"+segment+"/v0.0.45/"+tt.path, tt.body))
				body := envelope(t, w.Body.Bytes())
				var warnings, sent []string
				for _, warning := range body.Warnings {
					warnings = append(warnings, warning.Source)
				}
				for _, change := range f.recorded.changes {
					sent = append(sent, describeChange(change))
				}
				if w.Code != spelling.status || strings.Join(warnings, " ") != spelling.warning || strings.Join(sent, ", ") != strings.ReplaceAll(spelling.sent, " model", ", model") {
					t.Errorf("%s: status %d, warnings %q, changes %q; want %d, %q, %q: %s", spelling.segment, w.Code, warnings, sent, spelling.status, spelling.warning, spelling.sent, w.Body)
				}
				if hasErrors := len(body.Errors) > 0; hasErrors != (spelling.status != http.StatusOK) {
					t.Errorf("%s: errors %v", spelling.segment, body.Errors)
				}
			}
		})
	}
}

// removesNothing makes each removal find no record.
func removesNothing(r *recorded) {
	r.refuse = func(any) ([]string, error) { return nil, nil }
}

// addKey adds a workload key of another user.
func addKey(r *recorded) {
	r.wckeys = append(r.wckeys, model.WCKey{Name: "k", Cluster: "demo", User: "bob", ID: 9})
}
