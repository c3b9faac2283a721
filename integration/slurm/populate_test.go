package slurm

import (
	"strings"
	"testing"
	"time"
)

// populate fills the cluster with examples of everything that an answer can
// contain: jobs in many states, reservations, drained nodes, and limits. It
// uses only Slurm's commands. If a release does not support a command, populate
// logs this.
func (m *machine) populate(t *testing.T) {
	t.Helper()
	m.populateAccounting(t)
	m.populateNodes(t)
	m.populateJobs(t)
	time.Sleep(6 * time.Second) // until the accounting daemon has the records, and the schedulers have run
}

// attempt runs a command that not all releases support.
func (m *machine) attempt(t *testing.T, user, command string) {
	t.Helper()
	if _, err := m.try(user, strings.Fields(command)...); err != nil {
		t.Logf("not in %s: %v", m.release, err)
	}
}

// populateNodes changes nodes and creates reservations.
func (m *machine) populateNodes(t *testing.T) {
	for _, set := range []string{
		"NodeName=n01 State=DRAIN Reason=smells-of-smoke",
		"NodeName=n02 Comment=a-comment Extra=an-extra",
		"NodeName=node1 Comment=the-only-one Weight=7",
		"NodeName=n02 InstanceId=i-0815 InstanceType=large",
		"NodeName=n03 CpuBind=cores",
		"NodeName=n04 State=DOWN Reason=repaired-soon ResumeAfter=7200",
	} {
		m.attempt(t, "root", "scontrol update "+set)
	}
	m.attempt(t, "root", "scontrol reboot nextstate=RESUME reason=kernel n06")
	for _, reservation := range []string{
		"ReservationName=upgrade StartTime=now+3days Duration=2:00:00 Nodes=n[03-04] Users=alice,bob Flags=maint,ignore_jobs Comment=new-kernel",
		"ReservationName=daily StartTime=now+2days Duration=60 NodeCnt=1 PartitionName=debug Accounts=physics Flags=daily",
		"ReservationName=spare StartTime=now+5days Duration=1-0 Licenses=matlab:2 Users=bob Flags=any_nodes,license_only",
		"ReservationName=small StartTime=now+9days Duration=30 Nodes=n06 Users=alice MaxStartDelay=60 Flags=purge_comp=5:00",
		"ReservationName=now StartTime=now Duration=60 Nodes=n05 Users=alice Flags=ignore_jobs",
		"ReservationName=taken StartTime=now Duration=60 Licenses=fluent:1 Users=bob Flags=any_nodes,license_only",
		"ReservationName=cores StartTime=now Duration=60 CoreCnt=2 Nodes=node1 Users=alice,bob Flags=ignore_jobs",
		"ReservationName=groups StartTime=now+12days Duration=60 Nodes=n02 Groups=alice",
	} {
		m.attempt(t, "root", "scontrol create reservation "+reservation)
	}
}

// populateAccounting adds accounting records and sets limits. The limits are
// too high to affect the jobs of populateJobs.
func (m *machine) populateAccounting(t *testing.T) {
	for _, change := range []string{
		"add qos full description=everything-set priority=50 flags=DenyOnLimit,NoDecay,OverPartQOS gracetime=60",
		"add user bob account=physics partition=debug",
		"add coordinator account=optics names=alice",
		"add user alice wckey=spectra",
		"modify user alice set defaultwckey=spectra",
		"add resource name=remote count=10 server=flex servertype=flexlm type=license percentallowed=50 cluster=lab",
		"add cluster closed", "delete cluster closed",
	} {
		m.attempt(t, "slurm", "sacctmgr -i -Q "+change)
	}
	m.wckey, _, _ = strings.Cut(m.run(t, "root", "sacctmgr", "-nP", "show", "wckey", "where", "wckey=spectra", "format=id"), "\n")
	for _, limit := range strings.Fields(`GrpTRES=cpu=100000,gres/gpu=900 GrpTRESMins=cpu=90000000 GrpTRESRunMins=cpu=80000000 GrpJobs=5001
		GrpJobsAccrue=5002 GrpSubmitJobs=5003 GrpWall=500000 MaxTRESMins=cpu=70000000 MaxWall=9000`) {
		m.attempt(t, "slurm", "sacctmgr -i -Q modify account optics set "+limit)
		m.attempt(t, "slurm", "sacctmgr -i -Q modify qos full set "+limit)
	}
	for _, limit := range strings.Fields(`MaxTRES=cpu=60000 MaxTRESPerNode=cpu=50000 MaxJobsAccrue=4001 MaxSubmitJobs=4002 Priority=77
		Comment=no-blanks`) {
		m.attempt(t, "slurm", "sacctmgr -i -Q modify account optics set "+limit)
	}
	for _, limit := range strings.Fields(`LimitFactor=0.5 MaxTRESPerJob=cpu=40000 MaxTRESPerNode=cpu=30000 MaxTRESPerUser=cpu=20000 MaxTRESPerAccount=cpu=19000
		MaxTRESRunMinsPerUser=cpu=18000 MaxTRESRunMinsPerAccount=cpu=17000 MaxJobsPerUser=3001 MaxJobsPerAccount=3002 MaxSubmitJobsPerUser=3003
		MaxSubmitJobsPerAccount=3004 MaxJobsAccruePerUser=3005 MaxJobsAccruePerAccount=3006 MinTRESPerJob=cpu=1
		Preempt=quick PreemptMode=requeue PreemptExemptTime=00:10:00 UsageFactor=2.5 UsageThreshold=0.25`) {
		m.attempt(t, "slurm", "sacctmgr -i -Q modify qos full set "+limit)
	}
	m.attempt(t, "slurm", "sacctmgr -i -Q modify user bob where account=optics set defaultqos=normal")
}
