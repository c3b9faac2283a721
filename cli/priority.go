package cli

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/table"
)

// A priorityRequest is the command priority with its options.
type priorityRequest struct {
	options
	filter
}

func priorityCommand() *cobra.Command {
	var p priorityRequest
	cmd := &cobra.Command{
		Use:   "priority [ID...]",
		Short: "Show the parts of the priority of waiting jobs, as sprio does",
		Long: `priority shows the priority of waiting jobs, and the parts that it is the sum of; NICE is
subtracted. The table begins with the highest priority. A job that may run in several partitions
or with several QOS has a line for each. Jobs that are held, or whose begin time has not come,
have no priority. If an administrator has set the priority of a job, its parts are 0.

The names of the columns are those of sprio; PARTFACTOR and QOSFACTOR are the parts of the
partition and of the QOS.`,
		Example: "  schedctl priority --me\n  schedctl priority 12 13_4 -o csv",
		Args:    cobra.ArbitraryArgs,
	}
	p.connectFlags(cmd)
	p.outputFlag(cmd, "csv")
	flags := cmd.Flags()
	flags.StringSliceVarP(&p.users, "user", "u", nil, "jobs of these `USERS`")
	flags.BoolVar(&p.me, "me", false, "your own jobs: those of the token's user")
	accountFlag(flags, &p.accounts, "A", "jobs of these `ACCOUNTS`")
	flags.StringSliceVarP(&p.partitions, "partition", "p", nil, "priorities in these `PARTITIONS`")
	flags.StringSliceVar(&p.qos, "qos", nil, "priorities with these qualities of service")
	for _, name := range []string{"user", "account", "qos"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	cmd.RegisterFlagCompletionFunc("partition", p.completePartitions)
	cmd.ValidArgsFunction = p.completeJobs(&filter{states: []string{"PENDING"}})
	return setRun(cmd, p.run)
}

func (p *priorityRequest) run(cmd *cobra.Command, ids []string) error {
	ids, err := expandIDs(ids)
	if err != nil {
		return err
	}
	c, err := p.dialWithFilter(cmd.Context(), &p.filter)
	if err != nil {
		return err
	}
	labels, numbers, err := c.waitingJobs(cmd.Context(), ids)
	if err != nil {
		return err
	}
	s := p.newSheet(cmd.OutOrStdout(), "priorities", priorityColumns(labels))
	s.compare = func(a, b record) int { return cmp.Compare(b.number("priority"), a.number("priority")) }
	found := map[string]bool{}
	s.keep = func(r record) bool {
		found[r.get("job_id")] = true
		p.seePriority(r)
		return true
	}
	if len(ids) == 0 || len(numbers) > 0 {
		query := listQuery(map[string][]string{"users": p.users, "account": p.accounts, "partition": p.partitions, "qos": p.qos, "job_id": numbers})
		if err := c.Priorities(cmd.Context(), query, s.add); err != nil {
			return err
		}
	}
	for _, number := range numbers {
		if !found[number] {
			c.warn("job %s has no priority at present: it is held, or can't start yet", labels[number])
		}
	}
	return s.close(c.checkNames(cmd.Context(), &p.filter))
}

// seePriority records the names in a priority.
func (f *filter) seePriority(r record) {
	f.see(&userKind, f.users, r.get("user_name"))
	f.see(&accountKind, f.accounts, r.get("account"))
	f.see(&partitionKind, f.partitions, r.get("partition"))
	f.see(&qosKind, f.qos, r.get("qos"))
}

// waitingJobs returns the numbers of the jobs with the given ids that wait, and
// the labels of these jobs, by their numbers. The controller reports priorities
// only by numbers, which tasks of an array have, too.
func (c *connection) waitingJobs(ctx context.Context, ids []string) (labels map[string]string, numbers []string, err error) {
	labels = map[string]string{}
	for _, id := range ids {
		jobs, err := c.Job(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		waits := false
		for i := range jobs {
			number := strconv.FormatUint(uint64(jobs[i].ID), 10)
			if jobs[i].BaseState() != "PENDING" {
				continue
			}
			if waits = true; labels[number] == "" {
				labels[number], numbers = jobs[i].Label(), append(numbers, number)
			}
		}
		if !waits {
			c.warn("job %s has no priority: it does not wait", id)
		}
	}
	return labels, numbers, nil
}

// priorityColumns returns the columns of priorities. The labels are the ids of
// tasks, by their numbers.
func priorityColumns(labels map[string]string) []sheetColumn {
	text := func(heading, field string, shrink int) sheetColumn {
		return sheetColumn{Column: table.Column{Heading: heading, Shrink: shrink, Rank: 1}, field: field}
	}
	part := func(heading, name string, drop int) sheetColumn {
		field := "parts." + name
		return sheetColumn{Column: table.Column{Heading: heading, Right: true, Drop: drop}, field: field, cell: rounded(field, 0)}
	}
	id := func(r record) table.Cell {
		number := r.get("job_id")
		return textCell(cmp.Or(labels[number], number))
	}
	return []sheetColumn{
		{Column: table.Column{Heading: "JOBID"}, field: "job_id", cell: id},
		text("PARTITION", "partition", 5), text("QOS", "qos", 5), text("USER", "user_name", 8), text("ACCOUNT", "account", 7),
		{Column: table.Column{Heading: "PRIORITY", Right: true}, field: "priority"},
		{field: "set"},
		part("SITE", "site", 1), part("AGE", "age", 0), part("ASSOC", "association", 2), part("FAIRSHARE", "fairshare", 0), part("JOBSIZE", "job_size", 3),
		part("PARTFACTOR", "partition", 0), part("QOSFACTOR", "qos", 0), part("NICE", "nice", 4),
		{Column: table.Column{Heading: "TRES", Shrink: 8, Rank: 2}, field: "parts.tres", cell: priorityTRES},
	}
}

// priorityTRES returns the parts of resources in the form of sprio, such as
// cpu=12,mem=3. A record contains the names and the numbers in turn.
func priorityTRES(r record) table.Cell {
	words := strings.Split(r.get("parts.tres"), ",")
	var parts []string
	for i := 0; i+1 < len(words); i += 2 {
		n, _ := strconv.ParseFloat(words[i+1], 64)
		parts = append(parts, words[i]+"="+strconv.FormatFloat(n, 'f', 0, 64))
	}
	return textCell(strings.Join(parts, ","))
}
