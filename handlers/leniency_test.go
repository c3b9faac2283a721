package handlers

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"schedrestd/internal/errs"
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
		{name: "remove an unknown QOS", method: "DELETE", path: "qos/nosuch", setup: removesNothing, slurm: 200, sched: 404, warning: "path/qos", slurmSent: "model.Remove[schedrestd/model.QOS]", schedSent: "model.Remove[schedrestd/model.QOS]"},
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
		{name: "a comma at the end", method: "POST", path: "qos/", body: "{\"qos\": [{\"name\": \"fast\", \"description\": \"a\n\tb\",},\n],}", slurm: 200, sched: 400, slurmSent: "model.Modify[schedrestd/model.QOS]"},
		{name: "a condition with a comma at the end", method: "DELETE", path: "jobs/", body: `{"job_name": "nosuch",}`, controller: true, slurm: 200, sched: 400, warning: "#/jobs"},
		{name: "an escape character in a string", method: "POST", path: "qos/", body: "{\"qos\": [{\"name\": \"fast\", \"description\": \"\x1b\"}]}", slurm: 400, sched: 400},
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

// TestLenientWarnings checks which requests get a warning in each spelling. A
// value that is not blank and has no effect gets one in both.
func TestLenientWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, body string
		accounting               bool
		status                   int    // in Slurm's spelling
		slurm, sched             string // sources of the warnings
		schedStatus              int    // 0 if it is the same
		setup                    func(*fake)
	}{
		{name: "the user of a reason", method: "POST", path: "node/n1", body: `{"comment": "x", "state": ["DRAIN"], "reason": "t", "reason_uid": "alice"}`, status: 200, sched: "#/reason_uid"},
		{name: "the user of a reason, several nodes", method: "POST", path: "nodes/", body: `{"name": ["n1"], "comment": "x", "reason_uid": "alice"}`, status: 200, sched: "#/reason_uid"},
		{name: "the environment of an existing job", method: "POST", path: "job/11", body: `{"name": "n", "environment": ["A=1"]}`, status: 200, setup: func(f *fake) { f.taskResults = nil }, sched: "#/environment"},
		{name: "the script of an existing job", method: "POST", path: "job/11", body: `{"name": "n", "script": "#!/bin/sh"}`, status: 200, setup: func(f *fake) { f.taskResults = nil }, slurm: "#/script", sched: "#/script"},
		{name: "an empty name in a list", method: "POST", path: "reservations/", body: `{"reservations": [{"name": "r", "node_list": [""], "partition": "debug", "start_time": 1795000000, "duration": 60, "users": ["alice"]}]}`, status: 200, sched: "#/reservations/0/node_list"},
		{name: "an empty list", method: "POST", path: "reservations/", body: `{"reservations": [{"name": "r", "node_list": [], "partition": "debug", "start_time": 1795000000, "duration": 60, "users": ["alice"]}]}`, status: 200, sched: "#/reservations/0/node_list"},
		{name: "a field that slurmrestd ignores", method: "POST", path: "partitions/", body: `{"partitions": [{"name": "debug", "cluster": "c", "maximums": {"time": 5}}]}`, status: 200, slurm: "#/partitions/0/cluster", sched: "#/partitions/0/cluster"},
		{name: "an infinite deadline", method: "POST", path: "job/submit", body: `{"job": {"script": "#!/bin/sh", "environment": ["A=1"], "deadline": {"infinite": true}}}`, status: 200, slurm: "#/job/deadline", sched: "#/job/deadline"},
		{name: "an unknown field", method: "POST", path: "job/submit", body: `{"job": {"script": "#!/bin/sh", "environment": ["A=1"], "x": ""}}`, status: 200, slurm: "#/job/x", sched: "#/job/x"},
		{name: "no association", method: "GET", path: "associations/?user=nosuch", accounting: true, status: 200, slurm: "query"},
		{name: "no association, one", method: "GET", path: "association/?user=nosuch", accounting: true, status: 200, slurm: "query"},
		{name: "no association on a page", method: "GET", path: "associations/?user=nosuch&limit=5", accounting: true, status: 200, slurm: "query"},
		{name: "an association", method: "GET", path: "associations/", accounting: true, status: 200},
		{name: "no user", method: "GET", path: "users/", accounting: true, setup: func(f *fake) { f.recorded.users = nil }, status: 200, slurm: "query"},
		{name: "no recorded job", method: "GET", path: "jobs/", accounting: true, setup: func(f *fake) { f.recorded.jobs = nil }, status: 200, slurm: "query"},
		{name: "no job of the controller", method: "GET", path: "jobs/?job_name=nosuch", status: 200},
		{name: "no new configuration", method: "GET", path: "conf?update_time=4102444800", setup: unchanged, status: 200, slurm: "query/update_time", schedStatus: 304},
		{name: "no new nodes", method: "GET", path: "nodes?update_time=4102444800", setup: unchanged, status: 304},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, spelling := range []struct {
				segment, want string
				status        int
			}{{"slurm", tt.slurm, tt.status}, {"sched", tt.sched, cmp.Or(tt.schedStatus, tt.status)}} {
				if tt.accounting {
					spelling.segment += "db"
				}
				f := demo()
				if tt.setup != nil {
					tt.setup(f)
				}
				w := serve(t, config(f), request(tt.method, "/"+spelling.segment+"/v0.0.45/"+tt.path, tt.body))
				var got []string
				if w.Body.Len() > 0 {
					for _, warning := range envelope(t, w.Body.Bytes()).Warnings {
						got = append(got, warning.Source)
					}
				}
				if w.Code != spelling.status || strings.Join(got, " ") != spelling.want {
					t.Errorf("%s: status %d, warnings about %q; want %d, %q: %s", spelling.segment, w.Code, got, spelling.status, spelling.want, w.Body)
				}
			}
		})
	}
}

// unchanged makes the controller report that nothing has changed.
func unchanged(f *fake) {
	err := &errs.Error{Kind: errs.Unchanged, Message: "nothing has changed since that time", Number: 1900}
	f.callErrs = map[string]error{"conf": err, "nodes": err}
}

// removesNothing makes each removal find no record.
func removesNothing(r *recorded) {
	r.refuse = func(any) ([]string, error) { return nil, nil }
}

// addKey adds a workload key of another user.
func addKey(r *recorded) {
	r.wckeys = append(r.wckeys, model.WCKey{Name: "k", Cluster: "demo", User: "bob", ID: 9})
}
