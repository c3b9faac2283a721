package script

import (
	"fmt"
	"slices"
	"strings"
)

// optionVariables are the variables that sbatch sets for options, by the fields of
// these options. Controllers do not set them for jobs from the REST API.
var optionVariables = map[string]string{
	"cpus_per_task": "SLURM_CPUS_PER_TASK", "tasks_per_node": "SLURM_NTASKS_PER_NODE", "tasks_per_core": "SLURM_NTASKS_PER_CORE",
	"tasks_per_socket": "SLURM_NTASKS_PER_SOCKET", "threads_per_core": "SLURM_THREADS_PER_CORE", "dependency": "SLURM_JOB_DEPENDENCY",
}

// AddVariables adds the variables to the environment of job that sbatch adds on its own:
// those in fixed, of the form NAME=VALUE, and those for options of the job.
func AddVariables(job Job, fixed ...string) {
	list, _ := job["environment"].([]string)
	for field, name := range optionVariables {
		if value, ok := job[field]; ok {
			fixed = append(fixed, fmt.Sprint(name, "=", value))
		}
	}
	for _, v := range fixed {
		name, _, _ := strings.Cut(v, "=")
		list = slices.DeleteFunc(list, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		list = append(list, v)
	}
	slices.Sort(list)
	job["environment"] = list
}
