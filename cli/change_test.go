package cli

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestCancelCommand checks which jobs are cancelled.
func TestCancelCommand(t *testing.T) {
	for _, tt := range []struct {
		jobs, args string
		status     int
		want       string
		wantErr    string
		wantOut    string
	}{
		{"", "cancel 3 12", 0, "3 12", "", "2 jobs cancelled\n"},
		{"", "cancel 3 3", 0, "3", "", "1 job cancelled\n"},
		{"", "cancel --me", 0, "12", "", "1 job cancelled\n"},
		{"", "cancel -u bob -t PD", 0, "3", "", "1 job cancelled\n"},
		{"", "cancel --signal USR1 3", 0, "3signal=USR1", "", "1 job signalled\n"},
		{"", "cancel -p gpu", 0, "3 12", "", "2 jobs cancelled\n"},
		{"", "cancel 99 3", statusUnknown, "3", "job 99: no such thing", "1 job cancelled\n"},
		{"", "cancel 3 12 -u bob", 0, "3", "warning: job 12 was skipped", "1 job cancelled\n"},
		{"", "cancel 12 --state PENDING", 0, "", "warning: job 12 was skipped", "0 jobs cancelled\n"},
		{"", "cancel 12 12 --signal USR1 --me", 0, "12signal=USR1", "", "1 job signalled\n"},
		{"", "cancel 99 3 -u bob", statusUnknown, "3", "job 99 is unknown", "1 job cancelled\n"},
		{"", "cancel 19 -u bob", 0, "19_4", "", "1 job cancelled\n"},
		{"", "cancel 19_4 20 -u bob", 0, "19_4", "", "1 job cancelled\n"},
		{arrayList, "cancel --me", 0, "30", "", "1 job cancelled\n"},
		{arrayList, "cancel --me -t PD", 0, "30_5 30_6", "", "2 jobs cancelled\n"},
		{arrayList, "cancel --me -t R", 0, "30_2", "", "1 job cancelled\n"},
		{arrayList, "cancel 30 -t PD", 0, "30_5 30_6", "", "2 jobs cancelled\n"},
		{arrayList, "cancel 30 --me", 0, "30", "", "1 job cancelled\n"},
		{arrayList, "cancel 30_6 30_2 -t PD", 0, "30_6", "warning: job 30_2 was skipped", "1 job cancelled\n"},
		{arrayList, "cancel 30_7 --me", statusUnknown, "", "job 30_7 is unknown", "0 jobs cancelled\n"},
		{arrayList, "cancel -t PD -u bob", 0, "40", "", "1 job cancelled\n"},
		{arrayList, "cancel -t PD -u carol", statusFailed, "", "list of tasks is incomplete", "0 jobs cancelled\n"},
		{"", "cancel --me --dry-run", 0, "", "", "JOBID  PARTITION  NAME          USER  STATE\n12     gpu        train\\x1b[2J  ann   RUNNING\n1 job would be cancelled\n"},
		{"", "cancel 4 12 --dry-run", 0, "", "warning: job 4 was skipped: it has ended", "JOBID  PARTITION  NAME          USER  STATE\n12     gpu        train\\x1b[2J  ann   RUNNING\n1 job would be cancelled\n"},
		{"", "cancel 99 --dry-run", statusUnknown, "", "job 99 is unknown", "0 jobs would be cancelled\n"},
		{"", "cancel --signal USR1 12 -t PD --dry-run", 0, "", "it does not match the options", "0 jobs would be signalled\n"},
		{arrayList, "cancel 30_[5-6%2] -t PD", 0, "30_5 30_6", "", "2 jobs cancelled\n"},
		{arrayList, "cancel 30 -t PD --dry-run", 0, "", "", "JOBID  PARTITION  NAME  USER  STATE\n30_5   -          -     ann   PENDING\n30_6   -          -     ann   PENDING\n2 jobs would be cancelled\n"},
	} {
		g := &gateway{jobs: tt.jobs}
		status, out, errOut := runCommand(t, g, strings.Fields(tt.args)...)
		if status != tt.status || out != tt.wantOut || strings.Join(g.cancelled, " ") != tt.want || !strings.Contains(errOut, tt.wantErr) || tt.wantErr == "" && errOut != "" {
			t.Errorf("%s: status %d, %v, %s%s", tt.args, status, g.cancelled, out, errOut)
		}
	}
}

// TestLostServer checks that a command stops when requests for other jobs would
// fail as well, and that it prints how many jobs it has changed until then.
func TestLostServer(t *testing.T) {
	for _, tt := range []struct {
		lost    int // number of requests until the server fails
		wantOut string
	}{{0, ""}, {1, "1 job cancelled\n"}} {
		g := &gateway{capacity: tt.lost, limited: true}
		status, out, errOut := runCommand(t, g, "cancel", "3", "12", "40", "99")
		if status != statusUnavailable || out != tt.wantOut || strings.Count(errOut, "error: ") != 1 || len(g.cancelled) != tt.lost {
			t.Errorf("%d: status %d, %v, %s%s", tt.lost, status, g.cancelled, out, errOut)
		}
	}
}

// TestStartedMeanwhile checks that a job is not changed if it has started since
// the server listed it as pending.
func TestStartedMeanwhile(t *testing.T) {
	for _, tt := range []struct{ jobs, started, args, want, wantOut string }{
		{"", "3", "cancel -u bob -t PD", "", "0 jobs cancelled\n"},
		{"", "3", "cancel 3 -t PD", "", "0 jobs cancelled\n"},
		{"", "3", "cancel 3 -u bob", "3", "1 job cancelled\n"}, // the user has named no state
		{"", "3", "cancel 3 -t PD,R", "3", "1 job cancelled\n"},
		{arrayList, "30_5", "cancel 30 -t PD", "30_6", "1 job cancelled\n"},
	} {
		g := &gateway{jobs: tt.jobs, started: tt.started}
		status, out, errOut := runCommand(t, g, strings.Fields(tt.args)...)
		wantErr := ""
		if !slices.Contains(strings.Fields(tt.want), tt.started) {
			wantErr = "warning: job " + tt.started + " was skipped: its state has changed\n"
		}
		if status != 0 || strings.Join(g.cancelled, " ") != tt.want || out != tt.wantOut || errOut != wantErr {
			t.Errorf("%s: status %d, %v, %s%s", tt.args, status, g.cancelled, out, errOut)
		}
	}
	g := &gateway{started: "3"}
	if _, out, _ := runCommand(t, g, "hold", "-u", "bob"); out != "0 jobs held\n" || len(g.changed) > 0 {
		t.Errorf("hold: %v, %s", g.changed, out)
	}
}

// TestChanges checks which jobs the other commands change, and what they send.
// Ids and options together must never select more jobs than each of them alone.
func TestChanges(t *testing.T) {
	const held, released = `{"hold":true}`, `{"hold":false}`
	for _, tt := range []struct {
		jobs, args string
		status     int
		want       string
		wantOut    string
		wantErr    string
	}{
		{"", "hold 3", 0, "3" + held, "1 job held\n", ""},
		{"", "hold 3 12 --user bob", 0, "3" + held, "1 job held\n", "warning: job 12 was skipped: it does not match the options"},
		{"", "hold 12 --me", 0, "", "0 jobs held\n", "warning: job 12 was skipped: it does not match the options"}, // it is running
		{"", "hold -u ann,bob", 0, "3" + held, "1 job held\n", ""},
		{"", "hold -u ann,bob -t R,PD", 0, "3" + held + " 12" + held, "2 jobs held\n", ""},
		{"", "release 3 99", statusUnknown, "3" + released, "1 job released\n", "job 99: no such thing"},
		{"", "release -u bob --dry-run", 0, "", "JOBID  PARTITION  NAME  USER  STATE\n3      cpu,gpu    wait  bob   PENDING\n1 job would be released\n", ""},
		{arrayList, "hold 30 -t PD", 0, "30_5" + held + " 30_6" + held, "2 jobs held\n", ""},
		{arrayList, "hold 30", statusFailed, "", "0 jobs held\n", "job 30: 30_[5]: Job/step already completing"},
		{"", "update 3 -- --time=90 -p gpu", 0, `3{"partition":"gpu","time_limit":{"number":90,"set":true}}`, "1 job updated\n", ""},
		{"", "update --me -- --nice=5", 0, `12{"nice":5}`, "1 job updated\n", ""},
		{"", "update 3 --me -- --nice=5", 0, "", "0 jobs updated\n", "warning: job 3 was skipped"},
		{"", "update 3 --nice=5", statusUsage, "", "", "unknown flag"},
		{"", "update 3", statusUsage, "", "", "no new value is given"},
		{"", "update 3 --", statusUsage, "", "", "no new value is given"},
		{"", "update -- --nice=5", statusUsage, "", "", "no job is selected"},
		{"", "update 3 -- --comment=", statusUsage, "", "", "--comment needs a value"},
		{"", "update 3 -- --export=ALL", statusUsage, "", "", "can't be changed after the submission"},
		{"", "update 3 -- 12", statusUsage, "", "", "unexpected argument"},
		{"", "requeue 12", statusFailed, "", "0 jobs requeued\n", "needs version v0.0.45"},
		{"", "hold", statusUsage, "", "", "no job is selected"},
		{"", "release", statusUsage, "", "", "no job is selected"},
		{"", "requeue", statusUsage, "", "", "no job is selected"},
		{"", "hold x", statusUsage, "", "", "not a job id"},
		{"", "hold 3 -t bogus", statusUsage, "", "", "unknown state"},
	} {
		g := &gateway{jobs: tt.jobs}
		status, out, errOut := runCommand(t, g, strings.Fields(tt.args)...)
		if status != tt.status || strings.Join(g.changed, " ") != tt.want || !strings.Contains(errOut, tt.wantErr) || tt.wantErr == "" && errOut != "" {
			t.Errorf("%s: status %d, %v, %s", tt.args, status, g.changed, errOut)
		}
		if diff := gocmp.Diff(tt.wantOut, out); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.args, diff)
		}
	}
	for _, verb := range []string{"hold", "release", "requeue", "update"} {
		for _, args := range [][]string{{"--user", ""}, {"--state", "", "3"}, {"3", ""}, {"-w", "n1,", "3"}, {"-p", " ", "3"}} {
			args = append([]string{verb}, args...)
			if verb == "update" {
				args = append(args, "--", "--nice=5")
			}
			g := &gateway{}
			if status, out, errOut := runCommand(t, g, args...); status != statusUsage || out != "" || !strings.Contains(errOut, "empty") || len(g.changed) != 0 {
				t.Errorf("%q: status %d, %v, %s%s", args, status, g.changed, out, errOut)
			}
		}
	}
}
