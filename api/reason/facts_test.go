package reason

import (
	"strings"
	"testing"

	"schedrestd/model"
)

// numbered returns the number of a reason.
func numbered(t *testing.T, name string) uint32 {
	t.Helper()
	for n, known := range Names {
		if known == name {
			return uint32(n)
		}
	}
	t.Fatalf("no reason %s", name)
	return 0
}

// everything returns facts in which each limit of the QOS, the association and the
// partition is set and exhausted.
func everything() *Facts {
	tres := []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "gres/gpu", "license/matlab", "bb/fast"}
	limits := make([]model.Opt[uint64], len(tres))
	used := make([]uint64, len(tres))
	for i := range tres {
		limits[i], used[i] = model.Some(uint64(101)), 71
	}
	seconds := make([]float64, len(tres))
	run := make([]uint64, len(tres))
	for i := range tres {
		seconds[i], run[i] = 71*60, 71*60
	}
	n := model.Some[uint32](101)
	mine := []model.UsedLimits{{UserID: 7, Account: "physics", Jobs: 71, SubmitJobs: 71, TRES: used, TRESRunSeconds: run}}
	return &Facts{
		TRES: tres, User: func(uint32) string { return "ann" },
		Associations: map[uint32]*model.AssocLimits{3: {
			Association: model.Association{ID: 3, Account: "physics", User: "ann", ParentID: 3, GrpJobs: n, GrpSubmitJobs: n, GrpWall: n, MaxJobs: n, MaxSubmitJobs: n, MaxWallPJ: n}, // its own parent
			Usage:       model.AssocUsage{TRES: used, TRESRunSeconds: run, TRESSeconds: seconds, Jobs: 71, SubmitJobs: 71, Wall: 71 * 60},
			TRES:        limits, TRESMinutes: limits, TRESRunMinutes: limits, MaxTRES: limits, MaxTRESPerNode: limits, MaxTRESMinutes: limits,
		}},
		QOS: map[string]*model.QOSLimits{"normal": {
			QOS:   model.QOS{Name: "normal", LimitFactor: model.FloatInfinite, GrpJobs: n, GrpSubmitJobs: n, GrpWall: n, MaxJobsPU: n, MaxJobsPA: n, MaxSubmitJobsPU: n, MaxSubmitJobsPA: n, MaxWallPJ: n},
			Usage: model.QOSUsage{TRES: used, TRESRunSeconds: run, TRESSeconds: seconds, Jobs: 71, SubmitJobs: 71, Wall: 71 * 60, Users: mine, Accounts: mine},
			TRES:  limits, TRESMinutes: limits, TRESRunMinutes: limits, MaxTRES: limits, MaxTRESPerNode: limits, MaxTRESMinutes: limits, MaxTRESPerUser: limits, MaxTRESPerAcct: limits,
			RunMinsPerUser: limits, RunMinsPerAcct: limits, MinTRES: limits,
		}},
	}
}

// TestEachLimit checks that the explanation of each reason that is a limit has the
// numbers, for a job that asks for 31 of everything.
func TestEachLimit(t *testing.T) {
	asked := "cpu=31,mem=31M,energy=31,node=31,billing=31,fs/disk=31,gres/gpu=31,license/matlab=31,bb/fast=31"
	count := 0
	for n, name := range Names {
		if limitName.FindString(name) == "" {
			continue
		}
		count++
		for _, f := range []*Facts{everything(), {}} {
			j := &model.Job{StateReason: uint32(n), AssocID: 3, QOS: "normal", Account: "physics", UserID: 7, TRESReq: asked, TimeLimit: model.Some[uint32](131)}
			e := f.ExplainJob(j)
			general, _ := Explain(name)
			if f.TRES == nil {
				if e.Why != general.Why || e.Change != general.Change || e.Limit != nil {
					t.Errorf("%s without facts: %+v", name, e)
				}
				continue
			}
			if e.Limit == nil || e.Limit.Allowed != 101 || e.Why == general.Why || !strings.Contains(e.Why, "101") && !strings.Contains(e.Why, "1 hour 41 minutes") || strings.Contains(e.Why, "%!") {
				t.Errorf("%s: %q, %+v", name, e.Why, e.Limit)
				continue
			}
			if e.Limit.Used.Set && e.Limit.Used.Number != 71 {
				t.Errorf("%s: %+v", name, e.Limit)
			}
			if e.Limit.Resource != "" && e.Limit.Requested.Number == 0 {
				t.Errorf("%s: nothing is requested: %+v", name, e.Limit)
			}
			if testing.Verbose() {
				t.Logf("%s: %s %s", name, e.Why, e.Change)
			}
		}
	}
	if count < 150 {
		t.Errorf("%d limits", count)
	}
}

// TestWhichLimit checks which of several limits with the same name is shown.
func TestWhichLimit(t *testing.T) {
	cpu := func(n uint64) []model.Opt[uint64] { return []model.Opt[uint64]{model.Some(n)} }
	none := []model.Opt[uint64]{model.Infinite[uint64]()}
	used := func(n uint64) model.AssocUsage { return model.AssocUsage{TRES: []uint64{n}} }
	assoc := func(id, parent uint32, account, user string) model.Association {
		return model.Association{ID: id, ParentID: parent, Account: account, User: user}
	}
	perUser := func(name string, limit []model.Opt[uint64], flags uint32) *model.QOSLimits {
		return &model.QOSLimits{QOS: model.QOS{Name: name, Flags: flags, LimitFactor: 2}, MaxTRESPerUser: limit}
	}
	for _, tt := range []struct {
		name, reason string
		facts        Facts
		of, whose    string
		allowed      uint64
	}{
		{"the exhausted one of an account above", "AssocGrpCpuLimit", Facts{Associations: map[uint32]*model.AssocLimits{
			1: {Association: assoc(1, 0, "root", ""), TRES: cpu(5), Usage: used(5)},
			2: {Association: assoc(2, 1, "physics", ""), TRES: none, Usage: used(4)},
			3: {Association: assoc(3, 2, "physics", "ann"), TRES: cpu(9), Usage: used(4)}}}, "account root", "", 5},
		{"none is exhausted", "AssocGrpCpuLimit", Facts{Associations: map[uint32]*model.AssocLimits{
			2: {Association: assoc(2, 1, "physics", ""), TRES: cpu(50), Usage: used(4)},
			3: {Association: assoc(3, 2, "physics", "ann"), TRES: cpu(9), Usage: used(4)}}}, "account physics", "user ann", 9},
		{"with the factor of the QOS", "AssocGrpCpuLimit", Facts{Associations: map[uint32]*model.AssocLimits{3: {Association: assoc(3, 0, "physics", "ann"), TRES: cpu(2), Usage: used(4)}},
			QOS: map[string]*model.QOSLimits{"own": perUser("own", none, 0)}}, "account physics", "user ann", 4},
		{"the QOS of the partition", "QOSMaxCpuPerUserLimit", Facts{QOS: map[string]*model.QOSLimits{"own": perUser("own", cpu(1), 0), "its": perUser("its", cpu(9), 0)},
			Partitions: map[string]*model.Partition{"p": {Name: "p", QOS: "its"}}}, "QOS its", "user ann", 9},
		{"the job's QOS comes first", "QOSMaxCpuPerUserLimit", Facts{QOS: map[string]*model.QOSLimits{"own": perUser("own", cpu(1), overPartitionQOS), "its": perUser("its", cpu(9), 0)},
			Partitions: map[string]*model.Partition{"p": {Name: "p", QOS: "its"}}}, "QOS own", "user ann", 1},
		{"only the job's QOS has one", "QOSMaxCpuPerUserLimit", Facts{QOS: map[string]*model.QOSLimits{"own": perUser("own", cpu(1), 0), "its": perUser("its", none, 0)},
			Partitions: map[string]*model.Partition{"p": {Name: "p", QOS: "its"}}}, "QOS own", "user ann", 1},
		{"unlimited", "QOSMaxCpuPerUserLimit", Facts{QOS: map[string]*model.QOSLimits{"own": perUser("own", none, 0)}}, "", "", 0},
		{"unknown association", "AssocGrpCpuLimit", Facts{}, "", "", 0},
	} {
		tt.facts.TRES = []string{"cpu"}
		e := tt.facts.ExplainJob(&model.Job{StateReason: numbered(t, tt.reason), AssocID: 3, QOS: "own", Partition: "p", UserName: "ann", TRESReq: "cpu=1"})
		switch l := e.Limit; {
		case l == nil:
			if tt.of != "" {
				t.Errorf("%s: no limit", tt.name)
			}
		case l.Of != tt.of || l.Whose != tt.whose || l.Allowed != tt.allowed || e.About != tt.of:
			t.Errorf("%s: %+v, about %q", tt.name, l, e.About)
		}
	}
}

// TestSentences checks sentences that depend on the record, or on how the numbers
// compare.
func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		reason string
		job    model.Job
		facts  Facts
		want   string
	}{
		{"Dependency", model.Job{Dependency: "afterok:7(unfulfilled),afterany:8_*(unfulfilled):9(fulfilled)"}, Facts{}, "The job waits for other jobs: job 7 must end without an error and job 8 must end."},
		{"Dependency", model.Job{Dependency: "after:7+90(unfulfilled)?afternotok:8(unfulfilled)"}, Facts{}, "The job waits for other jobs: job 7 must begin 1 hour 30 minutes before or job 8 must end with an error."},
		{"Dependency", model.Job{Dependency: "newkind:7(unfulfilled)"}, Facts{}, "The job waits for other jobs: newkind:7(unfulfilled)."},
		{"DependencyNeverSatisfied", model.Job{Dependency: "afterok:7(failed)"}, Facts{}, "it will never start: job 7 must end without an error, but it did not."},
		{"Priority", model.Job{StepID: model.StepID{JobID: 5}, Partition: "a,b", Priority: 9, PriorityArray: []uint32{1, 9}}, Facts{Queues: queues()}, "this job is number 3 of the 4 waiting jobs that you can see in the partition \"b\"."},
		{"Priority", model.Job{StepID: model.StepID{JobID: 5}, Partition: "a", Priority: 99}, Facts{Queues: queues()}, "Jobs with a higher priority come first."},
		{"Resources", model.Job{StepID: model.StepID{JobID: 5}, Partition: "c", Priority: 9}, Facts{Queues: map[string]*Queue{"c": only(9, 5)}}, "enough resources are free: no other job that you can see waits in the partition \"c\"."},
		{"Resources", model.Job{StepID: model.StepID{JobID: 5}, Partition: "b", Priority: 9, StateDescription: "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"}, Facts{Queues: queues()},
			"The nodes that the job could use are down, drained or reserved."},
		{"PartitionTimeLimit", model.Job{Partition: "p", TimeLimit: model.Infinite[uint32]()}, Facts{Partitions: map[string]*model.Partition{"p": {Name: "p", MaxTime: model.Some[uint32](1440)}}},
			"A job in the partition \"p\" may run for at most 1 day, and this job has no time limit."},
		{"PartitionNodeLimit", model.Job{Partition: "p", NumNodes: 1}, Facts{Partitions: map[string]*model.Partition{"p": {Name: "p", MinNodes: 4}}}, "A job in the partition \"p\" must ask for at least 4 nodes, and this job asks for 1."},
		{"MaxMemPerLimit", model.Job{Partition: "p", MinMemory: model.MemPerCPU | 2048}, Facts{Partitions: map[string]*model.Partition{"p": {Name: "p", MaxMemPerCPU: model.MemPerCPU | 1024}}},
			"A job in the partition \"p\" may use at most 1 GB of memory for each CPU, and this job asks for 2 GB."},
		{"ReqNodeNotAvail", model.Job{StateDescription: "ReqNodeNotAvail, UnavailableNodes:n[1-2]"}, Facts{Nodes: map[string]Node{"n2": {"n2", "down", ""}}}, "is not available: n2 is down."},
		{"ReqNodeNotAvail", model.Job{ReqNodes: "n[1-9999]", StateDescription: "ReqNodeNotAvail, May be reserved for other job"}, Facts{}, "is not available: May be reserved for other job."},
		{"InvalidAccount", model.Job{Account: "old"}, Facts{}, "The account \"old\" no longer exists, or its owner may no longer use it."},
		{"QOSNotAllowed", model.Job{Partition: "p", QOS: "q"}, Facts{}, "The partition \"p\" does not permit the QOS \"q\"."},
		{"BeginTime", model.Job{EligibleTime: 1_800_000_000}, Facts{}, "not before 2027-01-15 08:00:00 UTC."},
	} {
		tt.job.StateReason = numbered(t, tt.reason)
		if e := tt.facts.ExplainJob(&tt.job); !strings.HasSuffix(e.Why, tt.want) {
			t.Errorf("%s: %q, want %q", tt.reason, e.Why, tt.want)
		}
	}
	if e := new(Facts).ExplainJob(&model.Job{StateReason: 4711, StateDescription: "the moon is full"}); e.Why != "the moon is full" {
		t.Errorf("an unknown reason: %+v", e)
	}
}

// only returns a partition with one job.
func only(priority, id uint32) *Queue {
	q := new(Queue)
	q.Add(priority, id)
	return q
}

// queues returns a partition a with three jobs, and a partition b in which two jobs come
// before job 5.
func queues() map[string]*Queue {
	a, b := new(Queue), new(Queue)
	a.Add(50, 1)
	a.Add(50, 2)
	a.Add(50, 3)
	b.Add(9, 5)
	b.Add(9, 6)
	b.Add(9, 4)
	b.Add(10, 7)
	return map[string]*Queue{"a": a, "b": b}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]uint64{"2": 2, "4000M": 4000, "1.50G": 1536, "2T": 2 << 20, "1P": 1 << 30, "2048K": 2, "": 0, "x": 0, "-1": 0, "1e99": 0} {
		if got := number(text); got != want {
			t.Errorf("number(%q) = %d, want %d", text, got, want)
		}
	}
	for want, got := range map[string]string{
		"1 GPU of type a100": resourceOf("gres/gpu:a100", 1), "3 licenses of matlab": resourceOf("license/matlab", 3), "2 GB of memory": resourceOf("mem", 2048), "1 TB of memory": resourceOf("mem", 1<<20),
		"1 day 1 minute": span(1441), "0 minutes": span(0), "3 GPU minutes (GPUs of type a100 times minutes)": minutesOf("gres/gpu:a100", 3, "minutes"), "5 of disk": resourceOf("fs/disk", 5),
		"1 CPU minute (CPUs times minutes)": minutesOf("cpu", 1, "minutes"), "7 pages minutes (pages times minutes)": minutesOf("pages", 7, "minutes"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
