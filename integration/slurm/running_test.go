package slurm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/integration/running"
	"schedrestd/integration/slurm/variant"
)

// runningScript is the script of the jobs of TestRunningJobs. It writes all that a
// program can see of its job into files whose names begin with SEEN.
const runningScript = `#!/bin/bash
to=SEEN.$SLURM_ARRAY_TASK_ID.$SLURM_HET_GROUP
{
	echo "arguments: $#"; printf '<%s>\n' "$@"
	echo "directory: $(pwd)"; echo "user: $(id -un) $(id -gn)"; echo "umask: $(umask)"; echo "nice: $(nice)"
	for fd in 0 1 2; do echo "file $fd: $(readlink /proc/$$/fd/$fd)"; done
	ulimit -S -a; ulimit -H -a
	env -0 | sort -z | tr '\n\0' ' \n'
	timeout 60 srun --mpi=none -l sh -c 'echo "$SLURM_PROCID/$SLURM_NTASKS is $SLURM_LOCALID on $SLURMD_NODENAME, stack $(ulimit -S -s), files $(ulimit -S -n)"' 2>&1 | sort
} >"$to.part" 2>/dev/null
mv "$to.part" "$to"
`

// runningBase is the request to which each case of TestRunningJobs adds fields.
const runningBase = `{"job": {"script": SCRIPT, "partition": "pair", "current_working_directory": "/tmp", "environment": ["PATH=/usr/bin:/bin", "SLURM_RLIMIT_CORE=0"], "nodes": "2", "tasks": 4, "memory_per_cpu": 10, "standard_output": "/dev/null"}}`

// runningHints are values that let a job run in the partition of TestRunningJobs.
var runningHints = []variant.Hint{
	hint(`required_nodes$`, `"nosuchnode"`, `"node1"`, `"node2"`), hint(`excluded_nodes$`, "", `"n05"`, `"n06"`), hint(`(constraints|prefer|batch_features)$`, "", `"fast"`, `"ssd"`),
	hint(`argv$`, "", `"name"`, `"second"`), hint(`environment$`, "", `"SLURM_DISTRIBUTION=block"`, `"SLURM_RLIMIT_STACK=4194304"`),
	hint(`distribution$`, "", `"cyclic"`, `"plane=2"`), hint(`distribution_plane_size$`, "", `2`, `3`),
	hint(`rlimits[.](cpu|nproc)$`, "", `4000`, `5000`), hint(`rlimits[.]nofile$`, "", `500`, `600`), hint(`rlimits[.]`, "", `4096000`, `2048000000`),
	hint(`standard_\w+$`, "", `"/tmp/x-%j"`, `"y-%u"`), hint(`current_working_directory$`, "", `"/var"`, `"/"`),
	hint(`array$`, "", `"1-2"`, `"1-3:2"`), hint(`nodes$`, "", `"1-2"`, `"2"`), hint(`tasks$`, "", `3`, `6`),
	hint(`kill_warning_delay$`, "", `30`, `40`), hint(`time_(limit|minimum)$`, "", `5`, `6`),
}

// runningLayouts are further cases: each kind of distribution, and fields that
// contradict each other.
func runningLayouts() (list [][]variant.Case) {
	one := func(field, value string) variant.Case {
		return variant.Case{Field: "job." + field, Form: "layout", Value: value}
	}
	for _, layout := range []string{"block", "cyclic", "Block:Cyclic", "cyclic:*", "*", "*:*:*", "pack", "NoPack", "block,pack", "cyclic:block:fcyclic,NoPack", "plane=1", "plane=3", "hostfile", "arbitrary"} {
		list = append(list, []variant.Case{one("distribution", strconv.Quote(layout))})
	}
	return append(list,
		[]variant.Case{one("distribution", `"arbitrary"`), one("required_nodes", `["node2", "node1", "node1", "node2"]`)},
		[]variant.Case{one("distribution", `"plane=2"`), one("environment", `["PATH=/usr/bin:/bin", "SLURM_DISTRIBUTION=cyclic", "SLURM_DIST_PLANESIZE=1"]`)},
		[]variant.Case{one("distribution", `"plane=2"`), one("distribution_plane_size", `2`)},
		[]variant.Case{one("distribution_plane_size", `3`)},
		[]variant.Case{one("rlimits.stack", `{"set": true, "infinite": true}`), one("rlimits.nofile", `300`)},
		[]variant.Case{one("rlimits.core", `4096`)},
		[]variant.Case{one("argv", `["job.sh", "", "x"]`)},
		[]variant.Case{one("argv", `[""]`)},
		[]variant.Case{one("environment", `["PATH=/usr/bin:/bin", "", "A=", "B= c\td", "A=2"]`)},
		[]variant.Case{one("environment", `["PATH=/usr/bin:/bin"]`), one("spank_environment", `["", "X=1"]`)},
	)
}

// TestRunningJobs submits the same jobs through both gateways, with each form of
// each field, and compares the jobs as they run: their arguments, environment,
// limits, directory, files, and the nodes of their ranks. It runs a sample, which
// SLURM_CHANGES_SEED selects; SLURM_CHANGES=all runs all cases, in all versions.
func TestRunningJobs(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	c := newChangeForms(t, m)
	m.addPair(t)
	versions := []string{newest[m.release]}
	if c.part > 0 {
		versions = map[string][]string{"24.11": {"v0.0.41", "v0.0.42"}, "26.05": {"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}}[m.release]
	}
	for _, name := range versions {
		t.Run(name, func(t *testing.T) {
			seen := filepath.Join(m.root, "tmp/seen")
			must(t, os.RemoveAll(seen)) // a job that writes nothing must not have another version's files
			must(t, os.Mkdir(seen, 0o755))
			must(t, os.Chmod(seen, 0o1777))
			r := &runningJobs{t: t, m: m, clients: c.clients, token: m.token, version: name, rows: c.rows}
			v := api.V40
			for v.String() != name {
				v++
			}
			cases := variant.Cases(api.SubmissionBody.Type().Shape(schema.View{Version: v, Spelling: schema.Slurm}), runningHints)
			cases = slices.DeleteFunc(cases, func(one variant.Case) bool {
				return r.endsDaemon(one) || endsAnywhere.MatchString(one.Field+" "+one.Form) || m.release == "26.05" && crashesStepd.MatchString(one.Field+" "+one.Form) || !strings.HasPrefix(one.Field, "job.") || strings.HasPrefix(one.Form, "wrong type") || unsetForms[one.Form] || skippedInRunning.MatchString(one.Field)
			})
			random := c.random("running", name)
			var list [][]variant.Case
			for _, one := range cases {
				list = append(list, []variant.Case{one})
			}
			for _, pair := range variant.Pairs(cases, random) {
				list = append(list, pair[:])
			}
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			switch {
			case c.part < 0:
				list = list[:8]
			case c.part < 1:
				list = list[:int(c.part*float64(len(list)))]
			}
			for batch := range slices.Chunk(append(runningLayouts(), list...), 24) {
				r.compare(batch)
			}
			t.Logf("%d jobs of each gateway: %d compared while they ran, %d refused by both, %d by one; %d files seen; %d differences have a row in %s", r.sent, r.ran, r.refused, r.differ, r.files, r.known, changeTable)
			if r.ran < len(runningLayouts())-6 {
				t.Errorf("only %d jobs ran", r.ran)
			}
		})
	}
}

// endsDaemon reports whether the form of the field ends slurmctld when the job
// starts.
func (r *runningJobs) endsDaemon(one variant.Case) bool {
	return r.rows.find(r.m.release, r.version, "POST /slurm/job/submit", []variant.Case{one}, "theirs ends a daemon") != nil
}

// skippedInRunning matches fields that say which job it is, keep it from running
// soon, or choose another partition; and the script, which reports.
var skippedInRunning = regexp.MustCompile(`[.](job_id|step_id.*|script|begin_time|deadline|dependency|hold|priority|reservation|crontab.*|partition|clusters|account|user_id|group_id|container.*|flags|burst_buffer|x11.*|licenses|end_time|immediate|delay_boot|reboot|network|alloc_.*|allocation_node_.*|reserve_ports)$`)

// endsAnywhere matches limits of no time, which end the job before it has written
// everything, or just when the controller looks at it.
var endsAnywhere = regexp.MustCompile(`[.](rlimits[.]cpu|time_limit) (zero|[{]set true, number 0[}])$`)

// crashesStepd matches fields with which slurmstepd of 26.05 crashes, so that
// slurmrestd's job never ends. Our gateway does not send them.
var crashesStepd = regexp.MustCompile(`[.]standard_(output|error) empty text$`)

// unsetForms are forms of numbers that slurmrestd ignores (a row in
// differences/changes.md).
var unsetForms = map[string]bool{"{number n}": true, "{infinite false, number n}": true}

// addPair adds node2, with its own slurmd, and the partition pair of node1 and
// node2.
func (m *machine) addPair(t *testing.T) {
	t.Helper()
	m.appendFile(t, "etc/slurm/slurm.conf", "NodeName=node2 NodeHostname=head NodeAddr=127.0.0.1 Port=6828 CPUs=16 RealMemory=4000 Feature=fast,ssd Weight=5 State=UNKNOWN\n"+
		"PartitionName=pair Nodes=node[1-2] MaxTime=1-0 OverSubscribe=EXCLUSIVE State=UP\n")
	m.signal(t, "slurmd", "TERM")
	m.awaitExit(t, "slurmd")
	m.restartWith(t, map[string]string{"SlurmdSpoolDir": "/var/lib/slurm-node/%n", "SlurmdPidFile": "/run/slurm/slurmd-%n.pid", "SlurmdLogFile": "/var/log/slurm/slurmd-%n.log",
		"MinJobAge": "3600", "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=0,bf_interval=1"}) // each job has both nodes, so the next one starts only after it
	for _, node := range []string{"node1", "node2"} {
		must(t, os.MkdirAll(filepath.Join(m.root, "var/lib/slurm-node", node), 0o755))
		m.run(t, "root", "sh", "-c", "setsid --fork slurmd -D -N "+node+" </dev/null >>/var/log/slurm/slurmd-"+node+".out 2>&1")
	}
	eventually(t, "both nodes are idle", func() bool {
		out, _ := m.try("root", "sinfo", "-h", "-N", "-p", "pair", "-o", "%t")
		return strings.Count(out, "idle") == 2
	})
	t.Cleanup(func() { // the next cluster is made anew, and needs the directory as it was
		m.signal(t, "slurmd", "TERM")
		m.awaitExit(t, "slurmd")
	})
}

// runningJobs compares the jobs of the two gateways.
type runningJobs struct {
	t       *testing.T
	m       *machine
	clients [2]*http.Client
	token   string
	version string
	rows    changeRows

	sent, ran, refused, differ, files, known int
}

// A runner is a pair of jobs, which should run in the same way.
type runner struct {
	cases    []variant.Case
	statuses [2]int
	ids      [2]string
}

func (r *runner) String() string {
	var list []string
	for _, c := range r.cases {
		list = append(list, c.String())
	}
	return strings.Join(list, ", ")
}

// seenPath is the beginning of the names of the files of a job.
func seenPath(n, side int) string { return fmt.Sprintf("/tmp/seen/%d-%d", n, side) }

// compare runs a job through each gateway for each element of batch.
func (r *runningJobs) compare(batch [][]variant.Case) {
	r.t.Helper()
	first := r.sent
	runners := make([]*runner, len(batch))
	for i, cases := range batch {
		one := &runner{cases: cases}
		runners[i] = one
		for side := range 2 {
			script := strings.ReplaceAll(runningScript, "SEEN", seenPath(r.sent, side))
			body, err := variant.Body(strings.ReplaceAll(runningBase, "SCRIPT", quoteJSON(script)), runningHints, cases...)
			must(r.t, err)
			a, err := sendRequest(r.clients[side], "POST", "/slurm/"+r.version+"/job/submit", body, "X-SLURM-USER-TOKEN: "+r.token)
			must(r.t, err)
			var answer struct {
				ID uint32 `json:"job_id"`
			}
			json.Unmarshal(a.body, &answer)
			one.statuses[side], one.ids[side] = a.status, strconv.Itoa(int(answer.ID))
		}
		r.sent++
	}
	defer func() {
		if _, err := r.m.try("root", "scontrol", "ping"); err != nil { // one of the jobs has ended the controller
			r.t.Errorf("the controller does not answer after these: %v", runners)
		}
	}()
	r.awaitEnd()
	states := r.states()
	for i, one := range runners {
		n := first + i
		switch {
		case one.statuses[0] != http.StatusOK && one.statuses[1] != http.StatusOK:
			r.refused++
			continue
		case one.statuses[0] != one.statuses[1], one.ids[0] == "0":
			r.differ++ // TestChangesByForm has rows for these
			r.t.Logf("%v: statuses %v", one, one.statuses)
			continue
		}
		seen := [2]map[string]string{r.seen(n, 0, one.ids[0]), r.seen(n, 1, one.ids[1])}
		if len(seen[0]) > 0 {
			r.ran++
			r.files += len(seen[0])
		}
		seen[0]["state"], seen[1]["state"] = states[one.ids[0]], states[one.ids[1]]
		for _, name := range slices.Sorted(maps.Keys(withAll(seen[0], seen[1]))) {
			if seen[0][name] == seen[1][name] {
				continue
			}
			if row := r.rows.find(r.m.release, r.version, "POST /slurm/job/submit", one.cases, "shows running job"); row != nil {
				r.known++
				continue
			}
			r.t.Errorf("%v: %s differs:\n%s", one, name, lineDifference(seen[0][name], seen[1][name]))
		}
	}
}

func withAll(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// lineDifference returns the lines that only one of the two texts has.
func lineDifference(theirs, ours string) string {
	var b strings.Builder
	a, o := strings.Split(theirs, "\n"), strings.Split(ours, "\n")
	for _, line := range a {
		if !slices.Contains(o, line) {
			fmt.Fprintf(&b, "  theirs %s\n", line)
		}
	}
	for _, line := range o {
		if !slices.Contains(a, line) {
			fmt.Fprintf(&b, "  ours   %s\n", line)
		}
	}
	return cmp.Or(b.String(), "  the order of lines\n")
}

// awaitEnd waits until no job runs, or can soon run. It holds a job that the nodes
// can't run although they are idle, because the other jobs wait for it.
func (r *runningJobs) awaitEnd() {
	r.t.Helper()
	calm, idle, last := 0, 0, ""
	deadline := time.Now().Add(10 * time.Minute)
	for calm < 3 {
		if time.Now().After(deadline) {
			r.t.Fatal("jobs still run: " + r.m.run(r.t, "root", "squeue", "-o", "%i %T %r"))
		}
		time.Sleep(time.Second)
		out := r.m.run(r.t, "root", "squeue", "-h", "-o", "%T %r %i")
		calm++
		idle++
		if jobRuns.MatchString(out) || out != last {
			calm, idle, last = 0, 0, out
		}
		if jobWaits.MatchString(out) {
			calm = 0
		}
		if idle > 60 {
			for _, stuck := range jobLacksNodes.FindAllStringSubmatch(out, -1) {
				r.m.run(r.t, "root", "scontrol", "hold", stuck[1])
			}
			idle = 0
		}
	}
}

// What squeue prints of jobs: state, reason and number.
var (
	jobRuns       = regexp.MustCompile(`(?m)^(RUNNING|COMPLETING|CONFIGURING) `)
	jobWaits      = regexp.MustCompile(`(?m)^PENDING (None|Resources|Priority|Prolog|Licenses) `)
	jobLacksNodes = regexp.MustCompile(`(?m)^PENDING Resources (\d+)`)
)

// states returns the state, reason and exit code of each job, and ends those that
// wait.
func (r *runningJobs) states() map[string]string {
	r.t.Helper()
	states := map[string]string{}
	out := r.m.run(r.t, "root", "squeue", "-h", "-a", "-t", "all", "-O", "JobID:20 ,State:20 ,Reason:30 ,exit_code:12 ")
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) > 1 {
			states[words[0]] += strings.Join(words[1:], " ") + "\n"
		}
	}
	r.m.try("root", "scancel", "--user=alice")
	return states
}

var (
	// variableThatDiffers matches variables whose values differ between two jobs.
	variableThatDiffers = regexp.MustCompile(`^(SLURM_JOB_(START|END)_TIME|SLURM_TASK_PID|SLURM_STEP_LAUNCHER_PORT|SLURM_SRUN_COMM_PORT|SLURM_JOB_GPUS|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|ZE_AFFINITY_MASK|SLURM_CPU_BIND.*|SLURM_JOB_SLUID|SLURM_SLUID)=`)
	logTime             = regexp.MustCompile(`\[\d{4}-\d\d-\d\dT[\d:.]+\]`) // in a message of slurmstepd
	jobNumber           = regexp.MustCompile(`\bSLURM_JOB_ID=(\d+)`)
	nodeName            = regexp.MustCompile(`\bnode[12]\b`)
)

// seen returns the contents of the files of a job, without what differs between
// any two jobs.
func (r *runningJobs) seen(n, side int, id string) map[string]string {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.m.root, seenPath(n, side)+".*"))
	must(r.t, err)
	found := map[string]string{}
	number, err := strconv.Atoi(id)
	must(r.t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		must(r.t, err)
		s := strings.ReplaceAll(string(text), seenPath(n, side), "SEEN")
		own := []string{id}
		for i := range 3 { // the components of a heterogeneous job
			own = append(own, strconv.Itoa(number+1+i))
		}
		if m := jobNumber.FindStringSubmatch(s); m != nil { // a task of an array gets its number when it starts
			own = append(own, m[1])
		}
		for _, n := range own {
			s = regexp.MustCompile(`\b`+n+`\b`).ReplaceAllString(s, "JOB")
		}
		s = logTime.ReplaceAllString(s, "[TIME]")
		lines := slices.DeleteFunc(strings.Split(s, "\n"), variableThatDiffers.MatchString)
		if slices.Contains(lines, "SLURM_JOB_NUM_NODES=1") { // on any of the two, and only node1 has GPUs
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "SLURM_GPUS_ON_NODE=") })
			for i := range lines {
				lines[i] = nodeName.ReplaceAllString(lines[i], "NODE")
			}
		}
		found[strings.TrimPrefix(filepath.Base(path), filepath.Base(seenPath(n, side)))] = strings.Join(lines, "\n")
	}
	return found
}

// TestRunningAsBundled checks that slurmd runs the jobs of package running as the
// bundled daemons do (TestRunningJob of integration/jobs).
func TestRunningAsBundled(t *testing.T) {
	m := useCluster(t)
	if m.release == "22.05" {
		t.Skip("not for this run: slurmd of 22.05 lacks some signs of file patterns")
	}
	m.gateway(t, restArgs...)
	c := m.client(gatewaySocket)
	const dir = "/tmp/running"
	m.run(t, "root", "install", "-d", "-o", "alice", "-m", "755", dir)
	list := running.Cases("alice", dir)
	ids := make([]string, len(list))
	for i, tt := range list {
		fields := map[string]any{"script": "#!/bin/sh\n" + tt.Script + "\n", "current_working_directory": dir, "environment": []string{"PATH=/usr/bin:/bin"}}
		maps.Copy(fields, tt.Fields)
		body, err := json.Marshal(map[string]any{"job": fields})
		must(t, err)
		a, err := sendRequest(c, "POST", "/slurm/v0.0.42/job/submit", string(body), "X-SLURM-USER-TOKEN: "+m.token)
		must(t, err)
		var answer struct {
			ID uint32 `json:"job_id"`
		}
		if err := json.Unmarshal(a.body, &answer); err != nil || a.status != http.StatusOK || answer.ID == 0 {
			t.Fatalf("%s: status %d, %v: %s", tt.Name, a.status, err, a.body)
		}
		ids[i] = strconv.Itoa(int(answer.ID))
	}
	m.run(t, "root", "scontrol", "show", "job") // that of 24.11 crashes if a job has an empty path
	for i, tt := range list {
		eventually(t, tt.Name+" has ended", func() bool {
			state := m.run(t, "root", "squeue", "-h", "-t", "all", "-j", ids[i], "-o", "%T")
			return state == "COMPLETED" || state == "FAILED"
		})
		text, err := os.ReadFile(filepath.Join(m.root, dir, cmp.Or(tt.Output, "slurm-"+ids[i]+".out")))
		must(t, err)
		got, want := string(text), tt.Want
		if strings.HasPrefix(want, "schedctld: ") { // slurmd has another wording
			_, want, _ = strings.Cut(want, "\n")
			_, got, _ = strings.Cut(got, "\n")
		}
		if got != want {
			t.Errorf("%s: printed %q, want %q", tt.Name, got, want)
		}
	}
}
