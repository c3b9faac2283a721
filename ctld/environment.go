package ctld

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/ctld/step"
	"schedrestd/model"
)

// secrets are variables that are removed from a job's environment, because
// anyone who can read the environment could use the token in the variable. With
// a user's token they could act as that user until the token expires, and with
// a proxy's token as any user.
var secrets = []string{"SCHED_JWT", "SLURM_JWT"}

// stripSecrets removes secrets from env and returns the names of the removed
// variables.
func stripSecrets(env []string) (kept []step.Raw, stripped []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(secrets, name) {
			if !slices.Contains(stripped, name) {
				stripped = append(stripped, name)
			}
			continue
		}
		kept = append(kept, step.Raw(v))
	}
	return kept, stripped
}

// environment returns the environment of the script. It contains the user's
// variables, variables that a login would set (unless the user has set them),
// and variables that describe the job. The variables that describe the job
// exist with both prefixes, SCHED_ and SLURM_, and the user can't override
// them.
func (c *Controller) environment(given []step.Raw, j *model.Job, user nss.User) []step.Raw {
	facts := c.jobFacts(j)
	ours := make(map[string]bool)
	var env []step.Raw
	for _, f := range facts {
		ours["SCHED_"+f.name], ours["SLURM_"+f.name] = true, true
	}
	has := make(map[string]bool)
	for _, v := range given {
		name, _, _ := strings.Cut(string(v), "=")
		if !ours[name] {
			env = append(env, v)
			has[name] = true
		}
	}
	for _, v := range []fact{
		{"HOME", user.Home}, {"USER", user.Name}, {"LOGNAME", user.Name}, {"SHELL", user.Shell},
		{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"ENVIRONMENT", "BATCH"},
	} {
		if !has[v.name] && v.value != "" {
			env = append(env, step.Raw(v.name+"="+v.value))
		}
	}
	for _, f := range facts {
		env = append(env, step.Raw("SCHED_"+f.name+"="+f.value), step.Raw("SLURM_"+f.name+"="+f.value))
	}
	return env
}

type fact struct{ name, value string }

// jobFacts returns the variables that describe the job. Their names are Slurm's
// without the prefix.
func (c *Controller) jobFacts(j *model.Job) []fact {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	id, cpus := number(uint64(j.StepID.JobID)), number(uint64(j.NumCPUs))
	facts := []fact{
		{"CLUSTER_NAME", c.cfg.Cluster},
		{"CPUS_ON_NODE", cpus},
		{"GTIDS", "0"},
		{"JOBID", id},
		{"JOB_CPUS_PER_NODE", cpus},
		{"JOB_GID", number(uint64(j.GroupID))},
		{"JOB_ID", id},
		{"JOB_NAME", j.Name},
		{"JOB_NODELIST", c.cfg.Node},
		{"JOB_NUM_NODES", "1"},
		{"JOB_PARTITION", j.Partition},
		{"JOB_START_TIME", fmt.Sprint(j.StartTime)},
		{"JOB_UID", number(uint64(j.UserID))},
		{"JOB_USER", j.UserName},
		{"LOCALID", "0"},
		{"NNODES", "1"},
		{"NODEID", "0"},
		{"NODELIST", c.cfg.Node},
		{"NPROCS", number(uint64(j.NumTasks))},
		{"NTASKS", number(uint64(j.NumTasks))},
		{"PROCID", "0"},
		{"SUBMIT_DIR", j.WorkDir},
		{"TASKS_PER_NODE", number(uint64(j.NumTasks))},
	}
	optional := func(name, value string, set bool) {
		if set {
			facts = append(facts, fact{name, value})
		}
	}
	optional("CPUS_PER_TASK", number(uint64(j.CPUsPerTask.Number)), j.CPUsPerTask.Set)
	optional("JOB_ACCOUNT", j.Account, j.Account != "")
	optional("JOB_END_TIME", fmt.Sprint(j.StartTime+model.Time(j.TimeLimit.Number)*60), j.TimeLimit.Set)
	optional("JOB_QOS", j.QOS, j.QOS != "")
	optional("RESTART_COUNT", number(uint64(j.RestartCnt)), j.RestartCnt > 0)
	optional("SUBMIT_HOST", j.AllocNode, j.AllocNode != "")
	memory := number(j.MinMemory &^ model.MemPerCPU)
	optional("MEM_PER_CPU", memory, j.MinMemory&model.MemPerCPU != 0)
	optional("MEM_PER_NODE", memory, j.MinMemory&model.MemPerCPU == 0 && j.MinMemory > 0)
	return facts
}
