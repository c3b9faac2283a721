package slurm

import (
	"fmt"
	"strings"
	"testing"
)

// dayChanges returns the changes that an operator and two users make in a day.
func dayChanges(alice, bob string) []change {
	const (
		showNode        = "sinfo -h -N -n NODE -p fake -o %T|%E|%w|%f"
		showJob         = "squeue -h -t all -j JOB -o %T|%r|%j|%l|%k|%P|%q|%y|%D|%C"
		showMany        = "squeue -h -t all -u alice -n manyNAME -o %T|%j"
		showArray       = "squeue -h -r -S i -u alice -n arrayNAME -o %T|%r|%j|%K"
		base            = `"current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": ["PATH=/usr/bin:/bin"]`
		waitScript      = `"script": "#!/bin/sh\ntrap 'echo caught >/tmp/signal-NAME' USR1\necho ready >/tmp/signal-NAME\nwhile :; do sleep 0.2; done\n"`
		failureInStatus = "theirs reports success, with the failure in status"
	)
	return []change{
		{name: "operator drains a node", method: "POST", path: "node/NODE", body: `{"state": ["DRAIN"], "reason": "broken NAME"}`, show: showNode, status: 200},
		{name: "operator drains nodes", method: "POST", path: "nodes/", body: `{"name": "NODE", "state": ["DRAIN"], "reason": "still broken NAME"}`, show: showNode, status: 200},
		{name: "operator resumes a node", method: "POST", path: "node/NODE", body: `{"state": ["UNDRAIN"]}`, show: showNode, status: 200},
		{name: "operator changes a node", method: "POST", path: "node/NODE", body: `{"weight": {"set": true, "number": 44}, "comment": "c NAME", "extra": "e NAME"}`, show: "scontrol -o show node NODE", effectReason: "the two nodes have names of their own", status: 200},
		{name: "operator changes an unknown node", method: "POST", path: "node/nosuchnode", body: `{"state": ["RESUME"]}`, status: 404},
		{name: "operator sets an unknown state", method: "POST", path: "node/NODE", body: `{"state": ["NOSUCHSTATE"]}`, show: showNode},
		{name: "operator sets a state that can't be set", method: "POST", path: "node/NODE", body: `{"state": ["MIXED"]}`, show: showNode},
		{name: "user drains a node", method: "POST", path: "node/NODE", body: `{"state": ["DRAIN"], "reason": "no"}`, show: showNode, token: alice, status: 403},
		{name: "user deletes a node", method: "DELETE", path: "node/NODE", show: showNode, token: alice, status: 403},
		{name: "operator deletes an unknown node", method: "DELETE", path: "node/nosuchnode"},
		{name: "operator reconfigures", method: "GET", path: "reconfigure/", status: 200},
		{name: "user reconfigures", method: "GET", path: "reconfigure/", token: alice, status: 403},

		{name: "user submits a held job", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "job": {"name": "dayNAME", "hold": true, "time_limit": {"set": true, "number": 9}, ` + base + `}}`, saveAs: "JOB", show: showJob, waitFor: "^PENDING.JobHeldUser", status: 200},
		{name: "user submits a job for an unknown partition", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "job": {"partition": "nosuchpartition", ` + base + `}}`},
		{name: "user submits a job without a script", method: "POST", path: "job/submit", token: alice, body: `{"job": {` + base + `}}`},
		{name: "user submits nothing", method: "POST", path: "job/submit", token: alice, body: `{}`},
		{name: "user changes the job", method: "POST", path: "job/JOB", token: alice, body: `{"time_limit": {"set": true, "number": 7}, "comment": "changed", "nice": 5}`, show: showJob, status: 200},
		{name: "user renames the job", method: "POST", path: "job/JOB", token: alice, body: `{"name": "night"}`, show: showJob, status: 200},
		{name: "user moves the job to an unknown partition", method: "POST", path: "job/JOB", token: alice, body: `{"partition": "nosuchpartition"}`, show: showJob},
		{name: "another user changes the job", method: "POST", path: "job/JOB", token: bob, body: `{"comment": "not mine"}`, show: showJob, status: 403},
		{name: "user changes an unknown job", method: "POST", path: "job/4000000", token: alice, body: `{"comment": "none"}`, status: 404},
		{name: "user changes the job with a wrong type", method: "POST", path: "job/JOB", token: alice, body: `{"tasks": "many"}`, show: showJob},
		{name: "user releases the job", method: "POST", path: "job/JOB", token: alice, body: `{"hold": false}`, show: "cat /tmp/signal-NAME", waitFor: "ready", status: 200},
		{name: "user signals the job", method: "DELETE", path: "job/JOB?signal=USR1", token: alice, show: "cat /tmp/signal-NAME", waitFor: "caught", status: 200},
		{name: "another user cancels the job", method: "DELETE", path: "job/JOB", token: bob, show: showJob, status: 403, statusReason: failureInStatus},
		{name: "user shortens the job", method: "POST", path: "job/JOB", token: alice, body: `{"time_limit": {"set": true, "number": 5}}`, show: showJob, status: 200},
		{name: "user extends the job", method: "POST", path: "job/JOB", token: alice, body: `{"time_limit": {"set": true, "number": 50}}`, show: showJob},
		{name: "user requeues the job", method: "GET", path: "job/JOB/requeue", token: alice, show: showJob, waitFor: "^PENDING.BeginTime", status: 200},
		{name: "user requeues the job, which waits", method: "GET", path: "job/JOB/requeue", token: alice, show: showJob},
		{name: "user requeues several jobs", method: "POST", path: "jobs/requeue", token: alice, body: `{"jobs": ["JOB", "4000000"]}`, show: showJob},
		{name: "user requeues no job", method: "POST", path: "jobs/requeue", token: alice, body: `{"jobs": []}`, status: 422},
		{name: "user holds the job", method: "POST", path: "job/JOB", token: alice, body: `{"hold": true}`, show: showJob, waitFor: "^(PENDING.JobHeldUser|RUNNING)", status: 200},
		{name: "user cancels the job", method: "DELETE", path: "job/JOB", token: alice, show: showJob, waitFor: "^CANCELLED", status: 200},
		{name: "user cancels the job again", method: "DELETE", path: "job/JOB", token: alice, show: showJob, status: 200},
		{name: "user cancels an unknown job", method: "DELETE", path: "job/4000000", token: alice, status: 200},

		{name: "user submits a heterogeneous job", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "jobs": [{"name": "hetNAME", "hold": true, ` + base + `}, {"name": "hetNAME", "tasks": 2, "hold": true, ` + base + `}]}`, saveAs: "HET", show: "squeue -h -t all -j HET -o %T|%r|%j|%C", status: 200},
		{name: "user cancels the heterogeneous job", method: "DELETE", path: "job/HET", token: alice, show: "squeue -h -t all -j HET -o %T|%j|%C", waitFor: "^CANCELLED", status: 200},
		{name: "user submits an array", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "job": {"name": "arrayNAME", "array": "1-3%1", "hold": true, ` + base + `}}`, saveAs: "ARRAY", show: showArray, status: 200},
		{name: "user cancels a task", method: "DELETE", path: "job/ARRAY_2", token: alice, show: showArray, waitFor: "^PENDING.*[|]1\nPENDING.*[|]3$", status: 200},
		{name: "user cancels the array", method: "DELETE", path: "job/ARRAY", token: alice, show: showArray, waitFor: "^$", status: 200},
		{name: "user submits one of many", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "job": {"name": "manyNAME", "hold": true, ` + base + `}}`, saveAs: "FIRST", show: showMany, status: 200},
		{name: "user submits another of many", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "job": {"name": "manyNAME", "hold": true, ` + base + `}}`, saveAs: "SECOND", show: showMany, status: 200},
		{name: "another user cancels jobs", method: "DELETE", path: "jobs/", token: bob, body: `{"jobs": ["FIRST", "SECOND"]}`, show: showMany, status: 200},
		{name: "user cancels jobs without a condition", method: "DELETE", path: "jobs/", token: alice, body: `{}`, show: showMany, status: 422},
		{name: "user cancels jobs by name", method: "DELETE", path: "jobs/", token: alice, body: `{"job_name": "manyNAME", "user_name": "alice"}`, show: showMany, waitFor: "CANCELLED.*\nCANCELLED", status: 200},
		{name: "user cancels unknown jobs", method: "DELETE", path: "jobs/", token: alice, body: `{"jobs": ["4000000"]}`, status: 200},

		{name: "user allocates a job", method: "POST", path: "job/allocate", token: alice, body: `{"job": {"name": "allocNAME", "time_limit": {"set": true, "number": 3}, ` + base + `}}`, saveAs: "ALLOC", show: "squeue -h -t all -j ALLOC -o %T|%j|%l|%C", waitFor: "^RUNNING", status: 200},
		{name: "user ends the allocation", method: "DELETE", path: "job/ALLOC", token: alice, show: "squeue -h -t all -j ALLOC -o %T|%j", waitFor: "^(CANCELLED|COMPLETED)", status: 200},
		{name: "user allocates a job in an unknown partition", method: "POST", path: "job/allocate", token: alice, body: `{"job": {"partition": "nosuchpartition", ` + base + `}}`},
		{name: "user allocates nothing", method: "POST", path: "job/allocate", token: alice, body: `{}`},
		{name: "user submits a crontab", method: "POST", path: "job/submit", token: alice, body: `{` + waitScript + `, "job": {"name": "cronNAME", "crontab": {"minute": "5", "hour": "*", "day_of_month": "*", "month": "*", "day_of_week": "*", "line": {"start": 1, "end": 2}}, ` + base + `}}`, saveAs: "CRON", show: "squeue -h -t all -j CRON -o %T|%j", waitFor: "^PENDING", status: 200},
	}
}

// sinceVersion lists the operations that older API versions lack. It maps each
// operation to the first version that has it.
var sinceVersion = map[string]string{"job/JOB/requeue": "v0.0.45", "jobs/requeue": "v0.0.45"}

// notIn2205 lists the changes that the controller in Slurm 22.05 does not
// support.
var notIn2205 = map[string]bool{"another user cancels jobs": true, "user cancels jobs by name": true, "user cancels unknown jobs": true}

// notWithTLS lists the changes that Slurm's own gateway can't make if the daemons
// speak TLS: it has no certificate for the answer to an allocation.
var notWithTLS = map[string]bool{"user allocates a job": true, "user ends the allocation": true}

// TestDay makes the changes of an operator and of two users through both
// gateways, which use the same controller. It compares the statuses, the output
// of Slurm's commands after each change, the records at the end, and the audit
// log. With Slurm 22.05, whose gateway serves only v0.0.36 to v0.0.38, it makes
// the changes only through our gateway.
func TestDay(t *testing.T) {
	m := freshCluster(t)
	version := map[string]string{"22.05": "v0.0.42", "24.11": "v0.0.42", "26.05": "v0.0.45"}[m.release]
	if m.release != "22.05" {
		m.reference(t)
	}
	gateway := m.startAudited(t)
	token, err := m.createToken("root")
	must(t, err)
	bob, err := m.createToken("bob")
	must(t, err)
	sides := m.newSides(token)
	sides.sideWords = [2][]string{{"NODE", "n05"}, {"NODE", "n06"}}
	sides.names = [2][]string{{"n05", "NODE"}, {"n06", "NODE"}}
	for _, tt := range dayChanges(m.token, bob) {
		if since := sinceVersion[tt.path]; since > version || m.release == "22.05" && notIn2205[tt.name] || withS2N && notWithTLS[tt.name] {
			continue
		}
		tt.path = "/slurm/" + version + "/" + tt.path
		t.Run(tt.name, func(t *testing.T) { sides.apply(t, tt) })
	}
	if m.release != "22.05" {
		t.Run("records", func(t *testing.T) { sides.compareMade(t, version, "slurm/", "jobs", "nodes") })
		t.Run("every GET", func(t *testing.T) { sides.compareGETs(t) })
	}
	if !withS2N { // the expected log contains all changes
		t.Run("audit", func(t *testing.T) { sides.audit(t, gateway, "day") })
	}
	if t.Failed() {
		t.Log(strings.ReplaceAll(fmt.Sprint(sides.sideWords), "\n", " "))
	}
}
