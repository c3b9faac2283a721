package slurm

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A call is a request for one operation, which must succeed. In all strings, N
// stands for the number of the API version, JOB for a new held job, RUNS for a
// running job, and RECORD for a job that the accounting daemon has recorded.
type call struct {
	setup  []string // commands that create the objects that the request needs
	path   string   // "": the path of the operation
	body   string
	status int    // 0: 200
	reason string // reason for another status than 200
	since  string // first release that has the operation; with an older release the answer is 501
}

// Commands that create objects. Each begins with the user who runs it.
const (
	addAccount     = "slurm sacctmgr -i -Q add account opN"
	addUser        = "slurm sacctmgr -i -Q add user uN account=opN"
	addReservation = "root scontrol create reservation ReservationName=opN StartTime=now+3days Duration=60 Nodes=n02 Users=alice Flags=overlap"
	heldJobBody    = `{"script": "#!/bin/sh\n", "job": {"hold": true, "current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": ["A=1"]}}`
)

// calls maps operations to their requests. A key is "METHOD PATH", and the path
// has no version. Operations that have no key here are GETs that need no
// preparation.
var calls = map[string]call{
	"POST /slurm/job/submit":                       {body: heldJobBody},
	"POST /slurm/job/allocate":                     {body: `{"job": {"name": "opN", "current_working_directory": "/tmp", "environment": ["A=1"]}}`},
	"GET /slurm/job/{job_id}":                      {path: "/slurm/job/JOB"},
	"POST /slurm/job/{job_id}":                     {path: "/slurm/job/JOB", body: `{"comment": "opN"}`},
	"DELETE /slurm/job/{job_id}":                   {path: "/slurm/job/JOB"},
	"GET /slurm/job/{job_id}/requeue":              {path: "/slurm/job/RUNS/requeue"},
	"POST /slurm/jobs/requeue":                     {body: `{"jobs": ["RUNS"]}`},
	"GET /slurm/resources/{job_id}":                {path: "/slurm/resources/RUNS", since: "25.11"},
	"DELETE /slurm/jobs/":                          {body: `{"jobs": ["JOB"]}`, since: "24.11"},
	"GET /slurm/node/{node_name}":                  {path: "/slurm/node/node1"},
	"POST /slurm/node/{node_name}":                 {path: "/slurm/node/n01", body: `{"comment": "opN"}`},
	"POST /slurm/nodes/":                           {body: `{"name": "n01", "extra": "opN"}`},
	"POST /slurm/new/node/":                        {body: `{"node_conf": "NodeName=newN CPUs=1 State=CLOUD"}`},
	"DELETE /slurm/node/{node_name}":               {setup: []string{"root scontrol create NodeName=dynN CPUs=1 State=CLOUD"}, path: "/slurm/node/dynN"},
	"GET /slurm/partition/{partition_name}":        {path: "/slurm/partition/debug"},
	"DELETE /slurm/partition/{partition_name}":     {setup: []string{"root scontrol create PartitionName=opN Nodes=node1"}, path: "/slurm/partition/opN"},
	"POST /slurm/partitions/":                      {body: `{"partitions": [{"name": "newN", "nodes": {"configured": "node1"}}]}`},
	"GET /slurm/reservation/{reservation_name}":    {setup: []string{addReservation}, path: "/slurm/reservation/opN"},
	"DELETE /slurm/reservation/{reservation_name}": {setup: []string{addReservation}, path: "/slurm/reservation/opN"},
	"POST /slurm/reservation":                      {body: `{"name": "newN", "start_time": 2000000000, "duration": 60, "users": ["alice"], "node_list": ["n03"], "flags": ["OVERLAP"]}`},
	"POST /slurm/reservations/":                    {body: `{"reservations": [{"name": "moreN", "start_time": 2000000000, "duration": 60, "users": ["alice"], "node_list": ["n04"], "flags": ["OVERLAP"]}]}`},

	"GET /slurmdb/account/{account_name}":    {path: "/slurmdb/account/physics"},
	"DELETE /slurmdb/account/{account_name}": {setup: []string{addAccount}, path: "/slurmdb/account/opN"},
	"POST /slurmdb/accounts/":                {body: `{"accounts": [{"name": "newN", "description": "d", "organization": "o"}]}`},
	"POST /slurmdb/accounts_association/":    {body: `{"association_condition": {"accounts": ["assocN"], "clusters": ["lab"]}}`, since: "23.11"},
	"GET /slurmdb/association/":              {path: "/slurmdb/association/?account=physics&user=alice&cluster=lab"},
	"DELETE /slurmdb/association/":           {setup: []string{addAccount, addUser}, path: "/slurmdb/association/?account=opN&user=uN&cluster=lab"},
	"DELETE /slurmdb/associations/":          {setup: []string{addAccount, addUser}, path: "/slurmdb/associations/?account=opN&user=uN&cluster=lab"},
	"POST /slurmdb/associations/":            {setup: []string{addAccount}, body: `{"associations": [{"account": "opN", "cluster": "lab", "user": "", "shares_raw": 3}]}`},
	"GET /slurmdb/cluster/{cluster_name}":    {path: "/slurmdb/cluster/lab"},
	"DELETE /slurmdb/cluster/{cluster_name}": {setup: []string{"slurm sacctmgr -i -Q add cluster opN"}, path: "/slurmdb/cluster/opN"},
	"POST /slurmdb/clusters/":                {body: `{"clusters": [{"name": "newN"}]}`},
	"GET /slurmdb/instance/":                 {since: "23.11"},
	"GET /slurmdb/instances/":                {since: "23.11"},
	"GET /slurmdb/conf":                      {since: "26.05"},
	"POST /slurmdb/config":                   {body: `{"accounts": [{"name": "confN", "description": "d", "organization": "o"}]}`},
	"GET /slurmdb/job/{job_id}":              {path: "/slurmdb/job/RECORD"},
	"POST /slurmdb/job/{job_id}":             {path: "/slurmdb/job/RECORD", body: `{"comment": {"job": "opN"}}`},
	"POST /slurmdb/jobs/":                    {body: `{"job_id_list": ["RECORD"], "job_rec": {"comment": {"job": "opN"}}}`},
	"GET /slurmdb/qos/{qos}":                 {path: "/slurmdb/qos/quick"},
	"DELETE /slurmdb/qos/{qos}":              {setup: []string{"slurm sacctmgr -i -Q add qos opN"}, path: "/slurmdb/qos/opN"},
	"POST /slurmdb/qos/":                     {body: `{"qos": [{"name": "newN"}]}`},
	"POST /slurmdb/tres/":                    {body: `{"TRES": [{"type": "gres", "name": "opN"}]}`, status: 501, reason: "no release of Slurm makes one by request"},
	"GET /slurmdb/user/{name}":               {path: "/slurmdb/user/alice"},
	"DELETE /slurmdb/user/{name}":            {setup: []string{addAccount, addUser}, path: "/slurmdb/user/uN"},
	"POST /slurmdb/users/":                   {body: `{"users": [{"name": "newN"}]}`},
	"POST /slurmdb/users_association/":       {body: `{"association_condition": {"users": ["assocN"], "accounts": ["physics"], "clusters": ["lab"]}, "user": {}}`, since: "23.11"},
	"GET /slurmdb/wckey/{id}":                {path: "/slurmdb/wckey/WCKEY"},
	"DELETE /slurmdb/wckey/{id}":             {setup: []string{"slurm sacctmgr -i -Q add user bob wckey=opN cluster=lab"}, path: "/slurmdb/wckey/opN"},
	"POST /slurmdb/wckeys/":                  {body: `{"wckeys": [{"name": "newN", "cluster": "lab", "user": "alice"}]}`},
	"POST /util/hostlist":                    {body: `{"hostnames": ["n1", "n2"]}`},
	"POST /util/hostnames":                   {body: `{"hostlist": "n[1-2]"}`},
}

var versionInPath = regexp.MustCompile(`/(v0\.0\.(\d+))/`)

// declaredOperations returns the rows of api/testdata/paths.tsv: version,
// method and path.
func declaredOperations(t *testing.T) (rows [][3]string) {
	t.Helper()
	text, err := os.ReadFile("../../api/testdata/paths.tsv")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "\t"); len(cells) > 2 && strings.HasPrefix(cells[0], "v0.0.") {
			rows = append(rows, [3]string{cells[0], cells[1], cells[2]})
		}
	}
	if len(rows) < 300 {
		t.Fatalf("only %d operations are declared", len(rows))
	}
	return rows
}

// allowMoreNodes makes the cluster permit nodes that its configuration does not
// name.
func (m *machine) allowMoreNodes(t *testing.T) {
	t.Helper()
	file := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(text, "MaxNodeCount=200\n"...), 0))
	m.signal(t, "slurmctld", "TERM")
	eventually(t, "slurmctld has exited", func() bool {
		_, err := m.try("root", "pgrep", "-x", "slurmctld")
		return err != nil
	})
	m.restart(t, "slurmctld")
}

// bareOperation returns the method and path of a row of declaredOperations,
// without the version.
func bareOperation(row [3]string) string {
	return row[1] + " " + strings.Replace(row[2], "/"+row[0], "", 1)
}

// TestOperations requests every operation that slurmrestd declares, once in
// each version, and checks that it succeeds.
func TestOperations(t *testing.T) {
	m := freshCluster(t)
	m.allowMoreNodes(t)
	gateway := m.client(gatewaySocket)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	root, err := m.createToken("root")
	must(t, err)
	m.run(t, "slurm", "sacctmgr", "-i", "-Q", "add", "user", "alice", "wckey=one")
	m.wckey, _, _ = strings.Cut(m.run(t, "root", "sacctmgr", "-nP", "show", "wckey", "where", "wckey=one", "format=id"), "\n")
	record := m.run(t, "alice", append(sbatchCommand, "-H")...)
	rows := declaredOperations(t)
	var running []string
	for _, row := range rows {
		c := calls[bareOperation(row)]
		if strings.Contains(c.path+c.body, "RUNS") {
			running = append(running, m.run(t, "alice", sbatchCommand...))
		}
	}
	eventually(t, "jobs run and are recorded", func() bool {
		return strings.Count(m.run(t, "root", "squeue", "-h", "-t", "RUNNING", "-o", "%i,"), ",") == len(running) &&
			m.run(t, "root", "sacct", "-nXP", "-j", record, "-o", "jobid") != ""
	})
	statuses, used := map[int]int{}, map[string]bool{}
	for _, row := range rows {
		number := versionInPath.FindStringSubmatch(row[2])[2]
		bare := bareOperation(row)
		c := calls[bare]
		used[bare] = true
		path := row[2]
		if c.path != "" {
			path = strings.Replace(c.path, "/slurm/", "/slurm/"+row[0]+"/", 1)
			path = strings.Replace(path, "/slurmdb/", "/slurmdb/"+row[0]+"/", 1)
		}
		run := ""
		if strings.Contains(c.path+c.body, "RUNS") {
			run, running = running[0], running[1:]
		}
		words := strings.NewReplacer("opN", "op"+number, "newN", "new"+number, "moreN", "more"+number, "dynN", "dyn"+number, "uN", "u"+number,
			"assocN", "assoc"+number, "confN", "conf"+number, "WCKEY", m.wckey, "RECORD", record, "RUNS", run, "JOB", m.prepareCall(t, c, number))
		a, err := sendRequest(gateway, row[1], words.Replace(path), words.Replace(c.body), "X-SLURM-USER-TOKEN: "+root)
		must(t, err)
		want := http.StatusOK
		switch {
		case c.since > m.release:
			want = http.StatusNotImplemented
		case c.status != 0:
			want = c.status
		}
		// A reconfiguration replaces slurmctld with a new process. This process
		// does not know the objects that the old process created in the
		// meantime, so they are created again.
		if a.status != want && row[1] == "GET" && len(c.setup) > 0 {
			m.prepareCall(t, c, number)
			a, err = sendRequest(gateway, row[1], words.Replace(path), words.Replace(c.body), "X-SLURM-USER-TOKEN: "+root)
			must(t, err)
		}
		statuses[a.status]++
		if a.status != want {
			t.Errorf("%s %s: status %d, want %d: %s", row[1], words.Replace(path), a.status, want, remarks(a.body))
		}
	}
	for bare := range calls {
		if !used[bare] {
			t.Errorf("%s is not declared", bare)
		}
	}
	t.Logf("statuses: %v", statuses)
	// The nodes of older versions are gone after the reconfigurations.
	node := "new" + versionInPath.FindStringSubmatch(rows[len(rows)-1][2])[2]
	if out := m.run(t, "root", "scontrol", "-o", "show", "nodes"); m.release >= "23" && !strings.Contains(out, "NodeName="+node+" ") {
		t.Errorf("node %s was not created", node)
	}
}

// sbatchCommand is a command that submits a job.
var sbatchCommand = []string{"sbatch", "--parsable", "-o", "/dev/null", "--wrap=sleep 600"}

// prepareCall runs the commands that a call needs. If the call needs a held
// job, prepareCall returns the job's number.
func (m *machine) prepareCall(t *testing.T, c call, number string) string {
	t.Helper()
	for _, line := range c.setup {
		words := strings.Fields(regexp.MustCompile(`(op|u|dyn)N\b`).ReplaceAllString(line, "${1}"+number))
		m.try(words[0], words[1:]...) // an earlier operation may have created it
	}
	if strings.Contains(c.path+c.body, "JOB") {
		return m.run(t, "alice", append(sbatchCommand, "-H")...)
	}
	return ""
}

// TestInvalidBodies sends invalid bodies to every operation that takes a body,
// in each version. All these requests must be refused, and the cluster must not
// change.
func TestInvalidBodies(t *testing.T) {
	m := freshCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	c := m.client(gatewaySocket)
	root, err := m.createToken("root")
	must(t, err)
	held := m.run(t, "alice", "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap=true")
	eventually(t, "the job is recorded", func() bool { return m.run(t, "root", "sacct", "-nXP", "-j", held, "-o", "jobid") != "" })
	before, statuses := m.state(t), map[int]int{}
	for _, row := range declaredOperations(t) {
		bare := row[1] + " " + strings.Replace(row[2], "/"+row[0], "", 1)
		valid := calls[bare].body
		if valid == "" {
			continue
		}
		path := strings.NewReplacer("{job_id}", held, "{node_name}", "n01").Replace(row[2])
		for _, body := range invalidBodies(valid) {
			a, err := sendRequest(c, row[1], path, body, "X-SLURM-USER-TOKEN: "+root, "Content-Type: application/json")
			must(t, err)
			statuses[a.status]++
			if a.status < 400 || a.status >= 500 && a.status != calls[bare].status {
				t.Errorf("%s %s with %s: status %d: %s", row[1], path, body, a.status, remarks(a.body))
			}
		}
	}
	t.Logf("statuses: %v", statuses)
	if after := m.state(t); after != before {
		t.Errorf("changed from\n%s\nto\n%s", linesNotIn(before, after), linesNotIn(after, before))
	}
}

// state lists the jobs, reservations, nodes, partitions and records of the
// cluster.
func (m *machine) state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, list := range []string{
		"squeue --all -h -o %i|%T|%j|%u|%k|%l", "scontrol -a -o show reservation", "sinfo -a -h -N -o %N|%P|%T|%E|%w|%f", "scontrol -a -o show partition",
		"sacctmgr -nP show account", "sacctmgr -nP show user", "sacctmgr -nP show assoc", "sacctmgr -nP show qos", "sacctmgr -nP show cluster format=cluster,flags",
		"sacctmgr -nP show wckey", "sacctmgr -nP show tres",
	} {
		fmt.Fprintf(&b, "%s\n%s\n", list, m.run(t, "root", strings.Fields(list)...))
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// invalidBodies returns bodies that no operation may accept: texts that are not
// JSON, JSON that is not an object, and variants of the valid body in which one
// value has another type.
func invalidBodies(valid string) []string {
	list := []string{"{", "[]", "null", `"x"`, "1", valid[1:], valid + "}", valid[:len(valid)-1], strings.Replace(valid, ":", "", 1), strings.Replace(valid, `"`, "", 1)}
	for _, place := range regexp.MustCompile(`: ("[^"]*"|true|\d+|\[[^][]*\]|\[\{[^][]*\}\])`).FindAllStringSubmatchIndex(valid, -1) {
		list = append(list, valid[:place[2]]+`[[{}]]`+valid[place[3]:])
	}
	return list
}
