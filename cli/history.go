package cli

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/printable"
	"schedrestd/model"
)

func historyCommand() *cobra.Command {
	var o options
	var f filter
	var since, until string
	l := listing[*rest.Job]{columns: historyColumns()}
	cmd := &cobra.Command{
		Use:   "history [ID...]",
		Short: "List jobs in the accounting records",
		Long: `history lists jobs that existed at any time since today's midnight, or in the period that
--since and --until select. With ids it lists these jobs, however old they are. If you give
ids and options, it lists only those of the named jobs that the options select. A job that was
requeued has a line for each run, as with sacct -D.

A time is YYYY-MM-DD, YYYY-MM-DDTHH:MM[:SS], HH:MM of today, today, yesterday, or a
number of minutes, hours, days or weeks ago: 90m, 12h, 7d or 4w.`,
		Example: "  schedctl history --me --since 7d --state FAILED\n  schedctl history 12 13 -o json",
		Args:    cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "wide")
	f.flags(cmd)
	l.flags(cmd)
	cmd.Flags().StringVar(&since, "since", "", "begin of the period (default: today, or no limit with ids)")
	cmd.Flags().StringVar(&until, "until", "", "end of the period (default: now)")
	o.completeFilter(cmd)
	for _, name := range []string{"since", "until"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"today", "yesterday", "7d"}, cobra.ShellCompDirectiveNoFileComp))
	}
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		if err := l.check(o.output); err != nil {
			return err
		}
		ids, err := expandIDs(ids)
		if err != nil {
			return err
		}
		if since == "" && len(ids) == 0 {
			since = "today"
		}
		query := url.Values{}
		if err := addPeriod(query, since, until, time.Now()); err != nil {
			return err
		}
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		f.all = true // ended jobs are the usual case
		f.narrow(query)
		out := cmd.OutOrStdout()
		d := o.document(out, "jobs")
		w := newWanted("job", "", ids)
		var rows []*rest.Job
		listed := map[string]bool{} // labels of jobs that an earlier request has listed
		for _, query := range queries(query, ids) {
			request := &rest.List{Query: query}
			if d == nil {
				request.Fields = rest.AccountingFields
			}
			var labels []string
			err := c.AccountingJobs(cmd.Context(), request, func(j *rest.Job, text json.RawMessage) error {
				if !w.hasJob(j) || !f.matches(j) || listed[j.Label()] {
					return nil
				}
				labels = append(labels, j.Label())
				if d != nil {
					return d.Add(text)
				}
				rows = append(rows, trimJob(j))
				return nil
			})
			if err != nil {
				return err
			}
			for _, label := range labels {
				listed[label] = true
			}
		}
		if err := c.checkUsers(cmd.Context(), &f); err != nil { // a partition may have been deleted
			return err
		}
		slices.SortStableFunc(rows, func(a, b *rest.Job) int { return compareCells(jobIDCell(a), jobIDCell(b)) })
		return writeResult(out, d, l.table(rows), w)
	})
}

// hasJob reports whether the user wants the job j, which the server has listed.
func (w *wanted) hasJob(j *rest.Job) bool {
	has := len(w.names) == 0
	for _, id := range w.names {
		if j.Selects(id) {
			has, w.seen[id] = true, true
		}
	}
	return has
}

// narrow adds conditions to a request for accounting records, so that the
// server sends fewer records that f does not select. It adds no lists, because
// slurmrestd does not decode a comma in some of its parameters. The state is not
// a condition, because the server would select jobs that once had this state.
func (f *filter) narrow(query url.Values) {
	for name, values := range map[string][]string{"users": f.users, "account": f.accounts, "partition": f.partitions, "job_name": f.names} {
		if len(values) == 1 && !strings.Contains(values[0], ",") {
			query.Set(name, values[0])
		}
	}
	if len(f.nodes) > 0 {
		query.Set("node", model.FoldHosts(f.nodes))
	}
}

// queries returns the requests for the jobs with the given ids: one for each
// id or, if there are no ids, one for all jobs.
func queries(query url.Values, ids []string) []url.Values {
	if len(ids) == 0 {
		return []url.Values{query}
	}
	var list []url.Values
	for _, id := range ids {
		q := maps.Clone(query)
		q.Set("step", id)
		list = append(list, q)
	}
	return list
}

// addPeriod adds the period from since to until to a request. An empty text
// stands for no limit.
func addPeriod(query url.Values, since, until string, now time.Time) error {
	var times [2]time.Time
	for i, option := range []struct{ name, parameter, text string }{{"--since", "start_time", since}, {"--until", "end_time", until}} {
		if option.text == "" {
			continue
		}
		t, ok := parseTime(option.text, now)
		if !ok {
			return usageError("%s %s: not a time", option.name, printable.Text(option.text)).
				WithHint("use YYYY-MM-DD[THH:MM[:SS]], HH:MM, today, yesterday, or a time ago such as 12h, 7d or 4w")
		}
		times[i] = t
		query.Set(option.parameter, strconv.FormatInt(t.Unix(), 10))
	}
	if until == "" && times[0].After(now) {
		return usageError("--since %s: in the future", printable.Text(since))
	}
	if since != "" && until != "" && !times[0].Before(times[1]) {
		return usageError("--until %s: not after --since", printable.Text(until))
	}
	return nil
}

// parseTime parses a time in the forms that the help of history lists.
func parseTime(text string, now time.Time) (time.Time, bool) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.AddDate(0, 0, -1), true
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, true
		}
	}
	if t, err := time.Parse("15:04", text); err == nil {
		return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location()), true
	}
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour}
	number, unit := text[:len(text)-1], text[len(text)-1]
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case err != nil:
		return time.Time{}, false
	case unit == 'd':
		return now.AddDate(0, 0, -int(n)), true
	case unit == 'w':
		return now.AddDate(0, 0, -7*int(n)), true
	}
	return now.Add(-time.Duration(n) * units[unit]), units[unit] > 0
}

// historyColumns returns the columns of lists of accounting records.
func historyColumns() []column[*rest.Job] {
	columns := jobColumns()
	for i := range columns {
		c := &columns[i]
		c.extra = !slices.Contains([]string{"jobid", "partition", "name", "user", "state", "time", "cpus", "started", "exit", "nodelist"}, c.name)
		switch c.name {
		case "nodelist":
			c.Column = table.Column{Heading: "NODELIST(REASON)", Shrink: 8, Rank: 1, Drop: 3}
		case "state":
			c.Shrink = 0 // the result of the job is what users look for
		case "started":
			c.Drop = 5
		}
	}
	return columns
}
