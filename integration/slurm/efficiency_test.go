package slurm

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEfficiency compares the priorities and shares that schedctl shows with those
// of sprio and sshare, and what jobs have used with the records of sacct.
func TestEfficiency(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("its message with priorities has another layout")
	}
	m.configure(t, map[string]string{"slurm.conf": "PriorityWeightAssoc=500\nPriorityWeightJobSize=700\nPriorityWeightTRES=cpu=1000,mem=5000\nPriorityMaxAge=0-00:01\n"})
	for _, change := range []string{"modify user alice set priority=30", "modify user bob set priority=70 fairshare=3", "add user carol account=optics fairshare=parent", "add account empty parent=optics description=x organization=x"} {
		m.run(t, "slurm", append([]string{"sacctmgr", "-i", "-Q"}, strings.Fields(change)...)...)
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	must(t, m.install("schedctl"))
	jobs := m.makeEfficiency(t)
	t.Run("priority", func(t *testing.T) { m.comparePriorities(t) })
	t.Run("shares", func(t *testing.T) { m.compareShares(t) })
	t.Run("seff", func(t *testing.T) { m.compareEfficiency(t, jobs) })
}

// schedctl runs schedctl as an administrator, and returns its standard output and
// standard error.
func (m *machine) schedctl(t *testing.T, args ...string) (out, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := m.command(ctx, "root", append([]string{"env", "SCHED_JWT=" + m.admin, "SCHED_URL=unix:" + gatewaySocket, "/opt/gateway/schedctl"}, args...)...)
	var text strings.Builder
	cmd.Stderr = &text
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("schedctl %v: %v: %s", args, err, text.String())
	}
	return string(list), text.String()
}

// makeEfficiency makes jobs that wait, run and have ended, and returns the ids of
// those that have been allocated resources.
func (m *machine) makeEfficiency(t *testing.T) (jobs []string) {
	t.Helper()
	submit := func(user, args string, script ...string) string {
		t.Helper()
		return m.run(t, user, slices.Concat([]string{"sbatch", "--parsable", "-o", "/dev/null"}, strings.Fields(args), script)...)
	}
	nice := submit("alice", "-p fake -n 3 --nice=20", "--wrap", "true")
	several := submit("alice", "-p fake,sets -n 5 --mem=900", "--wrap", "true")
	submit("alice", "-p fake --qos=quick -t 5 --array=1-4", "--wrap", "true")
	submit("bob", "-p fake -N 2", "--wrap", "true")
	submit("bob", "-p fake --hold", "--wrap", "true")
	direct := submit("alice", "-p fake", "--wrap", "true")
	use := "x=$(head -c 9000000 /dev/zero | tr '\\0' a); i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 2; exit $((SLURM_ARRAY_TASK_ID - 1))"
	array := submit("alice", "-p debug -n 2 -t 2 --mem=100 --array=1-2", "--wrap", use)
	running := submit("bob", "-p debug -n 1 -t 3", "--wrap", "sleep 600")
	m.run(t, "root", "scontrol", "update", "job="+direct, "priority=4000")
	m.run(t, "root", "scontrol", "update", "job="+several, "sitefactor=7")
	db := m.openDatabase(t)
	for i, job := range []string{
		"700001, 0, 0, 4294967294, 0, 4294967294, 3, 0, 2000, 2100", // times of the start and of the end
		"700002, 0, 0, 4294967294, 700002, 0, 3, 256, 2000, 2010",   // components of a heterogeneous job
		"700003, 0, 0, 4294967294, 700002, 1, 3, 0, 2000, 2020",
		"700004, 0, 0, 4294967294, 0, 4294967294, 4, 0, 2000, 2000", // cancelled before its start
		"700005, 0, 0, 4294967294, 0, 4294967294, 3, 0, 2000, 2030", // nothing is known of its steps
	} {
		db.query("insert into lab_job_table (job_db_inx, mod_time, account, cpus_req, job_name, id_assoc, id_resv, id_wckey, id_user, id_group, state_reason_prev, nodes_alloc, nodelist, `partition`, priority, timelimit, " +
			"tres_alloc, tres_req, time_submit, time_eligible, id_job, array_task_pending, id_array_job, id_array_task, het_job_id, het_job_offset, state, exit_code, time_start, time_end) " +
			fmt.Sprintf("select %d, 1, acct, 3, 'j', id_assoc, 0, 0, 20001, 20001, 0, 1, 'node1', 'debug', 1, %d, '%s', '1=3,2=256,4=1', 1000, 1000, %s from lab_assoc_table where user='alice' and deleted=0 limit 1",
				900001+i, []uint32{10, 10, 4294967295, 10, 10}[i], []string{"1=4,2=512,4=2", "1=1,2=64,4=1", "1=8,4=1", "", "1=2,2=100,4=1"}[i], job))
	}
	for _, step := range []string{
		"900001, -5, 3, 10, 600000, 5, 700000, '1=15000,2=104857600'", "900001, 0, 3, 100, 300000, 2, 100000, '2=52428800,6=1'", "900001, 1, 1, 0, 0, 0, 0, ''",
		"900002, 0, 3, 1, 0, 0, 499999, '2=1000'", "900003, 0, 3, 170, 0, 1, 0, '2=4000000'",
	} {
		db.query("insert into lab_step_table (job_db_inx, id_step, state, user_sec, user_usec, sys_sec, sys_usec, tres_usage_in_tot, time_start, time_end, step_name, nodelist, nodes_alloc, node_inx, task_cnt, task_dist) values (" +
			step + ", 2000, 2010, 's', 'node1', 1, '0', 1, 0)")
	}
	for strings.Count(m.run(t, "root", "sacct", "-n", "-j", array, "-o", "TRESUsageInTot%80"), "mem=") < 2 {
		time.Sleep(time.Second / 2)
	}
	m.run(t, "root", "scontrol", "update", "job="+nice, "nice=30") // the controller computes the priority again, with its age
	return []string{array, running, "700001", "700002", "700004", "700005"}
}

// comparePriorities compares the table of priorities with sprio's.
func (m *machine) comparePriorities(t *testing.T) {
	var theirs, ours [][]string
	for line := range strings.Lines(m.run(t, "root", "sprio", "-h", "-o", "%.20i|%.20r|%.20n|%.20u|%.20o|%.20Y|%.20S|%.20A|%.20B|%.20F|%.20J|%.20P|%.20Q|%.20N|%.60T")) {
		var row []string
		for cell := range strings.SplitSeq(line, "|") {
			if cell = strings.TrimSpace(cell); cell == "" {
				cell = "-"
			}
			row = append(row, cell)
		}
		theirs = append(theirs, row)
	}
	out, _ := m.schedctl(t, "priority")
	for line := range strings.Lines(out) {
		ours = append(ours, strings.Fields(line))
	}
	ours = ours[1:] // the headings
	priority := func(row []string) int {
		n, err := strconv.Atoi(row[5])
		must(t, err)
		return -n
	}
	if !slices.IsSortedFunc(ours, func(a, b []string) int { return priority(a) - priority(b) }) {
		t.Errorf("not sorted:\n%s", out)
	}
	slices.SortFunc(theirs, slices.Compare)
	slices.SortFunc(ours, slices.Compare)
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) != 6 {
		t.Errorf("%d priorities (sprio -, ours +):\n%s", len(ours), diff)
	}
	seen := map[int]bool{}
	for _, row := range ours {
		for i, cell := range row {
			seen[i] = seen[i] || cell != "0" && cell != "-"
		}
	}
	if len(seen) != 15 || slices.Contains([]bool{seen[6], seen[7], seen[8], seen[9], seen[10], seen[12], seen[13], seen[14]}, false) {
		t.Errorf("some parts are always 0:\n%s", out)
	}
	for _, args := range [][]string{{"--user", "bob"}, {"-p", "sets"}, {"--qos", "quick"}, {"-A", "optics"}, {ours[0][0]}} {
		if out, _ := m.schedctl(t, append([]string{"priority"}, args...)...); strings.Count(out, "\n") < 2 || strings.Count(out, "\n") > 3 {
			t.Errorf("priority %v:\n%s", args, out)
		}
	}
}

// compareShares compares the tree of fair shares with sshare's.
func (m *machine) compareShares(t *testing.T) {
	theirs := m.run(t, "root", "sshare", "-a", "-l", "-n", "-o", "Account%-30,User%20,RawShares%20,NormShares%20,RawUsage%20,NormUsage%20,EffectvUsage%20,FairShare%20,LevelFS%20")
	out, _ := m.schedctl(t, "shares")
	_, out, _ = strings.Cut(out, "\n")
	rows := func(text string, start, width int) (rows [][]string) {
		for line := range strings.Lines(text) {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			row := []string{fmt.Sprint(indent)}
			if start == 0 {
				row = append(row, strings.Fields(line)...)
			} else {
				line = fmt.Sprintf("%-*s", 30+8*21, strings.TrimRight(line, "\n"))
				row = append(row, strings.TrimSpace(line[:30]))
				for at := 30; at+21 <= len(line); at += 21 {
					cell := strings.TrimSpace(line[at : at+21])
					if cell == "" {
						cell = "-"
					}
					row = append(row, cell)
				}
			}
			rows = append(rows, row)
		}
		return rows
	}
	if diff := cmp.Diff(rows(theirs, 30, 21), rows(out, 0, 0)); diff != "" {
		t.Errorf("sshare -, ours +:\n%s\n%s\n%s", diff, theirs, out)
	}
	if out, _ := m.schedctl(t, "shares", "--user", "bob"); !strings.Contains(out, " bob ") || strings.Contains(out, "alice") {
		t.Errorf("shares of bob:\n%s", out)
	}
}

// compareEfficiency compares what jobs have used with their records.
func (m *machine) compareEfficiency(t *testing.T, ids []string) {
	out, warning := m.schedctl(t, append([]string{"seff", "-o", "csv"}, ids...)...)
	if !strings.Contains(warning, "before they end") {
		t.Errorf("no warning about the job that runs: %s", warning)
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	must(t, err)
	got := map[string]map[string]string{}
	for _, row := range rows[1:] {
		fields := map[string]string{}
		for i, name := range rows[0] {
			fields[name] = row[i]
		}
		got[fields["job"]] = fields
	}
	type sums struct {
		state                      string
		cpus, elapsed, cpu, memory float64
		ended, measured            bool
	}
	want := map[string]*sums{}
	records := m.run(t, "root", "sacct", "-n", "-P", "-D", "-j", strings.Join(ids, ","), "-S", "1970-01-01T00:00:01", "-o", "JobID,State,AllocCPUS,ElapsedRaw,TotalCPU,TRESUsageInTot")
	for line := range strings.Lines(records) {
		row := strings.Split(strings.TrimSpace(line), "|")
		job, step, isStep := strings.Cut(row[0], ".")
		if !isStep {
			s := &sums{state: row[1]}
			s.cpus, _ = strconv.ParseFloat(row[2], 64)
			s.elapsed, _ = strconv.ParseFloat(row[3], 64)
			want[job] = s
			continue
		}
		s := want[job]
		if s == nil {
			t.Fatalf("step %s of no job", step)
		}
		s.ended = s.ended || row[1] != "RUNNING"
		s.cpu += cpuSeconds(row[4])
		for word := range strings.SplitSeq(row[5], ",") {
			if amount, ok := strings.CutPrefix(word, "mem="); ok {
				s.memory, s.measured = max(s.memory, bytesOf(t, amount)), true
			}
		}
	}
	if len(want) != 8 || len(got) != len(want) {
		t.Fatalf("%d jobs, %d of sacct:\n%s\n%s", len(got), len(want), out, records)
	}
	for id, s := range want {
		fields := got[id]
		number := func(name string) float64 {
			n, err := strconv.ParseFloat(fields[name], 64)
			if err != nil {
				return -1
			}
			return n
		}
		near := func(name string, want, tolerance float64) {
			t.Helper()
			if got := number(name); math.Abs(got-want) > tolerance {
				t.Errorf("job %s: %s is %v, want %v", id, name, got, want)
			}
		}
		running := s.state == "RUNNING"
		if fields["state"] != strings.Fields(s.state)[0] {
			t.Errorf("job %s: state %s, want %s", id, fields["state"], s.state)
		}
		near("cpus.allocated", s.cpus, 0)
		near("time.elapsed", s.elapsed, map[bool]float64{true: 5}[running])
		if !s.ended {
			near("cpu_time.used", -1, 0)
			near("memory.used", -1, 0)
			near("cpu_time.efficiency", -1, 0)
			continue
		}
		near("cpu_time.used", s.cpu, 1)
		near("cpu_time.efficiency", number("cpu_time.used")/(s.cpus*s.elapsed), 1e-9)
		near("memory.used", s.memory, s.memory*0.01) // sacct rounds it
	}
	for field, value := range map[string]string{"time.fraction": "0.16666666666666666", "time.limit": "600", "cpu_time.used": "119", "cpu_time.efficiency": "0.2975", "memory.used": "104857600", "memory.efficiency": "0.1953125", "memory.requested": "268435456", "nodes": "2"} {
		if got["700001"][field] != value {
			t.Errorf("job 700001: %s is %s, want %s", field, got["700001"][field], value)
		}
	}
	if text, _ := m.schedctl(t, "seff", "700002", "-o", "json"); !json.Valid([]byte(text)) || strings.Count(text, `"job": "700002+`) != 2 {
		t.Errorf("the components:\n%s", text)
	}
}

// cpuSeconds parses a CPU time of sacct, such as 1-02:03:04 or 03:04.567.
func cpuSeconds(text string) (seconds float64) {
	days, rest, ok := strings.Cut(text, "-")
	if !ok {
		days, rest = "0", text
	}
	for part := range strings.SplitSeq(rest, ":") {
		n, _ := strconv.ParseFloat(part, 64)
		seconds = seconds*60 + n
	}
	n, _ := strconv.ParseFloat(days, 64)
	return seconds + n*86400
}

// bytesOf parses an amount of memory of sacct, such as 12K or 1.5M.
func bytesOf(t *testing.T, text string) float64 {
	t.Helper()
	shift := max(0, strings.IndexAny("KMGT", text[len(text)-1:])+1) * 10
	n, err := strconv.ParseFloat(strings.TrimRight(text, "KMGT"), 64)
	must(t, err)
	return n * float64(uint64(1)<<shift)
}
