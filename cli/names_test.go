package cli

import (
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestMisspelledNames checks that a misspelled user, account, partition or node is
// refused, with the near name, and that nothing is changed then. One without jobs is not
// unknown.
func TestMisspelledNames(t *testing.T) {
	for _, tt := range []struct {
		args   string
		status int
		want   string // on standard error
	}{
		{"jobs -u carol", 0, ""},
		{"jobs -u root", 0, ""}, // a user of this machine without an accounting record
		{"jobs -u carl", 5, "error: user carl is unknown\nhint: did you mean carol?\n"},
		{"jobs -u nobodyx -o json", 5, "error: user nobodyx is unknown\nhint: neither this machine nor the accounting records have this user\n"},
		{"jobs -u ann,carl", 5, "error: user carl is unknown\nhint: did you mean carol?\n"},
		{"jobs -p cpuu", 5, "error: partition cpuu is unknown\nhint: did you mean cpu?\n"},
		{"jobs -p gpu,zzzzzz", 5, "error: partition zzzzzz is unknown\nhint: schedctl partitions lists the partitions\n"},
		{"jobs -p cpu -t S", 0, ""},
		{"jobs -t pendng", 2, "error: --state pendng: unknown state\nhint: did you mean PENDING?"},
		{"jobs --stat R", 2, "error: jobs: unknown flag: --stat\nhint: did you mean --state? See "},
		{"submit -n 4 job.sh", 2, "error: submit: unknown shorthand flag: 'n' in -n\nhint: options of sbatch are put after --: schedctl submit [flags] {FILE"},
		{"submit --time=4 job.sh", 2, "hint: options of sbatch are put after --: schedctl submit "},
		{"update 12 --nice=4", 2, "hint: options of sbatch are put after --: schedctl update [flags] [ID...] -- SBATCH-OPTION...\n"},
		{"submit --dry-rum job.sh", 2, "hint: did you mean --dry-run? See "},
		{"submit -o out.log job.sh", 2, "hint: use table, json or yaml; the file for the job's output is an option of sbatch, after --\n"},
		{"jobs -o x", 2, "hint: use table, json, yaml or wide\n"},
		{"history -u carl", 5, "hint: did you mean carol?\n"},
		{"cancel -u carl", 5, "hint: did you mean carol?\n"},
		{"cancel -u ann,carl", 5, "hint: did you mean carol?\n"},
		{"cancel -p gpux", 5, "error: partition gpux is unknown"},
		{"jobs -A physcs", 5, "error: account physcs is unknown\nhint: did you mean physics?\n"},
		{"jobs -A PHYSICS", 0, ""}, // Slurm ignores the case
		{"jobs -A zzzzzz", 5, "error: account zzzzzz is unknown\nhint: the accounting records have no such entry, or you may not see it\n"},
		{"jobs -A physics", 0, ""}, // has no jobs
		{"jobs -A a,b", 0, ""},     // the jobs are in these accounts, which are not in the list of accounts
		{"jobs -w node9,node8", 5, "error: nodes node[9,8] are unknown\nhint: schedctl nodes lists the nodes\n"},
		{"jobs -w node[2-9]", 0, ""}, // one of them exists
		{"jobs -w node2", 0, ""},
		{"cancel -A physcs", 5, "hint: did you mean physics?\n"},
		{"watch -A physcs", 5, "error: watch jobs: account physcs is unknown\nhint: did you mean physics?\n"},
		{"top --once -A physcs", 5, "hint: did you mean physics?\n"},
		{"top --once -u ann -p cpu", 0, ""},
		{"history -A physcs -p gpuu", 5, "error: partition gpuu is unknown\naccount physcs is unknown\n"},
		{"history -A a -p cpu -u ann", 0, ""},
		{"nodes -p gpuu", 5, "error: partition gpuu is unknown"},
		{"nodes -p gpu", 0, ""}, // a node has it
		{"shares -u carl,ann -o csv", 5, "error: user carl is unknown\nhint: did you mean carol?\n"},
		{"shares -A physcs", 5, "hint: did you mean physics?\n"},
		{"shares -A ROOT -u ann", 0, ""},
		{"shares -A root -u ann", 0, ""},
	} {
		g := &gateway{}
		status, out, errOut := runCommand(t, g, strings.Fields(tt.args)...)
		if tt.status == 5 && strings.HasPrefix(tt.args, "jobs") && strings.Contains(tt.args, "zz") && !strings.Contains(tt.args, "gpu") && out != "" {
			t.Errorf("%s: an empty table: %s", tt.args, out)
		}
		if status != tt.status || !strings.HasPrefix(errOut, tt.want) && !strings.Contains(errOut, tt.want) || (tt.want == "") != (errOut == "") || len(g.cancelled) > 0 {
			t.Errorf("%s: status %d, %q, cancelled %q; want %d, %q", tt.args, status, errOut, g.cancelled, tt.status, tt.want)
		}
	}
}

// TestShowOthers checks the commands that show objects of other kinds.
func TestShowOthers(t *testing.T) {
	for args, want := range map[string]string{
		"show reservation":    "NAME   START                END  NODES  USERS  ACCOUNTS  FLAGS\nmaint  " + time.Unix(0, 0).Format("2006-01-02T15:04:05") + "  -    n1     root   -         -\n",
		"show share ann":      "name=ann\nparent=a\ntype=USER\nshares=3\nfairshare.factor=0.8333333333333334\n",
		"show shares":         "NAME  TYPE         PARENT  SHARES  NORMSHARES  USAGE  EFFECTIVE  FACTOR\nroot  ASSOCIATION  -       -       0.000000    -      1.000000   -\nann   USER         a       3       -           -      -          0.833333\n",
		"show qos":            "NAME    PRIORITY  LIMIT    FLAGS  DESCRIPTION\nnormal  7         1:30:00  -      the_usual_one\n",
		"show partition cpu":  "name=cpu\npartition.state=UP\nnodes.configured=node[1-2]\nnodes.total=2\ncpus.total=72\nmaximums.time.set=true\nmaximums.time.number=2880\n",
		"show partition gone": "error: partition gone is unknown\nhint: schedctl show partition lists them\n",
	} {
		status, out, errOut := runCommand(t, &gateway{}, strings.Fields(args)...)
		if out+errOut != want || (status == 0) != (errOut == "") {
			t.Errorf("%s: status %d\n%s%s\nwant\n%s", args, status, out, errOut, want)
		}
	}
}

// TestDrain checks the requests of drain and resume.
func TestDrain(t *testing.T) {
	for _, tt := range []struct {
		args    []string
		changed []string
		want    string
		status  int
	}{
		{[]string{"drain", "n[1-2]", "--reason", "new disk"}, []string{"node/n1", `{"reason":"new disk","state":["DRAIN"]}`, "node/n2", `{"reason":"new disk","state":["DRAIN"]}`}, "2 nodes drained\n", 0},
		{[]string{"resume", "n1"}, []string{"node/n1", `{"state":["RESUME"]}`}, "1 node resumed\n", 0},
		{[]string{"drain", "n1"}, nil, "error: drain: no reason is given\nhint: give one with --reason, for users and other administrators\n", 2},
		{[]string{"resume", "n[3-4]"}, nil, "0 nodes resumed\nerror: node n3: you are not allowed to change it\nnode n4: Invalid user id\nhint: \n", 4},
		{[]string{"drain"}, nil, "error: drain: no node is named\nhint: see schedctl drain --help\n", 2},
	} {
		g := &gateway{}
		status, out, errOut := runCommand(t, g, tt.args...)
		if diff := gocmp.Diff(tt.changed, g.changed); diff != "" || out+errOut != tt.want || status != tt.status {
			t.Errorf("%q: status %d, %s%s\n%s", tt.args, status, out, errOut, diff)
		}
	}
}
