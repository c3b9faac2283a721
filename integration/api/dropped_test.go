package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/rpc/codec"
)

// TestDroppedVersion checks that a client that knows only v0.0.42 works before
// daemons that refuse the protocol of this version, as those of Slurm 26.11 do.
// The requests are those that clients in use send for the life of a job and for
// lists: SchedMD's client for Go, Slurm-web, and clients that are generated from
// Slurm's own OpenAPI document.
func TestDroppedVersion(t *testing.T) {
	t.Parallel()
	lab := harness.NewDaemons(t, harness.WithOptions(nil, "SCHEDRESTD_NAMES=both"))
	for _, protocols := range [][2]codec.Version{{codec.V2505, codec.V2605}, {codec.V2505, codec.V2611}, {codec.V2605, codec.V2605}} {
		oldest, newest := protocols[0], protocols[1]
		t.Run(fmt.Sprintf("protocols %d to %d", oldest, newest), func(t *testing.T) {
			g := lab.StartVersioned(t, oldest, newest)
			l := &harness.Lab{Site: lab.Site, T: t, URL: "http://" + g.Address, Work: lab.Work, OwnToken: lab.OwnToken}
			// send fails the test unless the answer has the value want at the place at.
			send := func(method, path, body string, status int, want any, at ...any) harness.Answer {
				t.Helper()
				a := l.Request(method, "/"+strings.Replace(path, "/", "/v0.0.42/", 1), body, "X-SCHED-USER-TOKEN:", "X-SLURM-USER-TOKEN: "+l.OwnToken)
				if got := a.Get(at...); a.Status != status || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s %s: status %d, %v is %v, want %d and %v: %.500s", method, path, a.Status, at, got, status, want, a.Text)
				}
				return a
			}
			send("GET", "slurm/ping", "", 200, "UP", "pings", 0, "pinged")
			send("GET", "slurm/nodes/", "", 200, lab.Node, "nodes", 0, "name")
			send("GET", "slurm/node/"+lab.Node, "", 200, true, "nodes", 0, "boot_time", "set")
			send("GET", "slurm/node/none", "", 200, `Failure to query node none: there is no node "none"`, "errors", 0, "description")
			send("GET", "slurm/partitions/", "", 200, lab.Node, "partitions", 0, "nodes", "configured")
			send("GET", "slurm/diag/", "", 200, true, "statistics", "job_states_ts", "set")
			send("GET", "slurm/reservation/none", "", 200, "[]", "reservations")

			submitted := send("POST", "slurm/job/submit", fmt.Sprintf(`{"script": "#!/bin/sh\nexec sleep 1000\n", "job": {"name": "old", "environment": ["PATH=/usr/bin:/bin"],
				"current_working_directory": %q, "standard_output": "/dev/null", "tasks": 1, "time_limit": {"set": true, "infinite": false, "number": 7}}}`, l.Work),
				200, "[]", "errors")
			id := fmt.Sprint(submitted.Get("job_id"))
			send("GET", "slurm/jobs/?flags=DETAIL", "", 200, "old", "jobs", 0, "name")
			send("GET", "slurm/jobs/state/?job_id="+id, "", 200, id, "jobs", 0, "job_id")
			job := send("GET", "slurm/job/"+id, "", 200, 7, "jobs", 0, "time_limit", "number")
			if p, _ := job.Get("jobs", 0, "priority", "number").(float64); p <= 0 || p >= 1<<31 {
				t.Errorf("a client with Slurm's types can't read the priority %v", p)
			}
			send("POST", "slurm/job/"+id, `{"comment": "changed", "time_limit": {"set": true, "number": 5}}`, 200, "[]", "errors")
			send("GET", "slurm/job/"+id, "", 200, "changed", "jobs", 0, "comment")
			harness.Eventually(t, "the job is recorded", func() bool {
				return len(l.Request("GET", "/slurmdb/v0.0.42/job/"+id, "").List("jobs")) == 1
			})
			send("DELETE", "slurm/job/"+id, "", 200, "[]", "errors")
			harness.Eventually(t, "the job is cancelled", func() bool {
				a := l.Request("GET", "/slurmdb/v0.0.42/job/"+id, "")
				return fmt.Sprint(a.Get("jobs", 0, "state", "current")) == "[CANCELLED]"
			})
			send("DELETE", "slurm/job/"+id, "", 200, "[]", "errors")
			send("DELETE", "slurm/jobs/", `{"jobs": ["`+id+`"], "signal": "SIGKILL"}`, 200, "[]", "errors")
			send("GET", "slurm/job/999999", "", 404, 2017, "errors", 0, "error_number")
			send("DELETE", "slurm/job/999999", "", 200, 2017, "status", 0, "error", "code")
			send("POST", "slurm/job/submit", `{"job": {"environment": ["A=b"], "current_working_directory": "/"}}`, 422, "#/job/script", "errors", 0, "source")

			send("GET", "slurmdb/jobs/?job_name=old&start_time=0", "", 200, "old", "jobs", 0, "name")
			send("GET", "slurmdb/job/999999", "", 200, "[]", "jobs")
			send("GET", "slurmdb/accounts/", "", 200, "root", "accounts", 0, "name")
			send("GET", "slurmdb/clusters/", "", 200, "demo", "clusters", 0, "name")
			send("GET", "slurmdb/qos/", "", 200, "normal", "qos", 0, "name")
			send("GET", "slurmdb/users/?with_assocs=true", "", 200, "root", "users", 0, "name")
			send("GET", "slurmdb/tres/", "", 200, "cpu", "TRES", 0, "type")
			if a := l.Request("GET", "/slurm/v0.0.42/nodes/", "", "X-SCHED-USER-TOKEN: a.b.c"); a.Status != http.StatusUnauthorized {
				t.Errorf("a bad token: status %d: %s", a.Status, a.Text)
			}
			controller, accounting := g.Protocols()
			if len(controller) != 1 || controller[newest] == 0 || len(accounting) != 1 || accounting[newest] == 0 {
				t.Errorf("connections by protocol %v and %v, want only %d", controller, accounting, newest)
			}
		})
	}
}
