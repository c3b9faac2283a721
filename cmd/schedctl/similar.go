package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/internal/errs"
	"schedrestd/internal/typo"
)

// elsewhere has what to do instead of commands of Slurm, and of other words that
// people try.
var elsewhere = map[string]string{
	"squeue":   "schedctl jobs lists jobs",
	"sinfo":    "schedctl partitions and schedctl nodes list them",
	"sacct":    "schedctl history lists jobs in the accounting records",
	"scancel":  "schedctl cancel ends jobs",
	"sbatch":   "schedctl submit submits a script",
	"scontrol": "schedctl show shows objects, update, hold and release change jobs, and drain and resume nodes",
	"sstat":    "schedctl job ID shows a job, and show job ID all its fields",
	"sprio":    "schedctl priority shows the parts of the priorities of waiting jobs",
	"srun":     "schedctl submit --wrap COMMAND runs a command as a job, and --follow prints its output",
	"salloc":   "schedctl submit submits a script; interactive jobs are not supported",
	"sdiag":    "schedctl ping asks the controllers, and schedctl top shows the load",
	"sshare":   "schedctl shares shows fair shares as a tree",
	"qos":      "schedctl show qos lists the QOS",
	"sacctmgr": "schedctl show qos and show share list the records; schedctl changes none",
	"sreport":  "schedctl usage reports usage: schedctl usage users --since 2026-01-01",
	"reports":  "schedctl usage reports usage", "report": "schedctl usage reports usage",
	"reservations": "schedctl show reservation lists reservations",
	"licenses":     "schedctl show license lists licenses",
	"logs":         output, "log": output, "tail": output, "cat": output, "sattach": output, "stdout": output, "stderr": output,
	"queue": "schedctl jobs lists jobs", "list": "schedctl jobs lists jobs", "ls": "schedctl jobs lists jobs", "ps": "schedctl jobs lists jobs",
	"kill": "schedctl cancel ends jobs", "run": "schedctl submit submits a script",
	"status": "schedctl job ID shows a job, schedctl top the cluster, and schedctl ping the controllers",
	"info":   "schedctl partitions and schedctl nodes list them",
}

const output = "schedctl output ID prints the output of a job, and --follow follows it"

// unknownCommand returns the error for a word that is no command. It suggests no
// command that ends jobs, because it may not be what the user means.
func unknownCommand(cmd *cobra.Command, word string) error {
	err := errs.New(errs.Malformed, "unknown command %q", word)
	if hint := elsewhere[strings.ToLower(word)]; hint != "" {
		return err.WithHint("%s", hint)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if name := c.Name(); name != "cancel" && name != "requeue" && !c.Hidden {
			names = append(names, name)
		}
	}
	word = strings.ToLower(word)
	near := typo.Nearest(word, names)
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, word) }); near == "" && i >= 0 {
		near = names[i]
	}
	if near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("schedctl --help lists the commands")
}
