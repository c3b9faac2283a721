package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A limitCase is a limit that keeps a job from starting. The limit is that of a new
// QOS or of a new account, which no other case uses.
type limitCase struct {
	reason string
	limit  string // as sacctmgr sets it
	first  string // options of a job that runs, and uses some of the limit; "" for none
	job    string // options of the job that waits
}

var qosCases = []limitCase{
	{"QOSGrpCpuLimit", "GrpTRES=cpu=3", "-n2", "-n2"},
	{"QOSGrpJobsLimit", "GrpJobs=1", "-n1", ""},
	{"QOSGrpMemLimit", "GrpTRES=mem=70", "--mem=50", "--mem=30"},
	{"QOSGrpNodeLimit", "GrpTRES=node=0", "", ""},
	{"QOSGrpWallLimit", "GrpWall=0", "", ""},
	{"QOSGrpGRES", "GrpTRES=gres/gpu=1", "", "--gres=gpu:2"},
	{"QOSGrpBilling", "GrpTRES=billing=1", "", "-n2"},
	{"QOSGrpLicense", "GrpTRES=license/matlab=3", "-L matlab:2", "-L matlab:2"},
	{"QOSGrpCPUMinutesLimit", "GrpTRESMins=cpu=0", "", ""},
	{"QOSGrpMemoryMinutes", "GrpTRESMins=mem=0", "", ""},
	{"QOSGrpNodeMinutes", "GrpTRESMins=node=0", "", ""},
	{"QOSGrpGRESMinutes", "GrpTRESMins=gres/gpu=0", "", "--gres=gpu:1"},
	{"QOSGrpBillingMinutes", "GrpTRESMins=billing=0", "", ""},
	{"QOSGrpLicenseMinutes", "GrpTRESMins=license/matlab=0", "", "-L matlab:1"},
	{"QOSGrpCPURunMinutesLimit", "GrpTRESRunMins=cpu=601", "-t600", "-t10"},
	{"QOSGrpMemoryRunMinutes", "GrpTRESRunMins=mem=100", "", "-t20"},
	{"QOSGrpNodeRunMinutes", "GrpTRESRunMins=node=15", "", "-t20"},
	{"QOSGrpGRESRunMinutes", "GrpTRESRunMins=gres/gpu=15", "", "-t20 --gres=gpu:1"},
	{"QOSGrpBillingRunMinutes", "GrpTRESRunMins=billing=15", "", "-t20"},
	{"QOSGrpLicenseRunMinutes", "GrpTRESRunMins=license/matlab=15", "", "-t20 -L matlab:1"},
	{"QOSMaxCpuPerJobLimit", "MaxTRESPerJob=cpu=1", "", "-n3"},
	{"QOSMaxMemoryPerJob", "MaxTRESPerJob=mem=15", "", "--mem=20"},
	{"QOSMaxNodePerJobLimit", "MaxTRESPerJob=node=0", "", ""},
	{"QOSMaxGRESPerJob", "MaxTRESPerJob=gres/gpu=1", "", "--gres=gpu:2"},
	{"QOSMaxLicensePerJob", "MaxTRESPerJob=license/matlab=1", "", "-L matlab:2"},
	{"QOSMaxBillingPerJob", "MaxTRESPerJob=billing=1", "", "-n3"},
	{"QOSMaxCpuMinutesPerJobLimit", "MaxTRESMinsPerJob=cpu=15", "", "-t20"},
	{"QOSMaxMemoryMinutesPerJob", "MaxTRESMinsPerJob=mem=150", "", "-t20"},
	{"QOSMaxNodeMinutesPerJob", "MaxTRESMinsPerJob=node=15", "", "-t20"},
	{"QOSMaxGRESMinutesPerJob", "MaxTRESMinsPerJob=gres/gpu=15", "", "-t20 --gres=gpu:1"},
	{"QOSMaxLicenseMinutesPerJob", "MaxTRESMinsPerJob=license/matlab=15", "", "-t20 -L matlab:1"},
	{"QOSMaxBillingMinutesPerJob", "MaxTRESMinsPerJob=billing=15", "", "-t20"},
	{"QOSMaxWallDurationPerJobLimit", "MaxWall=15", "", "-t100"},
	{"QOSMaxCpuPerNode", "MaxTRESPerNode=cpu=1", "", "-n2"},
	{"QOSMaxMemoryPerNode", "MaxTRESPerNode=mem=15", "", "--mem=20"},
	{"QOSMaxGRESPerNode", "MaxTRESPerNode=gres/gpu=1", "", "--gres=gpu:2"},
	{"QOSMaxCpuPerUserLimit", "MaxTRESPerUser=cpu=3", "-n2", "-n2"},
	{"QOSMaxMemoryPerUser", "MaxTRESPerUser=mem=25", "--mem=20", "--mem=10"},
	{"QOSMaxNodePerUserLimit", "MaxTRESPerUser=node=0", "", ""},
	{"QOSMaxGRESPerUser", "MaxTRESPerUser=gres/gpu=1", "--gres=gpu:1", "--gres=gpu:1"},
	{"QOSMaxLicensePerUser", "MaxTRESPerUser=license/matlab=1", "", "-L matlab:2"},
	{"QOSMaxBillingPerUser", "MaxTRESPerUser=billing=1", "", "-n2"},
	{"QOSMaxJobsPerUserLimit", "MaxJobsPerUser=1", "-n1", ""},
	{"MaxCpuPerAccount", "MaxTRESPerAccount=cpu=3", "-n2", "-n2"},
	{"MaxMemoryPerAccount", "MaxTRESPerAccount=mem=15", "", "--mem=20"},
	{"MaxNodePerAccount", "MaxTRESPerAccount=node=0", "", ""},
	{"MaxGRESPerAccount", "MaxTRESPerAccount=gres/gpu=1", "", "--gres=gpu:2"},
	{"MaxLicensePerAccount", "MaxTRESPerAccount=license/matlab=1", "", "-L matlab:2"},
	{"MaxBillingPerAccount", "MaxTRESPerAccount=billing=1", "", "-n2"},
	{"MaxJobsPerAccount", "MaxJobsPerAccount=1", "-n1", ""},
	{"MaxCpuRunMinsPerAccount", "MaxTRESRunMinsPerAccount=cpu=601", "-t600", "-t10"},
	{"MaxMemoryRunMinsPerAccount", "MaxTRESRunMinsPerAccount=mem=150", "", "-t20"},
	{"MaxNodeRunMinsPerAccount", "MaxTRESRunMinsPerAccount=node=15", "", "-t20"},
	{"MaxGRESRunMinsPerAccount", "MaxTRESRunMinsPerAccount=gres/gpu=15", "", "-t20 --gres=gpu:1"},
	{"MaxLicenseRunMinsPerAccount", "MaxTRESRunMinsPerAccount=license/matlab=15", "", "-t20 -L matlab:1"},
	{"MaxBillingRunMinsPerAccount", "MaxTRESRunMinsPerAccount=billing=15", "", "-t20"},
	{"MaxCpuRunMinsPerUser", "MaxTRESRunMinsPerUser=cpu=601", "-t600", "-t10"},
	{"MaxMemoryRunMinsPerUser", "MaxTRESRunMinsPerUser=mem=150", "", "-t20"},
	{"MaxNodeRunMinsPerUser", "MaxTRESRunMinsPerUser=node=15", "", "-t20"},
	{"MaxGRESRunMinsPerUser", "MaxTRESRunMinsPerUser=gres/gpu=15", "", "-t20 --gres=gpu:1"},
	{"MaxLicenseRunMinsPerUser", "MaxTRESRunMinsPerUser=license/matlab=15", "", "-t20 -L matlab:1"},
	{"MaxBillingRunMinsPerUser", "MaxTRESRunMinsPerUser=billing=15", "", "-t20"},
	{"QOSMinCpuNotSatisfied", "MinTRESPerJob=cpu=4", "", "-n2"},
	{"QOSMinMemory", "MinTRESPerJob=mem=40", "", "--mem=20"},
	{"QOSMinGRES", "MinTRESPerJob=gres/gpu=2", "", "--gres=gpu:1"},
	{"QOSMinNode", "MinTRESPerJob=node=2", "", ""},
	{"QOSMinLicense", "MinTRESPerJob=license/matlab=2", "", "-L matlab:1"},
	{"QOSMinBilling", "MinTRESPerJob=billing=3", "", "-n2"},
}

var accountCases = []limitCase{
	{"AssocGrpCpuLimit", "GrpTRES=cpu=3", "-n2", "-n2"},
	{"AssocGrpJobsLimit", "GrpJobs=1", "-n1", ""},
	{"AssocGrpMemLimit", "GrpTRES=mem=15", "", "--mem=20"},
	{"AssocGrpNodeLimit", "GrpTRES=node=0", "", ""},
	{"AssocGrpWallLimit", "GrpWall=0", "", ""},
	{"AssocGrpGRES", "GrpTRES=gres/gpu=1", "", "--gres=gpu:2"},
	{"AssocGrpLicense", "GrpTRES=license/matlab=1", "", "-L matlab:2"},
	{"AssocGrpBilling", "GrpTRES=billing=1", "", "-n2"},
	{"AssocGrpCPUMinutesLimit", "GrpTRESMins=cpu=0", "", ""},
	{"AssocGrpMemMinutes", "GrpTRESMins=mem=0", "", ""},
	{"AssocGrpNodeMinutes", "GrpTRESMins=node=0", "", ""},
	{"AssocGrpGRESMinutes", "GrpTRESMins=gres/gpu=0", "", "--gres=gpu:1"},
	{"AssocGrpLicenseMinutes", "GrpTRESMins=license/matlab=0", "", "-L matlab:1"},
	{"AssocGrpBillingMinutes", "GrpTRESMins=billing=0", "", ""},
	{"AssocGrpCPURunMinutesLimit", "GrpTRESRunMins=cpu=601", "-t600", "-t10"},
	{"AssocGrpMemRunMinutes", "GrpTRESRunMins=mem=150", "", "-t20"},
	{"AssocGrpNodeRunMinutes", "GrpTRESRunMins=node=15", "", "-t20"},
	{"AssocGrpGRESRunMinutes", "GrpTRESRunMins=gres/gpu=15", "", "-t20 --gres=gpu:1"},
	{"AssocGrpLicenseRunMinutes", "GrpTRESRunMins=license/matlab=15", "", "-t20 -L matlab:1"},
	{"AssocGrpBillingRunMinutes", "GrpTRESRunMins=billing=15", "", "-t20"},
	{"AssocMaxJobsLimit", "MaxJobs=1", "-n1", ""},
	{"AssocMaxCpuPerJobLimit", "MaxTRESPerJob=cpu=1", "", "-n3"},
	{"AssocMaxMemPerJob", "MaxTRESPerJob=mem=15", "", "--mem=20"},
	{"AssocMaxNodePerJobLimit", "MaxTRESPerJob=node=0", "", ""},
	{"AssocMaxGRESPerJob", "MaxTRESPerJob=gres/gpu=1", "", "--gres=gpu:2"},
	{"AssocMaxLicensePerJob", "MaxTRESPerJob=license/matlab=1", "", "-L matlab:2"},
	{"AssocMaxBillingPerJob", "MaxTRESPerJob=billing=1", "", "-n3"},
	{"AssocMaxCpuPerNode", "MaxTRESPerNode=cpu=1", "", "-n2"},
	{"AssocMaxMemPerNode", "MaxTRESPerNode=mem=15", "", "--mem=20"},
	{"AssocMaxGRESPerNode", "MaxTRESPerNode=gres/gpu=1", "", "--gres=gpu:2"},
	{"AssocMaxCpuMinutesPerJobLimit", "MaxTRESMinsPerJob=cpu=15", "", "-t20"},
	{"AssocMaxMemMinutesPerJob", "MaxTRESMinsPerJob=mem=150", "", "-t20"},
	{"AssocMaxNodeMinutesPerJob", "MaxTRESMinsPerJob=node=15", "", "-t20"},
	{"AssocMaxGRESMinutesPerJob", "MaxTRESMinsPerJob=gres/gpu=15", "", "-t20 --gres=gpu:1"},
	{"AssocMaxLicenseMinutesPerJob", "MaxTRESMinsPerJob=license/matlab=15", "", "-t20 -L matlab:1"},
	{"AssocMaxBillingMinutesPerJob", "MaxTRESMinsPerJob=billing=15", "", "-t20"},
	{"AssocMaxWallDurationPerJobLimit", "MaxWall=15", "", "-t100"},
}

// An otherCase is a reason that is no limit of accounting.
type otherCase struct {
	reason string
	before []string // commands of root
	job    string   // options of the job; FIRST is a job that runs, and FAILED one that has failed
	after  []string // commands of root; JOB is the job
	names  []string // what the sentence names
}

const partition = "scontrol create PartitionName="

var otherCases = []otherCase{
	{"Dependency", nil, "-d afterok:FIRST", nil, []string{"job FIRST must end without an error"}},
	{"DependencyNeverSatisfied", nil, "-d afterok:FAILED", nil, []string{"job FAILED must end without an error"}},
	{"BeginTime", nil, "-b 2036-05-06T07:08:09", nil, []string{"2036-05-06 07:08:09 UTC"}},
	{"JobHeldUser", nil, "-H", nil, []string{"put on hold by its owner"}},
	{"JobHeldAdmin", nil, "-H", []string{"scontrol release JOB", "scontrol hold JOB"}, []string{"administrator"}},
	{"Licenses", nil, "-L fluent:4", nil, []string{"of 4 licenses of fluent, 1 is in use, and this job asks for 4"}},
	{"JobArrayTaskLimit", nil, "--array=1-3%1", nil, []string{"1 at a time"}},
	{"PartitionTimeLimit", []string{partition + "short Nodes=node1 MaxTime=30"}, "-p short -t 90", nil, []string{`A job in the partition "short" may run for at most 30 minutes, and this job asks for 1 hour 30 minutes.`}},
	{"PartitionNodeLimit", []string{partition + "few Nodes=node1,n[01-03] MaxNodes=2"}, "-p few -N3 -n3", nil, []string{`A job in the partition "few" may use at most 2 nodes, and this job asks for 3.`}},
	{"PartitionDown", []string{partition + "closed Nodes=node1 State=DOWN"}, "-p closed", nil, []string{`The partition "closed" is not starting jobs`}},
	{"PartitionInactive", []string{partition + "inactive Nodes=node1 State=DOWN"}, "-p inactive", []string{"scontrol update PartitionName=inactive State=INACTIVE"}, []string{`The partition "inactive" does not accept jobs`}},
	{"Reservation", []string{"scontrol create reservation=later starttime=2036-01-02T03:04:05 duration=60 users=alice nodes=node1"}, "--reservation=later", nil,
		[]string{"the reservation \"later\": it lasts from 2036-01-02 03:04:05 UTC to 2036-01-02 04:04:05 UTC, for alice"}},
	{"ReservationDeleted", []string{partition + "dead Nodes=n06", "scontrol create reservation=gone starttime=now duration=60 users=alice nodes=n06 flags=ignore_jobs"}, "-p dead --reservation=gone", []string{"scontrol update reservation=gone endtime=now+1seconds"}, []string{"The reservation of the job was deleted."}},
	{"ReqNodeNotAvail", nil, "-w n01 -p few", nil, []string{`n01 is down (the reason is "no-daemon")`}},
	{"QOSNotAllowed", []string{partition + "strict Nodes=node1 State=DOWN"}, "-p strict -q quick", []string{"scontrol update PartitionName=strict AllowQos=normal State=UP"}, []string{`The partition "strict" does not permit the QOS "quick".`}},
	{"InvalidQOS", []string{"sacctmgr -i -Q add qos withdrawn", "sacctmgr -i -Q modify user alice where account=physics set qos+=withdrawn"}, "-H -q withdrawn", []string{"sacctmgr -i -Q modify user alice where account=physics set qos-=withdrawn", "scontrol release JOB"}, []string{`The QOS "withdrawn"`}},
	{"MaxMemPerLimit", []string{partition + "lean Nodes=node1 State=DOWN"}, "-p lean --mem=3000", []string{"scontrol update PartitionName=lean MaxMemPerNode=1000 State=UP"}, []string{`A job in the partition "lean" may use at most 1000 MB of memory on each node, and this job asks for 3000 MB.`}},
	{"BadConstraints", []string{partition + "plain Nodes=node1 State=DOWN", "scontrol update NodeName=node1 AvailableFeatures=fast,ssd,rare ActiveFeatures=fast,ssd,rare"}, "-p plain -C rare", []string{"scontrol update NodeName=node1 ActiveFeatures=fast,ssd", "scontrol update NodeName=node1 AvailableFeatures=fast,ssd", "scontrol update PartitionName=plain State=UP"}, []string{"No nodes"}},
	{"QOSUsageThreshold", []string{"sacctmgr -i -Q add qos thrifty usagethreshold=100000 flags=EnforceUsageThreshold", "sacctmgr -i -Q modify user alice where account=physics set qos+=thrifty"}, "-q thrifty", nil, []string{"too much"}},
	{"Resources", []string{partition + "wide Nodes=node1"}, "-p wide --nice=5000 -n16", nil, []string{`number 1 of the 2 waiting jobs that you can see in the partition "wide"`}},
	{"Priority", nil, "-p wide --nice=5000 -n16", nil, []string{`number 2 of the 2 waiting jobs that you can see in the partition "wide"`}},
}

// An explained job is what an answer says about why a job waits.
type explainedJob struct {
	ID          uint64 `json:"job_id"`
	Reason      string `json:"state_reason"`
	State       []string
	Explanation *struct {
		Why, Change, About string
		Limit              *explainedLimit
		Place              *struct {
			Position, Waiting int
			Factors           map[string]float64
		}
	}
}

type explainedLimit struct {
	Name, Resource, Of, Whose, Unit string
	Allowed                         uint64
	Used, Requested                 *uint64
}

// TestReasons makes jobs wait for as many reasons as a small cluster can have. The
// explanation of each must have the numbers that Slurm's commands show.
func TestReasons(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("some options of its commands have other names")
	}
	m.changeConf(t, map[string]string{"SchedulerParameters": "default_queue_depth=1000,bf_max_job_test=1000,sched_interval=2", "EnforcePartLimits": "NO"})
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	r := &reasons{t: t, m: m, ids: map[string]string{}}
	r.makeLimits()
	r.submit()
	jobs, shown := r.await()
	for _, c := range append(slices.Clone(qosCases), accountCases...) {
		r.checkLimit(c, jobs[c.reason], shown)
	}
	for _, c := range otherCases {
		r.checkOther(c, jobs[c.reason])
	}
	r.checkPriority(jobs["Priority"])
	r.checkRequests()
	r.checkCommand(jobs["QOSMaxCpuPerUserLimit"])
	if file := os.Getenv("SLURM_SENTENCES"); file != "" {
		r.write(file, jobs)
	}
}

// reasons makes jobs wait.
type reasons struct {
	t   *testing.T
	m   *machine
	ids map[string]string // of the jobs that wait, by reason
}

// makeLimits makes the QOS and the accounts of the cases.
func (r *reasons) makeLimits() {
	var lines, names []string
	for i, c := range qosCases {
		names = append(names, fmt.Sprintf("q%d", i))
		lines = append(lines, fmt.Sprintf("add qos q%d set %s", i, c.limit))
	}
	for i, c := range accountCases {
		lines = append(lines, fmt.Sprintf("add account a%d parent=physics description=x organization=x %s", i, c.limit), fmt.Sprintf("add user alice account=a%d", i))
	}
	lines = append(lines, "modify user alice where account=physics set qos+="+strings.Join(names, ","))
	cmd := r.m.command(r.t.Context(), "slurm", "sacctmgr", "-i", "-Q")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\nquit\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("sacctmgr: %v\n%s", err, out)
	}
}

// submit submits the jobs of all cases with one script, because starting a command
// in the machine takes longer than the command.
func (r *reasons) submit() {
	const sbatch = "runuser -u alice -- sbatch --parsable -s -p debug -A physics -t 10 -n1 --mem=10 -o /dev/null --wrap 'sleep 3000' "
	var script strings.Builder
	fmt.Fprintf(&script, "set -e; cd /tmp; first=$(%s -L fluent:1); failed=$(%s -H)\n", sbatch, sbatch)
	fmt.Fprintf(&script, "runuser -u alice -- scancel $failed; jobs=$first\n")
	all := func(each func(c limitCase, options string)) {
		for i, c := range qosCases {
			each(c, fmt.Sprintf("-q q%d ", i))
		}
		for i, c := range accountCases {
			each(c, fmt.Sprintf("-A a%d ", i))
		}
	}
	all(func(c limitCase, options string) {
		if c.first != "" {
			fmt.Fprintf(&script, "jobs=$jobs,$(%s)\n", sbatch+options+c.first)
		}
	})
	// The first jobs must use their limits before the others are looked at.
	fmt.Fprintf(&script, "n=0; until [ -z \"$(squeue -h -j $jobs -t pending)\" ]; do n=$((n + 1)); [ $n -lt 300 ] || { squeue -j $jobs >&2; exit 1; }; sleep 0.2; done\n")
	all(func(c limitCase, options string) {
		fmt.Fprintf(&script, "echo %s $(%s)\n", c.reason, sbatch+options+c.job)
	})
	for _, c := range otherCases {
		for _, command := range c.before {
			fmt.Fprintf(&script, "%s >&2\n", command)
		}
		options := strings.NewReplacer("FIRST", "$first", "FAILED", "$failed").Replace(c.job)
		fmt.Fprintf(&script, "JOB=$(%s); echo %s $JOB\n", sbatch+options, c.reason)
		for _, command := range c.after {
			fmt.Fprintf(&script, "%s >&2 || echo failed: %q >&2\n", strings.ReplaceAll(command, "JOB", "$JOB"), command)
		}
	}
	fmt.Fprintf(&script, "echo FIRST $first; echo FAILED $failed\n")
	cmd := r.m.command(r.t.Context(), "root", "sh", "-c", script.String())
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if name, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			r.ids[name] = id
		}
	}
	if err != nil {
		r.t.Fatalf("submit: %v\n%s%s", err, out, problems.String())
	}
}

// await waits until each job waits for its reason. It returns the jobs, and the output
// of scontrol before and after the request for them.
func (r *reasons) await() (jobs map[string]explainedJob, shown []string) {
	show := func() string { return r.m.run(r.t, "root", "scontrol", "show", "assoc_mgr", "flags=assoc,qos") }
	var missing []string
	deadline := time.Now().Add(2 * time.Minute)
	for {
		shown, jobs = []string{show()}, map[string]explainedJob{}
		byID := map[string]explainedJob{}
		for _, j := range r.get("jobs") {
			byID[strconv.FormatUint(j.ID, 10)] = j
		}
		missing = nil
		for reason, id := range r.ids {
			if j := byID[id]; j.Reason == reason {
				jobs[reason] = j
			} else if reason != "FIRST" && reason != "FAILED" {
				missing = append(missing, fmt.Sprintf("%s: job %s has %s", reason, id, j.Reason))
			}
		}
		if shown = append(shown, show()); len(missing) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Second / 2)
	}
	slices.Sort(missing)
	for _, line := range missing {
		r.t.Error(line)
	}
	return jobs, shown
}

var limitPattern = regexp.MustCompile(`^(\w+)=(?:([a-z/]+)=)?(\d+)$`)

// scontrolNames are the names of limits in the output of scontrol, if they differ
// from those in sacctmgr's.
var scontrolNames = strings.NewReplacer("MaxWallDurationPerJob", "MaxWallPJ", "PerJob", "PJ", "PerNode", "PN", "PerUser", "PU", "PerAccount", "PA")

// shownLimits returns the limit l in the output of scontrol, and how much of it is
// used; "" if scontrol does not show that.
func shownLimits(text string, l *explainedLimit) (allowed, used string) {
	block := "QOS=" + strings.TrimPrefix(l.Of, "QOS ") + "("
	if account, ok := strings.CutPrefix(l.Of, "account "); ok {
		block = "ClusterName=lab Account=" + account + " UserName=" + strings.TrimPrefix(l.Whose, "user ")
	}
	_, text, _ = strings.Cut(text, "\n"+block)
	text, _, _ = strings.Cut(text, "\nQOS=")
	text, _, _ = strings.Cut(text, "\nClusterName=")
	pattern := `\b` + scontrolNames.Replace(l.Name) + `=(\d+)\b(?:\((\d+))?`
	if l.Resource != "" {
		pattern = `\b` + scontrolNames.Replace(l.Name) + `=\S*\b` + l.Resource + `=(\d+)M?\b(?:\((\d+))?`
	}
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// checkLimit compares a limit with what sacctmgr has set, and with what scontrol has
// shown before and after.
func (r *reasons) checkLimit(c limitCase, j explainedJob, shown []string) {
	r.t.Helper()
	if j.ID == 0 {
		return
	}
	l := j.Explanation.Limit
	if l == nil {
		r.t.Errorf("%s: no limit: %+v", c.reason, j.Explanation)
		return
	}
	fields := limitPattern.FindStringSubmatch(c.limit)
	if l.Name != strings.Replace(fields[1], "MaxWall", "MaxWallDurationPerJob", 1) || l.Resource != fields[2] || strconv.FormatUint(l.Allowed, 10) != fields[3] {
		r.t.Errorf("%s: %+v, want %s", c.reason, l, c.limit)
	}
	found := false
	for _, text := range shown {
		allowed, used := shownLimits(text, l)
		if allowed != fields[3] {
			r.t.Errorf("%s: scontrol shows %q of %s", c.reason, allowed, c.limit)
		}
		found = found || used == "" || l.Used == nil || used == strconv.FormatUint(*l.Used, 10)
	}
	if !found {
		r.t.Errorf("%s: %d used, which scontrol does not show", c.reason, *l.Used)
	}
	if c.first != "" && (l.Used == nil || *l.Used == 0) {
		r.t.Errorf("%s: nothing is used: %+v", c.reason, l)
	}
	// The words have the numbers, except memory in larger units and times in hours.
	numbers := []*uint64{&l.Allowed, l.Used}
	if fields[1] != "MaxWall" {
		numbers = append(numbers, l.Requested)
	}
	for _, n := range numbers {
		if n != nil && !strings.Contains(" "+j.Explanation.Why, fmt.Sprintf(" %d", *n)) {
			r.t.Errorf("%s: %q does not have %d", c.reason, j.Explanation.Why, *n)
		}
	}
}

// checkOther checks that the sentence has the numbers and names of a case.
func (r *reasons) checkOther(c otherCase, j explainedJob) {
	r.t.Helper()
	for _, name := range c.names {
		name = strings.NewReplacer("FIRST", r.ids["FIRST"], "FAILED", r.ids["FAILED"]).Replace(name)
		if j.ID != 0 && !strings.Contains(j.Explanation.Why, name) {
			r.t.Errorf("%s: %q does not say %q", c.reason, j.Explanation.Why, name)
		}
	}
}

// get requests jobs with explanations.
func (r *reasons) get(path string) []explainedJob {
	r.t.Helper()
	a, err := sendRequest(r.m.client(gatewaySocket), "GET", "/sched/"+watchedVersion+"/"+path+"?explain=true&fields=job_id,state_reason,job_state,explanation", "", "X-SLURM-USER-TOKEN: "+r.m.token)
	must(r.t, err)
	var body struct {
		Jobs     []explainedJob
		Warnings []json.RawMessage
	}
	if must(r.t, json.Unmarshal(a.body, &body)); a.status != http.StatusOK || len(body.Warnings) > 0 {
		r.t.Fatalf("%s: status %d: %s %s", path, a.status, body.Warnings, remarks(a.body))
	}
	return body.Jobs
}

// checkPriority compares the parts of a priority with those that sprio shows.
func (r *reasons) checkPriority(j explainedJob) {
	r.t.Helper()
	if j.ID == 0 {
		return
	}
	one := r.get(fmt.Sprintf("job/%d", j.ID))
	if len(one) != 1 || one[0].Explanation.Place == nil || one[0].Explanation.Place.Factors == nil {
		r.t.Fatalf("job %d has no parts of a priority: %+v", j.ID, one)
	}
	factors := one[0].Explanation.Place.Factors
	names := []string{"age", "fair_share", "job_size", "partition", "qos", "nice"}
	for i, text := range strings.Fields(r.m.run(r.t, "root", "sprio", "-h", "-j", fmt.Sprint(j.ID), "-o", "%A %F %J %P %Q %N")) {
		if n, err := strconv.ParseFloat(text, 64); err != nil || factors[names[i]] < n-2 || factors[names[i]] > n+2 {
			r.t.Errorf("%s is %v, and sprio shows %s", names[i], factors[names[i]], text)
		}
	}
}

// checkRequests checks that a list with explanations for all reasons costs one request
// to the controller of each kind.
func (r *reasons) checkRequests() {
	r.t.Helper()
	counts := func() map[string]int {
		m := map[string]int{}
		for _, line := range regexp.MustCompile(`REQUEST_(\w+) *\( *\d+\) *count:(\d+)`).FindAllStringSubmatch(r.m.run(r.t, "root", "sdiag"), -1) {
			n, err := strconv.Atoi(line[2])
			must(r.t, err)
			m[line[1]] = n
		}
		return m
	}
	before := counts()
	r.get("jobs")
	after := counts()
	for _, name := range []string{"JOB_INFO", "PARTITION_INFO", "ASSOC_MGR_INFO", "LICENSE_INFO", "NODE_INFO", "RESERVATION_INFO"} {
		if n := after[name] - before[name]; n != 1 {
			r.t.Errorf("%d requests REQUEST_%s for a list", n, name)
		}
	}
	if after["PRIORITY_FACTORS"] != before["PRIORITY_FACTORS"] {
		r.t.Error("a list requests the parts of priorities")
	}
}

// checkCommand checks that schedctl prints the explanation.
func (r *reasons) checkCommand(j explainedJob) {
	r.t.Helper()
	must(r.t, r.m.install("schedctl"))
	out := r.m.run(r.t, "root", "env", "SLURM_JWT="+r.m.token, "/opt/gateway/schedctl", "why", "--url=unix:"+gatewaySocket, fmt.Sprint(j.ID))
	if !strings.Contains(out, j.Explanation.Why) {
		r.t.Errorf("schedctl prints %q, want %q", out, j.Explanation.Why)
	}
}

// write writes all explanations into a file.
func (r *reasons) write(file string, jobs map[string]explainedJob) {
	var lines []string
	for reason, j := range jobs {
		lines = append(lines, fmt.Sprintf("%s\n\t%s\n\t%s\n", reason, j.Explanation.Why, j.Explanation.Change))
	}
	slices.Sort(lines)
	must(r.t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644))
}
