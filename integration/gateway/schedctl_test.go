package gateway

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/internal/programtest"
)

// schedctl runs schedctl with the gateway at url or, if url is empty, with the
// daemons of the lab's configuration. It returns the exit status, standard
// output and standard error. token is the value of SCHED_JWT, or "" for none.
func schedctl(t *testing.T, l *harness.Lab, url, token string, args ...string) (status int, out, errOut string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), args...)
	cmd.Dir = l.Work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SCHED_URL=" + url, "TZ=UTC", "SCHED_CONF=/nowhere"}
	if url == "" {
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "SCHED_CONF=" + l.Conf()}
	}
	if token != "" {
		cmd.Env = append(cmd.Env, "SCHED_JWT="+token)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// TestSchedctl checks the interactive commands of schedctl against three
// gateways. One serves both /sched/ and /slurm/, one serves only /sched/, and
// one serves only the oldest API version that the commands support. The same
// commands must do the same without a gateway.
func TestSchedctl(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options []string
		env     []string
		direct  bool
	}{
		{"both spellings", nil, []string{"SCHEDRESTD_NAMES=both"}, false},
		{"one spelling", nil, []string{"SCHEDRESTD_NAMES=sched"}, false},
		{"oldest version", []string{"-d", "v0.0.42"}, nil, false},
		{"no gateway", nil, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := harness.NewLab(t, harness.WithOptions(tt.options, tt.env...))
			url := l.URL
			if tt.direct {
				url = ""
			}
			run := func(args ...string) (int, string, string) { return schedctl(t, l, url, l.OwnToken, args...) }
			script := filepath.Join(l.Work, "job.sh")
			harness.Must(t, os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH --job-name=seven -t 2\n#SBATCH -o out-%j\necho \"$NAME in $(pwd)\"\nexit 7\n"), 0o755))

			status, out, errOut := run("submit", "--wait", script, "--", "--export=NAME=ann")
			id := strings.TrimSpace(out)
			if status != 7 || !strings.HasSuffix(errOut, "job "+id+" FAILED, exit code 7\n") {
				t.Fatalf("submit: status %d, printed %q, %q", status, out, errOut)
			}
			text, err := os.ReadFile(filepath.Join(l.Work, "out-"+id))
			if harness.Must(t, err); string(text) != "ann in "+l.Work+"\n" {
				t.Errorf("the job printed %q", text)
			}
			if status, out, errOut = run("job", id); status != 0 || !strings.Contains(out, "Name:       seven\n") || !strings.Contains(out, "Outcome:    exit code 7\n") {
				t.Errorf("job: status %d, %s%s", status, out, errOut)
			}

			status, out, errOut = run("submit", script, "--", "-J", "held", "--hold")
			held := strings.TrimSpace(out)
			if status != 0 {
				t.Fatalf("submit: status %d, %s%s", status, out, errOut)
			}
			status, out, errOut = run("jobs", "--me", "--state", "PD")
			if lines := strings.Split(out, "\n"); status != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "JOBID  PARTITION") ||
				!strings.HasPrefix(lines[1], held+" ") || !strings.Contains(lines[1], " held ") || !strings.Contains(lines[1], " PENDING ") {
				t.Errorf("jobs: status %d, %s%s", status, out, errOut)
			}
			var document struct {
				Jobs []struct {
					ID   json.Number `json:"job_id"`
					Name string
				}
			}
			status, out, _ = run("jobs", "-a", "-o", "json")
			if err := json.Unmarshal([]byte(out), &document); err != nil || status != 0 || len(document.Jobs) != 2 {
				t.Errorf("JSON: status %d, %v\n%s", status, err, out)
			}
			for _, step := range []struct {
				args   string
				status int
				want   string // in the output
			}{
				{"ping", 0, l.Node + " primary UP "},
				{"show node " + l.Node, 0, "name=" + l.Node + "\n"},
				{"show job " + held, 0, "job_state=PENDING\n"},
				{"jobs --columns name,user --no-header --sort -jobid", 0, "held  " + l.Owner + "\n"},
				{"nodes --columns name,gpus " + l.Node, 0, l.Node},
				{"hold --me --dry-run", 0, "1 job would be held\n"},
				{"update " + held + " " + id + " --state PD -- --comment=changed --time=7", 0, "1 job updated\n"},
				{"job " + held, 0, "Comment:    changed\n"},
				{"cancel --me --state RUNNING", 0, "0 jobs cancelled\n"},
				{"cancel " + held + " --state RUNNING", 0, "0 jobs cancelled\n"},
				{"cancel " + held + " --user daemon", 0, "0 jobs cancelled\n"},
				{"cancel " + held + " --user nosuchuser", 5, ""}, // a misspelled user is not one without jobs
				{"jobs --me --columns state --no-header", 0, "PENDING\n"},
				{"cancel --me --name held", 0, "1 job cancelled\n"},
				{"release " + held, 1, "0 jobs released\n"},
			} {
				if status, out, errOut = run(strings.Fields(step.args)...); status != step.status || !strings.Contains(out, step.want) {
					t.Errorf("%s: status %d, %s%s", step.args, status, out, errOut)
				}
			}
			harness.Eventually(t, "both jobs are recorded", func() bool {
				_, out, _ := run("history", id, held, "--columns", "jobid,exit", "--no-header")
				return strings.Contains(out, "7\n") && strings.Contains(out, "\n"+held+" ")
			})
			if status, out, errOut = run("history", id, held, "--state", "FAILED", "--columns", "jobid", "--no-header"); status != 0 || out != id+"\n" {
				t.Errorf("history: status %d, %s%s", status, out, errOut)
			}
			if status, out, errOut = run("watch", held); status != 1 || !strings.Contains(out, "CANCELLED") {
				t.Errorf("watch: status %d, %s%s", status, out, errOut)
			}
			if status, _, errOut = run("cancel", held); status != 1 || !strings.Contains(errOut, "job "+held) || strings.Count(errOut, "has already ended") != 1 {
				t.Errorf("cancel an ended job: status %d, %s", status, errOut)
			}

			for _, args := range []string{"jobs --me --all", "nodes " + l.Node, "top --once", "history --me"} {
				status, out, errOut = run(append(strings.Fields(args), "--verbose")...)
				if status != 0 || out == "" || !strings.Contains(errOut, "?fields=") || strings.Contains(errOut, "note: ") || strings.Contains(errOut, l.OwnToken) {
					t.Errorf("%s --verbose: status %d, %s%s", args, status, out, errOut)
				}
			}
			if status, out, errOut = run("nodes"); status != 0 || !strings.HasPrefix(out, "NAME") || !strings.Contains(out, "IDLE") {
				t.Errorf("nodes: status %d, %s%s", status, out, errOut)
			}
			if status, out, errOut = run("partitions", "-o", "yaml"); status != 0 || !strings.HasPrefix(out, "partitions:\n- ") {
				t.Errorf("partitions: status %d, %s%s", status, out, errOut)
			}
			if status, out, errOut = run("top", "--once"); status != 0 || !strings.Contains(out, "Nodes 1: ") {
				t.Errorf("top: status %d, %s%s", status, out, errOut)
			}
			if _, out, _ = run("__complete", "job", ""); !strings.HasPrefix(out, id+"\tseven ") || !strings.Contains(out, "\n"+held+"\t") {
				t.Errorf("completion of jobs: %s", out)
			}
			_, out, _ = run("submit", "--wrap", "sleep 600", "--", "-J", "again", "-o", "/dev/null")
			again := strings.TrimSpace(out)
			harness.Eventually(t, "the job runs", func() bool {
				_, out, _ := run("jobs", "--columns", "state", "--no-header", "--name", "again")
				return out == "RUNNING\n"
			})
			wantStatus, wantText := 0, "1 job requeued\n"
			if tt.name == "oldest version" {
				wantStatus, wantText = 1, "needs version v0.0.45"
			}
			if status, out, errOut = run("requeue", "--me", "--hold"); status != wantStatus || !strings.Contains(out+errOut, wantText) {
				t.Errorf("requeue: status %d, %s%s", status, out, errOut)
			}
			run("cancel", again)
		})
	}
}

// TestSchedctlErrors checks the exit status and the error message of schedctl
// when a user makes a mistake.
func TestSchedctlErrors(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	script := filepath.Join(l.Work, "job.sh")
	harness.Must(t, os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH -p nowhere\n"), 0o755))
	for _, tt := range []struct {
		url, token, args string
		status           int
		wantErr          string
	}{
		{l.URL, l.OwnToken, "job 4711", 5, "error: job 4711 is unknown"},
		{l.URL, l.OwnToken, "cancel 4711", 5, "there is no job 4711"},
		{l.URL, l.OwnToken, "nodes nowhere", 5, "node nowhere is unknown"},
		{l.URL, l.OwnToken, "show node nowhere", 5, "hint: schedctl nodes lists the nodes"},
		{l.URL, harness.TamperSignature(l.OwnToken), "jobs", 4, "hint: the token is missing or not accepted"},
		{l.URL, "", "jobs", 4, "error: no token is set, and the server needs one"},
		{l.URL, l.OwnToken, "submit " + script, 1, "error: "},
		{strings.Replace(l.URL, "http", "https", 1), l.OwnToken, "jobs", 3, "use http:// instead of https://"},
		{l.URL + "/elsewhere", l.OwnToken, "jobs", 1, "serves none of the API versions"},
		{"unix:" + l.Work + "/none", "", "jobs", 3, "is the gateway running?"},
	} {
		status, out, errOut := schedctl(t, l, tt.url, tt.token, strings.Fields(tt.args)...)
		wantOut := ""
		if strings.HasPrefix(tt.args, "cancel") {
			wantOut = "0 jobs cancelled\n"
		}
		if status != tt.status || out != wantOut || !strings.Contains(errOut, tt.wantErr) || tt.token != "" && strings.Contains(errOut, tt.token) {
			t.Errorf("%s %s: status %d, printed %q, %s", tt.url, tt.args, status, out, errOut)
		}
	}
	switch log := l.Logged(); {
	case !strings.Contains(log, "msg=request"):
		t.Error("a word that must be in the log was not found")
	case strings.Contains(log, l.OwnToken):
		t.Error("the token is in the log")
	}
}

// TestSchedctlLocal checks that a local user needs no token on the gateway's
// UNIX socket, and that --me stands for the user who runs the command.
func TestSchedctlLocal(t *testing.T) {
	t.Parallel()
	u := harness.OrdinaryUser(t)
	var socket, program string
	harness.NewLab(t, func(l *harness.Lab) {
		harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755))
		harness.Must(t, os.Mkdir(filepath.Join(l.Dir, "rest"), 0o755))
		socket, program = filepath.Join(l.Dir, "rest", "sock"), filepath.Join(l.Dir, "rest", "schedctl")
		if os.Geteuid() == 0 {
			l.Restd.Args = []string{"-f", l.Conf(), "-u", u.Name, "-g", strconv.Itoa(int(u.GID)), l.Restd.Args[len(l.Restd.Args)-1]}
		}
		l.Restd.Args = append(l.Restd.Args, "unix:"+socket)
	})
	harness.Must(t, programtest.Copy(filepath.Join(harness.Bin, "schedctl"), program, 0o755))
	run := func(input string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"SCHED_URL=unix:" + socket}, strings.NewReader(input)
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{}}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	lines := strings.Fields(run("#!/bin/sh\n", "submit", "-", "--", "--hold"))
	id := lines[len(lines)-1] // after a warning that it is held
	if out := run("", "jobs", "--me"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "\n"+id+" ") || !strings.Contains(out, " "+u.Name+" ") {
		t.Errorf("jobs of %s: %s", u.Name, out)
	}
	if out := run("", "jobs", "--user", "daemon"); strings.Count(out, "\n") != 1 {
		t.Errorf("jobs of another user: %s", out)
	}
	run("", "cancel", "--me")
	if out := run("", "jobs"); strings.Count(out, "\n") != 1 {
		t.Errorf("jobs after they were cancelled: %s", out)
	}
}
