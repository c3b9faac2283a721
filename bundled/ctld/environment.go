package ctld

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/step"
	"schedrestd/model"
)

// secretVars lists the variables that are removed from a job's environment.
// They contain tokens, which anyone who can read the environment could use. A
// user's token gives the rights of that user until the token expires. A proxy's
// token gives the rights of any user.
var secretVars = []string{"SCHED_JWT", "SLURM_JWT"}

// stripSecrets removes the variables in secretVars from env. It returns the
// remaining variables, and the names of the removed ones.
func stripSecrets(env []string) (remaining []step.Raw, stripped []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(secretVars, name) {
			if !slices.Contains(stripped, name) {
				stripped = append(stripped, name)
			}
			continue
		}
		remaining = append(remaining, step.Raw(v))
	}
	return remaining, stripped
}

// environment returns the environment of the script. It contains the user's
// variables, and any variable that a login or slurmd would set and the user did
// not. It also contains variables that describe the job, each once with the
// prefix SCHED_ and once with the prefix SLURM_. The user can't override the
// variables that describe the job, except SUBMIT_DIR and SUBMIT_HOST. A variable for
// a limit in Config.KeptLimits is removed, unless the user asked for the limit.
func (c *Controller) environment(userEnv []step.Raw, j *model.Job, user nss.User) []step.Raw {
	vars := c.jobVariables(j)
	for i, f := range vars {
		if f.name == "SUBMIT_DIR" || f.name == "SUBMIT_HOST" { // the client knows them: WorkDir may be another directory
			vars[i].value = cmp.Or(lookup(userEnv, "SLURM_"+f.name), lookup(userEnv, "SCHED_"+f.name), f.value)
		}
	}
	const nodeName, host = "SLURMD_NODENAME", "HOSTNAME" // the only variables of slurmd with another prefix
	reserved := map[string]bool{nodeName: true, host: true}
	var env []step.Raw
	for _, f := range vars {
		reserved["SCHED_"+f.name], reserved["SLURM_"+f.name] = true, true
	}
	present := make(map[string]bool)
	for _, v := range userEnv {
		name, _, _ := strings.Cut(string(v), "=")
		limit, asked := step.LimitName(string(v))
		if !reserved[name] && (asked || !slices.Contains(c.cfg.KeptLimits, limit)) {
			env = append(env, v)
			present[name] = true
		}
	}
	for _, v := range []envVar{
		{"HOME", user.Home}, {"USER", user.Name}, {"LOGNAME", user.Name}, {"SHELL", user.Shell},
		{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"ENVIRONMENT", "BATCH"}, {"TMPDIR", "/tmp"},
	} {
		if !present[v.name] && v.value != "" {
			env = append(env, step.Raw(v.name+"="+v.value))
		}
	}
	for _, f := range vars {
		env = append(env, step.Raw("SCHED_"+f.name+"="+f.value), step.Raw("SLURM_"+f.name+"="+f.value))
	}
	return append(env, step.Raw(nodeName+"="+c.cfg.Node), step.Raw(host+"="+c.cfg.Node))
}

// lookup returns the last value of a variable in env, or "".
func lookup(env []step.Raw, name string) (value string) {
	for _, v := range env {
		if text, ok := strings.CutPrefix(string(v), name+"="); ok {
			value = text
		}
	}
	return value
}

type envVar struct{ name, value string }

// jobVariables returns the variables that describe the job. Their names are
// those that Slurm uses, without the prefix SLURM_.
func (c *Controller) jobVariables(j *model.Job) []envVar {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	id, cpus := number(uint64(j.StepID.JobID)), number(uint64(j.NumCPUs))
	vars := []envVar{
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
		{"TOPOLOGY_ADDR", c.cfg.Node},
		{"TOPOLOGY_ADDR_PATTERN", "node"},
	}
	optional := func(name, value string, set bool) {
		if set {
			vars = append(vars, envVar{name, value})
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
	return vars
}
