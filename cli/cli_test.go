package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
)

// TestTables checks the contents of tables. A table must not contain terminal
// control sequences.
func TestTables(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string
	}{
		{"jobs --user bob", `JOBID  PARTITION  NAME  USER  STATE                 TIME    LIMIT  NODES  CPUS  NODELIST(REASON)
3      cpu,gpu    wait  bob   PENDING               0:00  1:30:00      -     1  (Priority)
19_4   cpu        task  bob   COMPLETED+COMPLETING  0:05        -      -     -  node7
`},
		{"jobs --me --state failed", `JOBID  PARTITION  NAME  USER  STATE         TIME  LIMIT  NODES  CPUS  NODELIST(REASON)
4      cpu        done  ann   FAILED  1-01:01:05      -      -     -  node7
`},
		{"nodes", `NAME     STATE        CPUS  ALLOC   LOAD  MEMORY  FREE  GPUS  PARTITIONS  REASON
node1    MIXED+DRAIN    64     32  12.34    500G  900M   3/6  gpu,cpu     a_\x1b]0;title\a
node2    IDLE            8      -      -    800M     -     -  cpu         -
$(evil)  IDLE            -      -      -       -     -     -  -           -
`},
		{"nodes --state idle -p cpu", `NAME   STATE  CPUS  ALLOC  LOAD  MEMORY  FREE  GPUS  PARTITIONS  REASON
node2  IDLE      8      -     -    800M     -     -  cpu         -
`},
		{"partitions", `NAME  STATE       LIMIT  DEFTIME  NODES(A/I/O/T)  CPUS  NODELIST
cpu   UP     2-00:00:00        -         1/1/0/2    72  node[1-2]
`},
	} {
		status, out, errOut := runCommand(t, &gateway{}, strings.Fields(tt.args)...)
		if diff := gocmp.Diff(tt.want, out); diff != "" || status != 0 || errOut != "" {
			t.Errorf("%s: status %d, %s -want +got\n%s", tt.args, status, errOut, diff)
		}
	}
}

// TestFilters checks which jobs the options select.
func TestFilters(t *testing.T) {
	for args, want := range map[string]string{
		"jobs": "3 12 20", "jobs --all": "3 4 12 20", "jobs -t all": "3 4 12 20", "jobs --me": "12", "jobs --me -a": "4 12", "jobs -u bob,ann -p gpu": "3 12",
		"jobs -t PD,R": "3 12", "jobs -t CG": "20", "jobs -A b": "3", "jobs -A B": "3", "jobs -n wait,task": "3 20", "jobs -w node2": "12", "jobs --node node7 --all": "4 20", "jobs -w node[2-7],x -a": "4 12 20",
		"jobs -a -t F": "4", "jobs -u carol": "",
	} {
		status, out, errOut := runCommand(t, &gateway{}, append(strings.Fields(args), "-o", "json")...)
		var document struct {
			Jobs []struct {
				ID   int    `json:"job_id"`
				Name string `json:"name"`
			}
		}
		if err := json.Unmarshal([]byte(out), &document); err != nil {
			t.Fatalf("%s: %v\n%s%s", args, err, out, errOut)
		}
		got := map[int]bool{}
		for _, j := range document.Jobs {
			got[j.ID] = true
		}
		var ids []string
		for _, id := range []int{3, 4, 12, 20} {
			if got[id] {
				ids = append(ids, fmt.Sprint(id))
			}
		}
		if strings.Join(ids, " ") != want || status != 0 {
			t.Errorf("%s: %v, status %d, want %s", args, ids, status, want)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("%s: %q", args, out)
		}
	}
}

// TestScriptArguments checks where a script is looked up, that it gets the arguments
// that follow its name, and that the job's record has the path that sbatch puts there.
func TestScriptArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "job.sh")
	for _, name := range []string{"job.sh", "bin/job.sh", "bin/other.sh", "bin/sub/x.sh", "lib/other.sh"} {
		os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.MkdirAll(filepath.Join(dir, "lib/sub/x.sh"), 0o700) // no file
	t.Setenv("PATH", "lib:"+dir+"/bin:"+os.Getenv("PATH"))
	for _, tt := range []struct {
		args []string
		want any
	}{
		{[]string{path}, []any{path}},
		{[]string{"job.sh", "a"}, []any{path, "a"}},
		{[]string{"./job.sh"}, []any{"./job.sh"}},
		{[]string{"other.sh"}, []any{dir + "/lib/other.sh"}},
		{[]string{"bin/other.sh"}, []any{dir + "/bin/other.sh"}},
		{[]string{"sub/x.sh"}, []any{dir + "/bin/sub/x.sh"}},
		{[]string{"--wrap", "true"}, nil},
		{[]string{path, "a", "b c"}, []any{path, "a", "b c"}},
		{[]string{path, "a", "--", "-n", "2"}, []any{path, "a"}},
	} {
		g := &gateway{}
		status, _, errOut := runCommand(t, g, append([]string{"submit"}, tt.args...)...)
		job, _ := g.submitted["job"].(map[string]any)
		if diff := gocmp.Diff(tt.want, job["argv"]); diff != "" || status != 0 {
			t.Errorf("%q: status %d, %s\n%s", tt.args, status, errOut, diff)
		}
	}
}

// TestSubmittedVariables checks that a job gets the variables that sbatch sets.
func TestSubmittedVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SLURM_SUBMIT_DIR", "/of/another/job")
	t.Setenv("SLURM_UMASK", "0027")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	g := &gateway{}
	if status, _, errOut := runCommand(t, g, "submit", "--wrap", "true", "--", "-c", "4", "--ntasks-per-node=2", "-D", "/", "--export=NONE"); status != 0 {
		t.Fatal(errOut)
	}
	job, _ := g.submitted["job"].(map[string]any)
	got := map[string]string{}
	for _, v := range job["environment"].([]any) {
		name, value, _ := strings.Cut(v.(string), "=")
		got[name] = value
	}
	for name, want := range map[string]string{"SLURM_SUBMIT_DIR": dir, "SLURM_SUBMIT_HOST": host, "SLURM_UMASK": "0027", "SLURM_CPUS_PER_TASK": "4", "SLURM_NTASKS_PER_NODE": "2"} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
}

// TestFilesFailed checks what is said about a job whose output file Slurm could
// not open.
func TestFilesFailed(t *testing.T) {
	const failed = `{"jobs": [{"job_id": 5, "job_state": ["FAILED"], "state_reason": "RaisedSignal:53(Real-time_signal_19)", "state_description": "RaisedSignal:53(Real-time signal 19)", "standard_output": "/gone/out",
		"exit_code": {"return_code": {"set": true, "number": 0}, "signal": {"id": {"set": true, "number": 53}}}}]}`
	var jobs struct{ Jobs []rest.Job }
	if err := json.Unmarshal([]byte(failed), &jobs); err != nil {
		t.Fatal(err)
	}
	const why = "the file for input, output or errors, or its directory, can't be opened (0:53)"
	var out bytes.Buffer
	if err := printJob(&out, &jobs.Jobs[0], table.Style{}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "Outcome:    "+why+"\n") || !strings.Contains(text, "State:      FAILED\n") || !strings.Contains(text, "Output:     /gone/out\n") {
		t.Errorf("schedctl job:\n%s", text)
	}
	if text, _ := summary(jobs.Jobs); text != "FAILED, "+why {
		t.Errorf("schedctl submit --wait: %s", text)
	}
	jobs.Jobs[0].State = rest.Words{"FAILED", "COMPLETING"}
	if text, _ := summary(jobs.Jobs); strings.Contains(text, "RaisedSignal") {
		t.Errorf("while it completes: %s", text)
	}
	listed := rest.Job{State: rest.Words{"FAILED"}, Reason: "RaisedSignal:53(Real-time_signal_19)"} // without its exit code
	if text := sentenceOf(&listed); text != why {
		t.Errorf("schedctl jobs: %s", text)
	}
	for _, other := range []rest.Job{
		{State: rest.Words{"FAILED"}, Reason: "NonZeroExitCode"},
		{State: rest.Words{"CANCELLED"}, Reason: "RaisedSignal:53"},
	} {
		if other.FilesFailed() || reasonOf(&other) == "" {
			t.Errorf("%+v: its output has failed", other)
		}
	}
}

// TestSubmitWrap checks the job that submit --wrap makes of a command.
func TestSubmitWrap(t *testing.T) {
	g := &gateway{}
	status, out, _ := runCommand(t, g, "submit", "--wrap", "hostname; date", "--", "-n", "2")
	job, _ := g.submitted["job"].(map[string]any)
	if status != 0 || out != "5\n" || job["script"] != "#!/bin/sh\nhostname; date\n" || job["name"] != "wrap" || job["tasks"] != 2.0 {
		t.Errorf("status %d, printed %q, sent %v", status, out, g.submitted)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"submit"}, "no script is given"},
		{[]string{"submit", "--", "-n", "2"}, "no script is given"},
		{[]string{"submit", "--wrap", "date", "job.sh"}, "exclude each other"},
		{[]string{"submit", "--wrap", ""}, "empty value"},
		{[]string{"submit", "job.sh", "--", "--wrap=date"}, "no such file"},
	} {
		if status, out, errOut := runCommand(t, &gateway{}, tt.args...); status != statusUsage || out != "" || !strings.Contains(errOut, tt.want) {
			t.Errorf("%q: status %d, %s%s", tt.args, status, out, errOut)
		}
	}
}

// TestDetails checks that the details of a job's state are printed, by job and
// by submit --wait.
func TestDetails(t *testing.T) {
	const text = "nodes are \x1b[2J too small"
	g := &gateway{states: []string{"PENDING"}, description: text}
	if status, out, errOut := runCommand(t, g, "job", "5"); status != 0 || !strings.Contains(out, "\nDetails:    nodes are \\x1b[2J too small\n") {
		t.Errorf("job: status %d, %s%s", status, out, errOut)
	}
	g = &gateway{states: []string{"PENDING", "COMPLETED"}, description: text}
	if status, _, errOut := runCommand(t, g, "submit", "--wait", "--wrap", "date"); status != 0 || !strings.Contains(errOut, "job 5 PENDING: nodes are \\x1b[2J too small\n") {
		t.Errorf("submit --wait: status %d, %s", status, errOut)
	}
}

// TestWhy checks the explanations of jobs that wait, run and have failed.
func TestWhy(t *testing.T) {
	for id, want := range map[string]string{
		"3":  "job 3 PENDING: Jobs with a higher priority come first. It can start after these. With a shorter time limit it may start sooner, in a gap between other jobs.\n",
		"12": "job 12 RUNNING: it does not wait, and has not failed\n",
		"5":  "job 5 PENDING: The scheduler has not looked at the job yet. Wait for its next pass. nodes are \\x1b[2J too small.\n",
	} {
		status, out, errOut := runCommand(t, &gateway{states: []string{"PENDING"}, description: "nodes are \x1b[2J too small"}, "why", id)
		if status != 0 || out != want || errOut != "" {
			t.Errorf("%s: status %d, printed %q, %q", id, status, out, errOut)
		}
	}
	g := &gateway{states: []string{"PENDING"}, explanation: "Of 4 licenses, 3 are in use."}
	if status, out, errOut := runCommand(t, g, "why", "5"); status != 0 || out != "job 5 PENDING: Of 4 licenses, 3 are in use. Ask.\n" {
		t.Errorf("with an explanation: status %d, printed %q, %q", status, out, errOut)
	}
	for format, want := range map[string]string{
		"csv":  "job_id,job_state,explanation\n5,PENDING,\"Of 4 licenses, 3 are in use. Ask.\"\n",
		"json": `"explanation":"Of 4 licenses, 3 are in use. Ask."`,
		"yaml": "explanation: Of 4 licenses, 3 are in use. Ask.",
	} {
		if status, out, errOut := runCommand(t, g, "why", "5", "-o", format); status != 0 || !strings.Contains(strings.ReplaceAll(out, `": "`, `":"`), want) || errOut != "" {
			t.Errorf("%s: status %d, printed %q, %q", format, status, out, errOut)
		}
	}
	if status, _, errOut := runCommand(t, &gateway{}, "why", "99"); status != statusUnknown || !strings.Contains(errOut, "job 99 is unknown") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// TestDryRun checks that submit --dry-run sends nothing to a server that would submit
// the job.
func TestDryRun(t *testing.T) {
	start := time.Unix(100, 0).Format("2006-01-02T15:04:05")
	for _, tt := range []struct {
		openapi string
		args    string
		status  int
		out     string
		errOut  string
		sent    bool
	}{
		{`{"name": "dry_run"}`, "", 0, "would start at " + start + ", on 4 CPUs of node[1-2] in the partition gpu; would end or suspend the jobs 7 8\n", "welcome\n", true},
		{`{"name": "other"}`, "", statusFailed, "", "has no dry run; nothing was submitted", false},
		{"", "", statusFailed, "", "has no dry run; nothing was submitted", false},
		{`{"name": "dry_run"}`, "--wait", statusUsage, "", "--dry-run excludes --wait", false},
		{`{"name": "dry_run"}`, "--idempotency-key=k", statusUsage, "", "--dry-run excludes --wait, --follow and --idempotency-key", false},
	} {
		g := &gateway{openapi: tt.openapi}
		status, out, errOut := runCommand(t, g, append(strings.Fields("submit --dry-run "+tt.args), "--wrap", "date")...)
		if status != tt.status || out != tt.out || !strings.Contains(errOut, tt.errOut) || (g.submitted != nil) != tt.sent {
			t.Errorf("%s %s: status %d, printed %q, %q, sent %v", tt.openapi, tt.args, status, out, errOut, g.submitted)
		}
	}
}

// TestSubmit checks the request and the output of the submit command. With
// --wait, the command must exit with the job's exit status.
func TestSubmit(t *testing.T) {
	hurry(t)
	file := filepath.Join(t.TempDir(), "job.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n#SBATCH -n 2 -p cpu\necho\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{}
	status, out, errOut := runCommand(t, g, "submit", "--idempotency-key", "k1", file, "--", "-p", "gpu")
	job, _ := g.submitted["job"].(map[string]any)
	if status != 0 || out != "5\n" || errOut != "warning: field x is unknown\nwelcome\\x1b[2J\n" || job["partition"] != "gpu" || job["tasks"] != 2.0 ||
		job["name"] != "job.sh" || g.headers.Get("Idempotency-Key") != "k1" {
		t.Errorf("status %d, printed %q, %q, sent %v", status, out, errOut, g.submitted)
	}
	if env := fmt.Sprint(job["environment"]); strings.Contains(env, "_JWT=") || !strings.Contains(env, "PATH=") {
		t.Errorf("environment %s", env)
	}
	for _, tt := range []struct {
		states   []string
		status   int
		wantText string
	}{
		{[]string{`PENDING`, `RUNNING`, `COMPLETED {"return_code": {"set": true, "number": 0}}`}, 0,
			"job 5 PENDING\njob 5 RUNNING\njob 5 COMPLETED\n"},
		{[]string{`FAILED {"return_code": {"set": true, "number": 7}}`}, 7, "job 5 FAILED, exit code 7\n"},
		{[]string{`RUNNING`, `CANCELLED {"signal": {"id": {"set": true, "number": 9}, "name": "KILL"}}`}, 137, "job 5 RUNNING\njob 5 CANCELLED, signal 9 (KILL)\n"},
		{[]string{`TIMEOUT`}, 1, "job 5 TIMEOUT\n"},
	} {
		status, out, errOut := runCommand(t, &gateway{states: tt.states, failures: 1}, "submit", "--wait", file)
		if status != tt.status || out != "5\n" || !strings.HasSuffix(errOut, tt.wantText) {
			t.Errorf("%v: status %d, printed %q, %q", tt.states, status, out, errOut)
		}
	}
}

// arrayList contains an array with a running task, an array whose tasks are all
// pending, and the array 50, whose list of tasks slurmrestd has cut off.
const arrayList = `{"jobs": [
 {"job_id": 30, "user_name": "ann", "job_state": ["PENDING"], "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": false}, "array_task_string": "5-6%2"},
 {"job_id": 31, "user_name": "ann", "job_state": ["RUNNING"], "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": true, "number": 2}},
 {"job_id": 32, "user_name": "ann", "job_state": ["COMPLETED"], "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": true, "number": 1}},
 {"job_id": 40, "user_name": "bob", "job_state": ["PENDING"], "array_job_id": {"set": true, "number": 40}, "array_task_id": {"set": false}, "array_task_string": "0-9999"},
 {"job_id": 50, "user_name": "carol", "job_state": ["PENDING"], "array_job_id": {"set": true, "number": 50}, "array_task_string": "1,3,5,7,..."},
 {"job_id": 51, "user_name": "carol", "job_state": ["RUNNING"], "array_job_id": {"set": true, "number": 50}, "array_task_id": {"set": true, "number": 0}}
]}`

// hetList contains a job with two components that wait, and one with a component that
// has ended and two that run.
const hetList = `{"jobs": [
 {"job_id": 31, "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "het_job_id": {"set": true, "number": 30}, "het_job_offset": {"set": true, "number": 1}},
 {"job_id": 30, "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "het_job_id": {"set": true, "number": 30}, "het_job_offset": {"set": true, "number": 0}},
 {"job_id": 33, "user_name": "bob", "partition": "gpu", "job_state": ["COMPLETED"], "het_job_id": {"set": true, "number": 33}, "het_job_offset": {"set": true, "number": 0}},
 {"job_id": 34, "user_name": "bob", "partition": "gpu", "job_state": ["RUNNING"], "het_job_id": {"set": true, "number": 33}, "het_job_offset": {"set": true, "number": 1}},
 {"job_id": 35, "user_name": "bob", "partition": "cpu", "job_state": ["RUNNING"], "het_job_id": {"set": true, "number": 33}, "het_job_offset": {"set": true, "number": 2}}
]}`

// TestComponents checks that components of heterogeneous jobs have the ids that squeue
// shows, and what commands change if they select some or all of them.
func TestComponents(t *testing.T) {
	status, out, errOut := runCommand(t, &gateway{jobs: hetList}, "jobs", "--columns", "jobid", "--no-header")
	if want := "30+0\n30+1\n33+1\n33+2\n"; out != want || status != 0 {
		t.Errorf("status %d, %s%s, want %s", status, out, errOut, want)
	}
	for args, want := range map[string][]string{
		"-u ann": {"30"}, "-u bob": {"33"}, "-u bob -p gpu": {"33+1"}, "-p cpu": {"30", "33+2"}, "33+1 -u bob": {"33+1"}, "31 -u ann": {"31"}, "33 -p cpu": {"33+2"}, "33 -u bob": {"33"},
	} {
		g := &gateway{jobs: hetList}
		status, out, errOut := runCommand(t, g, append([]string{"cancel"}, strings.Fields(args)...)...)
		if diff := gocmp.Diff(want, g.cancelled); diff != "" || status != 0 {
			t.Errorf("%s: status %d, %s%s\n%s", args, status, out, errOut, diff)
		}
	}
	for _, args := range []string{"30+1", "30+0", "30+1 -u ann", "30+1 --signal KILL"} { // slurmctld would start no other component, or cancel all
		g := &gateway{jobs: hetList}
		status, out, errOut := runCommand(t, g, append([]string{"cancel"}, strings.Fields(args)...)...)
		if len(g.cancelled) > 0 || status != statusFailed || !strings.Contains(errOut, "can't be cancelled alone\nhint: schedctl cancel 30 cancels") {
			t.Errorf("%s: status %d, %v, %s%s", args, status, g.cancelled, out, errOut)
		}
	}
}

// TestEmptyValues checks that an empty value of an option or argument is an
// error, and that the command sends nothing.
func TestEmptyValues(t *testing.T) {
	for _, args := range [][]string{
		{"cancel", "--user", "", "-t", "PD"}, {"cancel", "-u", "", "3"}, {"cancel", "-u", "bob,,ann"}, {"cancel", "-t", "", "3"}, {"cancel", "-p", " "},
		{"cancel", "-A", ""}, {"cancel", "-n", ""}, {"cancel", "-w", ""}, {"cancel", "-w", "n1,,n2"}, {"cancel", "-w", "n1,"}, {"cancel", "--signal", "", "3"}, {"cancel", "3", ""}, {"cancel", "--url", "", "3"},
		{"jobs", "-u", ""}, {"jobs", "--token-file="}, {"top", "--once", "-p", ""}, {"watch", "-u", ""}, {"nodes", "-t", ""}, {"nodes", "-p", ""}, {"nodes", ""},
		{"partitions", ""}, {"submit", "--idempotency-key", "", "job.sh"},
	} {
		g := &gateway{}
		status, out, errOut := runCommand(t, g, args...)
		if status != statusUsage || out != "" || !strings.Contains(errOut, "empty") || len(g.cancelled) != 0 {
			t.Errorf("%q: status %d, %v, %s%s", args, status, g.cancelled, out, errOut)
		}
	}
}

// TestWatch checks that the watch command prints the changes in a job's state
// and exits with the job's exit status.
func TestWatch(t *testing.T) {
	hurry(t)
	status, out, errOut := runCommand(t, &gateway{states: []string{`PENDING`, `PENDING`, `RUNNING`, `FAILED {"return_code": {"set": true, "number": 3}}`}}, "watch", "5")
	var states []string
	for line := range strings.Lines(out) {
		states = append(states, strings.Join(strings.Fields(line)[1:], " "))
	}
	if want := "5 sub PENDING|5 sub RUNNING|5 sub FAILED, exit code 3"; strings.Join(states, "|") != want || status != 3 {
		t.Errorf("status %d, %q, %s", status, states, errOut)
	}
}

// TestTop checks a frame.
func TestTop(t *testing.T) {
	status, out, errOut := runCommand(t, &gateway{}, "top", "--once")
	for _, want := range []string{"Nodes 3: 0 allocated, 1 mixed, 2 idle, 0 other", "32 of 40", "GPUs [||||||||||||||||||||] 3 of 3", "Jobs 1 running, 1 pending", `train\x1b[2J`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if first, second := strings.Index(out, "\n12 "), strings.Index(out, "\n3 "); status != 0 || errOut != "" || first < 0 || first > second {
		t.Errorf("status %d, %s%s", status, out, errOut)
	}
}

// TestJob checks the printed details of a job, and the exit status for an
// unknown job.
func TestJob(t *testing.T) {
	status, out, errOut := runCommand(t, &gateway{states: []string{`FAILED {"return_code": {"set": true, "number": 3}}`}}, "job", "5", "99")
	if status != statusUnknown || !strings.Contains(out, "State:      FAILED\nOutcome:    exit code 3\n") || !strings.Contains(errOut, "job 99 is unknown") {
		t.Errorf("status %d, %s%s", status, out, errOut)
	}
}

// TestStatuses checks the exit status of each kind of error.
func TestStatuses(t *testing.T) {
	script := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH --bogus\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args     string
		status   int
		wantText string
	}{
		{"jobs --bogus", statusUsage, "unknown flag"},
		{"jobs 12", statusUsage, `unexpected argument "12"`},
		{"jobs -o xml", statusUsage, "use table, json, yaml or wide"},
		{"jobs -t soon", statusUsage, "unknown state"},
		{"job", statusUsage, "no job is named"},
		{"job x", statusUsage, "not a job id"},
		{"job 5,6", statusUsage, "separated by blanks"},
		{"cancel", statusUsage, "no job is selected"},
		{"watch 5 --me", statusUsage, "not both"},
		{"wait", statusUsage, "no job is named"},
		{"wait x", statusUsage, "not a job id"},
		{"wait 5 --until idle", statusUsage, "use ended or running"},
		{"wait 5 --max-wait -1s", statusUsage, "less than 0"},
		{"submit /nowhere/job.sh", statusUsage, "no such file"},
		{"submit " + script, statusUsage, "s: line 2: unsupported option --bogus"},
		{"jobs --url localhost:1", statusUsage, "http://HOST:PORT"},
		{"jobs --url http://127.0.0.1:1", statusUnavailable, "connection refused"},
		{"jobs --token-file /nowhere", statusDenied, "name a file"},
		{"jobs --token-file /", statusDenied, "name a file"},
		{"jobs --timeout 0s", statusUsage, "must be longer than 0"},
		{"jobs --timeout -1s", statusUsage, "must be longer than 0"},
		{"show node a b", statusUsage, `unexpected argument "b"`},
		{"nodes missing", statusUnknown, "node missing is unknown"},
		{"partitions missing", statusUnknown, "partition missing is unknown"},
	} {
		status, _, errOut := runCommand(t, &gateway{}, strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(errOut, tt.wantText) {
			t.Errorf("%s: status %d, %s", tt.args, status, errOut)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if exitErr, ok := WithStatus(ctx.Err()).(*ExitError); !ok || exitErr.Status != statusInterrupted || exitErr.Err != nil {
		t.Errorf("interrupted: %v", exitErr)
	}
}

// TestCompletion checks that job ids, node names and partition names are
// completed. A name from the server must not be able to inject a shell command.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"__complete job ":                 "12\ttrain\\x1b[2J ann RUNNING\n4\tdone ann FAILED\n:4\n",
		"__complete cancel ":              "12\ttrain\\x1b[2J ann RUNNING\n:4\n",
		"__complete watch --user bob ":    "3\twait bob PENDING\n19_4\ttask bob COMPLETED\n:4\n",
		"__complete wait ":                "12\ttrain\\x1b[2J ann RUNNING\n:4\n",
		"__complete wait --until ":        "ended\nrunning\n:4\n",
		"__complete cancel -u bob -t PD ": "3\twait bob PENDING\n:4\n",
		"__complete cancel -u carol ":     ":4\n",
		"__complete nodes ":               "node1\tMIXED+DRAIN\nnode2\tIDLE\n:4\n",
		"__complete jobs --node ":         "node1\tMIXED+DRAIN\nnode2\tIDLE\n:4\n",
		"__complete partitions ":          "cpu\tUP\n:4\n",
		"__complete jobs --url ":          ":4\n",
	} {
		if _, out, _ := runCommand(t, &gateway{}, strings.Split(args, " ")...); out != want {
			t.Errorf("%s: %q", args, out)
		}
	}
	if _, out, _ := runCommand(t, &gateway{}, "__complete", "job", "--url", "http://127.0.0.1:1", ""); out != ":4\n" {
		t.Errorf("without a server: %q", out)
	}
}

// TestFailedWrite checks that commands report a write that fails, as on a full disk, and
// that submit then names the job.
func TestFailedWrite(t *testing.T) {
	server := httptest.NewServer(&gateway{t: t})
	defer server.Close()
	t.Setenv("SCHED_JWT", testToken)
	t.Setenv("SLURM_JWT", "")
	t.Setenv("SCHED_URL", server.URL)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for args, want := range map[string]string{"ping": "", "jobs": "", "watch": "", "shares": "", "shares -o csv": "", "show node": "", "history": "", "submit --wrap true": "job 5 was submitted; print its id: "} {
		root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Commands()...)
		root.SetArgs(strings.Fields(args))
		root.SetOut(full)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || err.Error() != want+"write /dev/full: no space left on device" {
			t.Errorf("%s: %v", args, err)
		}
	}
}
