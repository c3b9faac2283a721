package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
)

// TestColumns checks the options for the columns and the order of rows.
func TestColumns(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"jobs --columns jobid,reason --no-header -t PD", "3  Priority\n"},
		{"jobs --all --columns JOBID --sort -jobid", "JOBID\n20\n19_4\n12\n4\n3\n"},
		{"jobs --all --columns jobid,user --sort user,-cpus --no-header", "12    ann\n4     ann\n3     bob\n20    bob\n19_4  bob\n"},
		{"jobs --columns jobid,limit --sort -limit --no-header", "12    unlimited\n3       1:30:00\n19_4          -\n20            -\n"},
		{"nodes --columns name,gpus --sort -gpus --no-header", "node1    3/6\nnode2      -\n$(evil)    -\n"},
		{"nodes --columns name,gres node[1-2] --no-header", "node1  gpu:a100:4(S:0-1),gpu:2,nic:1\nnode2  -\n"},
		{"partitions --columns name,gpus", "NAME  GPUS\ncpu    3/6\n"},
		{"nodes -o wide node2", "NAME   STATE  CPUS  ALLOC  LOAD  MEMORY  FREE  GPUS  GRES  PARTITIONS  REASON\nnode2  IDLE      8      -     -    800M     -     -  -     cpu         -\n"},
	} {
		jobs := strings.Replace(jobList, "{\"job_id\": 4,", `{"job_id": 20, "name": "x", "user_name": "bob", "job_state": ["RUNNING"], "cpus": 0}, {"job_id": 4,`, 1)
		status, out, errOut := runCommand(t, &gateway{jobs: jobs}, strings.Fields(tt.args)...)
		if diff := gocmp.Diff(tt.want, out); diff != "" || status != 0 || errOut != "" {
			t.Errorf("%s: status %d, %s -want +got\n%s", tt.args, status, errOut, diff)
		}
	}
	for args, want := range map[string]string{
		"jobs --columns id": "--columns id: unknown column", "jobs --sort -size": "--sort size: unknown column", "jobs --sort jobid -o json": "no effect on -o json",
		"nodes --no-header -o yaml": "no effect on -o yaml", "partitions --columns -name": "unknown column", "jobs -o wide --columns name": "exclude each other", "job 5 -o wide": "use table, json or yaml", "nodes node[1": "malformed", "nodes node1,,node2": "malformed or empty",
		"nodes n[0-99999999]": "more than 65536 names", "job 5_[1": "not a job id", "job 5_[x]": "malformed list of tasks",
	} {
		if status, out, errOut := runCommand(t, &gateway{}, strings.Fields(args)...); status != statusUsage || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %s%s", args, status, out, errOut)
		}
	}
	if status, _, errOut := runCommand(t, &gateway{}, "nodes", "node[1-3]"); status != statusUnknown || !strings.Contains(errOut, "error: node node3 is unknown\n") {
		t.Errorf("a host list with an unknown name: status %d, %s", status, errOut)
	}
	if status, _, errOut := runCommand(t, &gateway{}, "nodes", "node[1-5]"); status != statusUnknown || !strings.Contains(errOut, "error: nodes node[3-5] are unknown\n") {
		t.Errorf("a host list with unknown names: status %d, %s", status, errOut)
	}
}

// TestCompareNatural checks the order of texts.
func TestCompareNatural(t *testing.T) {
	ordered := []string{"", "a", "n", "n1", "n01", "n2", "n2a", "n10", "n10b2", "n10b10", "o"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := compareNatural(a, b), min(1, max(-1, i-j)); got != want {
				t.Errorf("%q, %q: %d, want %d", a, b, got, want)
			}
		}
	}
}

// TestEightyColumns checks the lists on a terminal with 80 columns. The reason
// why a job waits or a node is down and the state of a recorded job must stay,
// and no line may be longer.
func TestEightyColumns(t *testing.T) {
	jobs := decode[rest.Job](t, `[{"job_id": 123456, "name": "a-long-name-of-a-job", "user_name": "alexandra", "partition": "gpu-long,gpu-short", "job_state": ["PENDING"], "state_reason": "QOSMaxJobsPerUserLimit",
		"time_limit": {"set": true, "number": 2880}, "node_count": 4, "cpus": 512},
		{"job_id": 123457, "name": "x", "user_name": "bob", "partition": "cpu", "job_state": ["RUNNING"], "start_time": 100, "end_time": 200, "time_limit": {"infinite": true}, "node_count": 400, "cpus": 51200, "nodes": "node[0001-0200,0300-0500]"}]`)
	nodes := decode[rest.Node](t, `[{"name": "node0001", "state": ["DOWN", "DRAIN", "NOT_RESPONDING"], "cpus": 128, "alloc_cpus": 0, "cpu_load": 12800, "real_memory": 1000000, "free_mem": 900000,
		"partitions": ["gpu-long", "gpu-short", "all"], "gres": "gpu:4", "reason": "disk sda fails, ticket 77"}, {"name": "node0002", "state": ["IDLE"], "cpus": 128, "partitions": ["all"]}]`)
	partitions := decode[rest.Partition](t, `[{"name": "a-long-name-of-a-partition", "partition": {"state": ["UP"]}, "nodes": {"configured": "node[0001-0200,0300-0500]", "total": 401},
		"cpus": {"total": 51328}, "maximums": {"time": {"set": true, "number": 2880}}, "defaults": {"time": {"set": true, "number": 60}}}]`)
	jobs[1].Started = rest.Number{}
	check := func(name, want string, tbl *table.Table) {
		var b bytes.Buffer
		if err := tbl.Write(&b, table.Style{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > 80 {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
		}
	}
	check("jobs", `JOBID   PARTITI…  NAME       USER       STATE    TIME  NODELIST(REASON)
123456  gpu-lon…  a-long-n…  alexandra  PENDING  0:00  (QOSMaxJobsPerUserLimit)
123457  cpu       x          bob        RUNNING  0:00  node[0001-0200,0300-0500]
`, (&listing[*rest.Job]{columns: jobColumns()}).table(jobs))
	check("nodes", `NAME      STATE         CPUS  ALLOC  GPUS  PARTITIONS  REASON
node0001  DOWN+DRAIN+…   128      0   0/4  gpu-long,…  disk_sda_fails,_ticket_77
node0002  IDLE           128      -     -  all         -
`, (&listing[*rest.Node]{columns: nodeColumns()}).table(nodes))
	history := decode[rest.Job](t, `[{"job_id": 1234567, "name": "a-long-name-of-a-job", "user_name": "alexandra", "partition": "gpu-long", "job_state": ["COMPLETED"], "start_time": 1000000000, "end_time": 1000123456, "cpus": 51200, "nodes": "node[0001-0200]"}]`)
	check("history", `JOBID    NAME        USER       STATE            TIME  STARTED              EXIT
1234567  a-long-na…  alexandra  COMPLETED  1-10:17:36  `+formatTime(history[0].Started)+`     0
`, (&listing[*rest.Job]{columns: historyColumns()}).table(history))
	history[0].State, history[0].ArrayJob, history[0].ArrayTask = rest.Words{"OUT_OF_MEMORY"}, rest.Number{Set: true, Value: 1234560}, rest.Number{Set: true, Value: 1234}
	check("history of an array", `JOBID         PART…  NAME      USER       STATE                TIME   CPUS  EXIT
1234560_1234  gpu-…  a-long-…  alexandra  OUT_OF_MEMORY  1-10:17:36  51200     0
`, (&listing[*rest.Job]{columns: historyColumns()}).table(history))
	check("partitions", `NAME             STATE       LIMIT  DEFTIME  NODES(A/I/O/T)   CPUS  NODELIST
a-long-name-of…  UP     2-00:00:00  1:00:00   301/90/10/401  51328  node[0001-0…
`, (&listing[*partitionRow]{columns: partitionColumns()}).table([]*partitionRow{{partitions[0], load{nodes: 401, allocated: 300, mixed: 1, idle: 90, other: 10}}}))
}

// decode returns the objects in a list.
func decode[T any](t *testing.T, text string) (list []*T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}
